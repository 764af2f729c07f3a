package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Composed is a definition under a profile.
type Composed struct {
	Package    string // the id of the package that they are together
	Definition Definition
	Profile    Profile
}

// composition is the record of a package that was composed. Its digest tells
// it from one that somebody else has put under that id.
type composition struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"`
	Created time.Time `json:"created"`
}

// layers are what one package is composed of.
type layers struct {
	chart   string
	content Content // has the chart's folder
	profile Profile
	strange bool // the chart is not the one that the profile was made for
}

// Compose returns the package that a definition and a profile are, which is
// there then: nf.NotFound without one of the two, nf.Conflict when one has no
// content, nf.Invalid when they do not fit each other or are no chart.
func (b *Bundles) Compose(ctx context.Context, k Key) (Composed, error) {
	c, l, err := b.layers(ctx, k)
	if err != nil {
		return Composed{}, err
	}
	c.Package, err = b.ensure(ctx, l)
	return c, err
}

// ComposeTemplate returns the package of a configuration template under a
// profile: the template's own chart, or without one the definition's. Errors are
// those of Compose.
func (b *Bundles) ComposeTemplate(ctx context.Context, k Key, template string) (string, error) {
	t, err := b.Template(ctx, TemplateKey{k.Name, k.Version, template})
	if err != nil {
		return "", err
	}
	if !t.has() {
		c, err := b.Compose(ctx, k)
		return c.Package, err
	}
	p, err := b.Profile(ctx, k)
	if err != nil {
		return "", err
	}
	if !p.has() {
		return "", withoutContent(p.subject())
	}
	return b.ensure(ctx, templateLayers(t, p))
}

func templateLayers(t Template, p Profile) layers {
	return layers{chart: t.Chart, content: t.Content, profile: p, strange: true}
}

func (b *Bundles) layers(ctx context.Context, k Key) (Composed, layers, error) {
	p, err := b.Profile(ctx, k)
	if err != nil {
		return Composed{}, layers{}, err
	}
	d, err := b.Definition(ctx, k.Name, k.Version)
	switch {
	case err != nil:
		return Composed{}, layers{}, err
	case d.Content == Content{}:
		return Composed{}, layers{}, withoutContent(d.subject())
	case !p.has():
		return Composed{}, layers{}, withoutContent(p.subject())
	}
	return Composed{Definition: d, Profile: p}, layers{chart: d.Chart, content: d.Content, profile: p}, nil
}

// has reports whether a profile has an overlay, be it an empty one.
func (p Profile) has() bool { return p.Bare || p.Content != Content{} }

// id returns the id of the package: it says what goes into it.
func (l layers) id() string {
	const way = "1" // of composing; another one makes other packages of the same
	sum := sha256.Sum256([]byte(strings.Join([]string{way, l.content.Digest, l.profile.Content.Digest, l.chart, fmt.Sprint(l.strange)}, "\x00")))
	return "rb-" + hex.EncodeToString(sum[:8])
}

// ensure composes a package unless it is there.
func (b *Bundles) ensure(ctx context.Context, l layers) (string, error) {
	id := l.id()
	there, err := b.isThere(ctx, id)
	if err != nil || there {
		return id, err
	}
	archive, err := b.compose(ctx, l)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(archive)
	// The record comes first: a package without one would never be swept.
	err = b.composed.Put(ctx, id, composition{ID: id, Digest: "sha256:" + hex.EncodeToString(sum[:]), Created: b.cfg.Clock().UTC()})
	if err != nil {
		return "", err
	}
	if _, _, err := b.cfg.Packages.Upload(ctx, nf.Package{ID: id}, bytes.NewReader(archive)); err != nil {
		return "", err
	}
	return id, nil
}

// isThere reports whether the package is there, and is the one that was
// composed.
func (b *Bundles) isThere(ctx context.Context, id string) (bool, error) {
	record, err := b.composed.Get(ctx, id)
	if err != nil {
		return false, nf.UnlessGone(err)
	}
	p, err := b.cfg.Packages.Package(ctx, id)
	if err != nil {
		return false, nf.UnlessGone(err)
	}
	return p.Digest == record.Digest, nil
}

// compose returns the archive of a package. The same layers give the same bytes.
func (b *Bundles) compose(ctx context.Context, l layers) ([]byte, error) {
	files, err := b.read(ctx, l.content)
	if err != nil {
		return nil, err
	}
	if files, err = chartFiles(files, l.chart); err != nil {
		return nil, err
	}
	if l.profile.Content != (Content{}) {
		archive, err := b.read(ctx, l.profile.Content)
		if err != nil {
			return nil, err
		}
		over, err := readOverlay(archive)
		if err != nil {
			return nil, nf.E(nf.KindOf(err), "use", l.profile.subject(), err)
		}
		if err := over.lay(files, l.chart, l.strange); err != nil {
			return nil, err
		}
	}
	return pack(files)
}

// pack returns a gzipped tar of files in the order of their names.
func pack(files render.Files) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack the chart: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack the chart: %w", err)
	}
	return out.Bytes(), nil
}
