package tackerimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The kinds of items, in the order of import.
const (
	kindVIM     = "vim"
	kindPackage = "package"
)

// Config configures an import. From and To are required.
type Config struct {
	From API // Tacker
	To   API // this service
	// Credentials are the auth_cred of VIMs, by their names or ids.
	Credentials map[string]map[string]any
	Project     string // of the packages; empty: the default project
	Dry         bool   // To does not keep what is written; content is not downloaded
}

// Import imports all VIMs and packages, and returns the report. The error is one of the
// lists of either side; the report then has the items before it. Errors of single items
// are only in the report.
func Import(ctx context.Context, cfg Config) (*migration.Report, error) {
	if cfg.From.URL == "" || cfg.From.Client == nil || cfg.To.URL == "" || cfg.To.Client == nil {
		return nil, errors.New("cannot import: From and To are required")
	}
	im := importer{cfg, migration.NewReport(cfg.Dry, kindVIM, kindPackage)}
	if err := im.vims(ctx); err != nil {
		return im.report, err
	}
	return im.report, im.packages(ctx)
}

// importer is one import.
type importer struct {
	cfg    Config
	report *migration.Report
}

// add adds the result of an item.
func (im importer) add(ctx context.Context, it migration.Item, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("cannot import: %w", context.Cause(ctx))
	}
	switch {
	case err != nil:
		it.Result, it.Reason = migration.Failed, err.Error()
	case it.Result == "":
		it.Result = migration.Imported
	}
	im.report.Add(it)
	return nil
}

func (im importer) vims(ctx context.Context) error {
	from, err := im.cfg.From.vims(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the VIMs of Tacker: %w", err)
	}
	to, err := im.cfg.To.vims(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the VIMs of this service: %w", err)
	}
	there := map[string]vim{}
	hasDefault := false
	for _, v := range to {
		there[v.Name] = v
		hasDefault = hasDefault || v.Default
	}
	for _, v := range from {
		it, err := im.vim(ctx, v, there, hasDefault)
		if err := im.add(ctx, it, err); err != nil {
			return err
		}
	}
	return nil
}

// vim imports one VIM.
func (im importer) vim(ctx context.Context, v vim, there map[string]vim, hasDefault bool) (migration.Item, error) {
	it := migration.Item{Kind: kindVIM, Name: v.Name}
	if old, found := there[v.Name]; found {
		it.Result = migration.Present
		if old.Type != v.Type || !sameURL(old.AuthURL, v.AuthURL) {
			it.Result, it.Reason = migration.Different, "a VIM of this name has another type or auth_url"
		}
		return it, nil
	}
	credentials, found := im.cfg.Credentials[v.Name]
	if !found {
		credentials, found = im.cfg.Credentials[v.ID]
	}
	if !found {
		return it, errors.New("its credentials are missing: Tacker does not show them; give them with --credentials")
	}
	if v.Default && hasDefault {
		v.Default = false
		it.Warnings = append(it.Warnings, "it is not the default VIM: another one is")
	}
	v.ID, v.Credentials = "", credentials
	return it, im.cfg.To.register(ctx, v)
}

// sameURL reports whether two URLs differ in a slash at the end only.
func sameURL(a, b string) bool {
	u, err := url.Parse(a)
	v, wrong := url.Parse(b)
	return err == nil && wrong == nil && u.JoinPath("/").String() == v.JoinPath("/").String()
}

func (im importer) packages(ctx context.Context) error {
	from, err := im.cfg.From.packages(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the VNF packages of Tacker: %w", err)
	}
	for _, p := range from {
		it, err := im.pkg(ctx, p)
		if err := im.add(ctx, it, err); err != nil {
			return err
		}
	}
	return nil
}

// pkg imports one package under its id, or continues with its content.
func (im importer) pkg(ctx context.Context, p vnfPackage) (migration.Item, error) {
	it := migration.Item{Kind: kindPackage, Name: p.ID}
	if p.Product != "" {
		it.Name += " " + p.Product
	}
	old, err := im.cfg.To.pkg(ctx, p.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		if err := im.create(ctx, p); err != nil {
			return it, err
		}
	case err != nil:
		return it, err
	case old.onboarded() && p.onboarded() && old.VNFD != p.VNFD:
		it.Result, it.Reason = migration.Different, "a package of this id has the VNFD "+old.VNFD
		return it, nil
	case old.onboarded() || !p.onboarded():
		it.Result = migration.Present
		return it, nil
	}
	if !p.onboarded() || im.cfg.Dry {
		return it, nil
	}
	err = im.cfg.From.content(ctx, p.ID, func(content io.Reader) error { return im.cfg.To.upload(ctx, p.ID, content) })
	if err == nil && p.Operational == "DISABLED" {
		err = im.cfg.To.change(ctx, p.ID, map[string]any{"operationalState": "DISABLED"})
	}
	return it, err
}

// create creates a package without content, with its user data.
func (im importer) create(ctx context.Context, p vnfPackage) error {
	request := map[string]any{"csar_id": p.ID}
	if im.cfg.Project != "" {
		request["project"] = im.cfg.Project
	}
	if len(p.UserData) > 0 {
		request["user_data"] = p.UserData
	}
	// ETSI's API chooses the ids of packages itself.
	_, err := im.cfg.To.document(ctx, http.MethodPost, "/v1/packages", request, nil)
	return err
}
