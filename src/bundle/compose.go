package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Composed is a definition with a profile applied.
type Composed struct {
	Package    string // id of the package composed from both
	Definition Definition
	Profile    Profile
}

// composition records a composed package. Its digest detects that the package
// under that id was replaced by another upload.
type composition struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"`
	Created time.Time `json:"created"`
}

// layers are the inputs of one composed package.
type layers struct {
	chart   string
	content Content // contains the chart's folder
	profile Profile
	strange bool // the chart is not the one that the profile was made for
}

// Compose returns the package of a definition with a profile, and composes it
// if it does not exist. It returns nf.NotFound if either does not exist,
// nf.Conflict if either has no content, and nf.Invalid if they do not fit
// together or are not a chart.
func (b *Bundles) Compose(ctx context.Context, k Key) (Composed, error) {
	c, l, err := b.layers(ctx, k)
	if err != nil {
		return Composed{}, err
	}
	c.Package, err = b.ensure(ctx, l)
	return c, err
}

// ComposeTemplate returns the package of a configuration template with a
// profile. It uses the template's own chart, or the definition's if the
// template has none. Errors are those of Compose.
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

// has reports whether a profile has an overlay, which may be empty.
func (p Profile) has() bool { return p.Bare || p.Content != Content{} }

// id returns the package's id, which is derived from all of its inputs.
func (l layers) id() string {
	const way = "1" // version of the composition; a new version gives other ids for the same inputs
	sum := sha256.Sum256([]byte(strings.Join([]string{way, l.content.Digest, l.profile.Content.Digest, l.chart, fmt.Sprint(l.strange)}, "\x00")))
	return "rb-" + hex.EncodeToString(sum[:8])
}

// ensure composes a package unless it exists.
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
	defer archive.Discard(ctx)
	// Order matters: Sweep does not find a package that has no record.
	err = b.composed.Put(ctx, id, composition{ID: id, Digest: archive.Digest(), Created: b.cfg.Clock().UTC()})
	if err != nil {
		return "", err
	}
	if _, _, err := b.cfg.Packages.Upload(ctx, nf.Package{ID: id}, archive); err != nil {
		return "", err
	}
	return id, nil
}

// isThere reports whether the package exists and has the content that was
// composed.
func (b *Bundles) isThere(ctx context.Context, id string) (bool, error) {
	record, err := b.composed.Get(ctx, id)
	if err != nil {
		return false, nf.IgnoreNotFound(err)
	}
	p, err := b.cfg.Packages.Package(ctx, id)
	if err != nil {
		return false, nf.IgnoreNotFound(err)
	}
	return p.Digest == record.Digest, nil
}

// compose stages the archive of a package. The same layers give the same bytes.
func (b *Bundles) compose(ctx context.Context, l layers) (*store.Staged, error) {
	memory := b.cfg.Memory.Open(b.cfg.Limits.MostRead(l.content.Size) + b.cfg.Limits.MostRead(l.profile.Content.Size))
	defer memory.Close()
	files, err := b.read(ctx, l.content, memory)
	if err != nil {
		return nil, err
	}
	if files, err = chartFiles(files, l.chart); err != nil {
		return nil, err
	}
	if l.profile.Content != (Content{}) {
		overlaid, err := b.read(ctx, l.profile.Content, memory)
		if err != nil {
			return nil, err
		}
		over, err := readOverlay(overlaid)
		if err != nil {
			return nil, nf.E(nf.KindOf(err), "use", l.profile.subject(), err)
		}
		if err := over.lay(files, l.chart, l.strange); err != nil {
			return nil, err
		}
	}
	return stage(ctx, b.blobs, files, b.cfg.Limits.Archive)
}

// stage packs files into an archive of at most limit bytes and streams it into the
// store.
func stage(ctx context.Context, blobs store.Blobs, files render.Files, limit int64) (*store.Staged, error) {
	r, w := io.Pipe()
	var packing errgroup.Group
	packing.Go(func() error {
		err := pack(w, files)
		_ = w.CloseWithError(err) // never fails
		return err
	})
	staged, err := blobs.Stage(ctx, r, limit)
	_ = r.CloseWithError(err) // ends the packing; never fails
	if packed := packing.Wait(); err == nil && packed != nil {
		staged.Discard(ctx)
		return nil, packed
	}
	return staged, err
}

// pack writes a gzipped tar of files, sorted by name.
func pack(out io.Writer, files render.Files) error {
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(head); err != nil {
			return fmt.Errorf("cannot pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("cannot pack the chart: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("cannot pack the chart: %w", err)
	}
	return nil
}
