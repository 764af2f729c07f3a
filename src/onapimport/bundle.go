package onapimport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
)

// defaultProfile is the name of the profile that every definition has from the
// start.
const defaultProfile = "default"

// infrastructure reports whether an error would also affect all other items of
// the import.
func infrastructure(err error) bool {
	kind := nf.KindOf(err)
	return kind == nf.Unreachable || kind == nf.Internal && errors.Is(err, context.Canceled)
}

// outcome sets the result of an item from the import's error, if any.
func outcome(it migration.Item, changed bool, err error) (migration.Item, error) {
	var differs differsError
	var lacks lacksError
	switch {
	case err == nil && changed:
		it.Result = migration.Imported
	case err == nil:
		it.Result = migration.Present
	case errors.As(err, &differs):
		it.Result, it.Reason = migration.Different, string(differs)
	case errors.As(err, &lacks):
		it.Result, it.Reason = migration.Skipped, string(lacks)
	case infrastructure(err):
		return it, err
	default:
		it.Result, it.Reason = migration.Failed, err.Error()
	}
	return it, nil
}

// differsError says that an item exists and how it differs.
type differsError string

func (e differsError) Error() string { return string(e) }

// lacksError says that something an item needs is missing.
type lacksError string

func (e lacksError) Error() string { return string(e) }

func definitionName(name, version string) string { return name + " " + version }

func profileName(k bundle.Key) string { return k.Name + " " + k.Version + " " + k.Profile }

func (im *Importer) definition(ctx context.Context, d onapstore.Definition) (migration.Item, error) {
	it := migration.Item{Kind: "definition", Name: definitionName(d.Name, d.Version)}
	if !d.Content.Exists() {
		it.Warnings = append(it.Warnings, "its content is missing, so it cannot be instantiated")
	}
	there, err := im.cfg.Bundles.Definition(ctx, d.Name, d.Version)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.cfg.Bundles.CreateDefinition(ctx, bundle.Definition{
			Name: d.Name, Version: d.Version, Chart: d.Chart, Description: d.Description, Labels: d.Labels,
		})
	} else if err == nil && !sameDefinition(there, d) {
		err = differsError("its chart name, description or labels differ from the store's")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, d.Content, there.Content, func(archive io.Reader) error {
		return im.cfg.Bundles.UploadDefinition(ctx, d.Name, d.Version, archive)
	})
	return outcome(it, created || uploaded, err)
}

// sameDefinition compares two definitions. If ONAP's has no chart name, the
// name is taken from the content and not compared.
func sameDefinition(a bundle.Definition, b onapstore.Definition) bool {
	return (b.Chart == "" || a.Chart == b.Chart) && a.Description == b.Description && maps.Equal(a.Labels, b.Labels)
}

// content imports an archive, and reports whether it was missing.
func (im *Importer) content(ctx context.Context, from onapstore.Content, there bundle.Content, upload func(io.Reader) error) (bool, error) {
	if !from.Exists() {
		return false, nil
	}
	archive, err := im.cfg.Content(ctx, from)
	switch {
	case err != nil:
		return false, err
	case there.Digest == digestOf(archive):
		return false, nil
	case there != bundle.Content{}:
		return false, differsError("its content differs from the store's")
	}
	return true, upload(bytes.NewReader(archive))
}

func (im *Importer) profile(ctx context.Context, p onapstore.Profile) (migration.Item, error) {
	wanted := bundle.Profile{
		Definition: p.Definition, Version: p.Version, Name: p.Name, Release: cmp.Or(p.Release, p.Name), Namespace: p.Namespace,
		KubeVersion: p.KubeVersion, Labels: p.Labels,
	}
	if p.Extra != nil {
		wanted.Extra = []bundle.Type{} // empty differs from absent
	}
	for _, t := range p.Extra {
		wanted.Extra = append(wanted.Extra, bundle.Type(t))
	}
	it := migration.Item{Kind: "profile", Name: profileName(wanted.Key())}
	if p.Name != defaultProfile && !p.Content.Exists() {
		it.Warnings = append(it.Warnings, "its content is missing, so it cannot be used to instantiate")
	}
	if len(p.Labels) > 0 || p.KubeVersion != "" {
		it.Warnings = append(it.Warnings, "its labels and its kubernetes-version take effect with the next upgrade, which may restart pods: ONAP stored them without using them")
	}
	there, changed, err := im.putProfile(ctx, wanted)
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, p.Content, there.Content, func(archive io.Reader) error {
		return im.cfg.Bundles.UploadProfile(ctx, wanted.Key(), archive)
	})
	return outcome(it, changed || uploaded, err)
}

// putProfile creates a profile unless it exists. A default profile that is
// unchanged since its definition was created is updated.
func (im *Importer) putProfile(ctx context.Context, wanted bundle.Profile) (there bundle.Profile, changed bool, err error) {
	there, err = im.cfg.Bundles.Profile(ctx, wanted.Key())
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		there, err = im.cfg.Bundles.CreateProfile(ctx, wanted)
		return there, true, err
	case err != nil || sameProfile(there, wanted):
		return there, false, err
	case pristine(there):
		there, err = im.cfg.Bundles.UpdateProfile(ctx, wanted)
		return there, true, err
	}
	return there, false, differsError("its release, namespace, version, labels or extra types differ from the store's")
}

func sameProfile(a, b bundle.Profile) bool {
	return a.Release == b.Release && a.Namespace == b.Namespace && a.KubeVersion == b.KubeVersion && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Extra, b.Extra)
}

// pristine reports whether a profile is an unchanged default profile.
func pristine(p bundle.Profile) bool {
	return p.Bare && p.Content == (bundle.Content{}) && sameProfile(p, bundle.Profile{Release: defaultProfile, Namespace: "default"})
}

func (im *Importer) template(ctx context.Context, t onapstore.Template) (migration.Item, error) {
	it := migration.Item{Kind: "template", Name: definitionName(t.Definition, t.Version) + " " + t.Name}
	key := bundle.TemplateKey{Name: t.Definition, Version: t.Version, Template: t.Name}
	there, err := im.cfg.Bundles.Template(ctx, key)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.cfg.Bundles.CreateTemplate(ctx, bundle.Template{Definition: t.Definition, Version: t.Version, Name: t.Name, Description: t.Description})
	} else if err == nil && there.Description != t.Description {
		err = differsError("its description differs from the store's")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	uploaded, err := im.content(ctx, t.Content, there.Content, func(archive io.Reader) error {
		return im.cfg.Bundles.UploadTemplate(ctx, key, archive)
	})
	return outcome(it, created || uploaded, err)
}

func (im *Importer) region(ctx context.Context, c onapstore.Connection) (migration.Item, error) {
	it := migration.Item{Kind: "region", Name: c.Region}
	there, err := im.cfg.Regions.Region(ctx, c.Region)
	created := nf.KindOf(err) == nf.NotFound && err != nil
	if created {
		there, err = im.cfg.Regions.Enlist(ctx, nf.Region{
			ID: c.Region, Owner: c.Owner, Origin: nf.OriginImport, Access: nf.Access{Kubeconfig: c.Kubeconfig},
		})
	} else if err == nil && (there.Owner != c.Owner || !slices.Equal(there.Access.Kubeconfig, c.Kubeconfig)) {
		err = differsError("its owner or its kubeconfig differs from the store's")
	}
	if err != nil {
		return outcome(it, false, err)
	}
	kept, err := im.cfg.Bundles.Connection(ctx, there)
	switch {
	case err != nil && nf.KindOf(err) == nf.NotFound:
		created = true
		err = im.cfg.Bundles.PutConnection(ctx, bundle.Connection{Region: there.ID, Registered: there.Created, Owner: there.Owner, Records: c.Records})
	case err == nil && !slices.EqualFunc(kept.Records, c.Records, maps.Equal):
		err = differsError("its connectivity records differ from the store's")
	}
	return outcome(it, created, err)
}
