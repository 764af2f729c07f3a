package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// stored is an archive in the store, whether or not a record uses it.
type stored interface {
	io.ReaderAt
	Size() int64
}

// open reads the files of an archive, a gzipped tar, and reserves memory for them.
// The caller must release their size.
func (b *Bundles) open(ctx context.Context, a stored, memory *budget.Share) (render.Files, error) {
	var first [2]byte
	n, err := a.ReadAt(first[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the content: %w", err)
	}
	if string(first[:n]) != "\x1f\x8b" {
		return nil, &nf.Error{Kind: nf.Invalid, Op: "open", Subject: "archive", Reason: nf.ReasonGzip, Err: errors.New("it is not gzipped")}
	}
	most := b.cfg.Limits.MostRead(a.Size())
	if err := memory.Reserve(ctx, most); err != nil {
		return nil, err
	}
	files, _, err := render.Open(a, a.Size(), b.cfg.Limits)
	memory.Release(most - files.Size())
	return files, err
}

// upload stores an archive if accept returns nil. Swap writes the record and
// returns the content that it replaced, which is then released. If the result of the write
// is not known, neither is released.
func (b *Bundles) upload(ctx context.Context, content io.Reader, accept func(render.Files) error, swap func(context.Context, Content) (Content, error)) error {
	staged, done, err := b.blobs.Take(ctx, content, b.cfg.Limits.Archive)
	if err != nil {
		return err
	}
	defer done()
	if err := b.check(ctx, staged, accept); err != nil {
		return err
	}
	// Each upload has its own reference to the archive: a concurrent
	// replacement or removal releases only its own.
	fresh := Content{Upload: b.cfg.NewID(), Digest: staged.Digest(), Size: staged.Size()}
	if err := staged.Keep(ctx, fresh.holder()); err != nil {
		return err
	}
	old, err := swap(ctx, fresh)
	switch {
	case nf.KindOf(err) == nf.Unreachable:
		return err // the record may have been written, and refer to the new content
	case err != nil:
		return errors.Join(err, b.release(ctx, fresh))
	}
	return b.release(ctx, old)
}

// check returns the error of accept for the files of an archive.
func (b *Bundles) check(ctx context.Context, a stored, accept func(render.Files) error) error {
	memory := b.cfg.Memory.Open(b.cfg.Limits.MostRead(a.Size()))
	defer memory.Close()
	files, err := b.open(ctx, a, memory)
	if err != nil {
		return err
	}
	return accept(files)
}

func (b *Bundles) release(ctx context.Context, c Content) error {
	if c == (Content{}) {
		return nil
	}
	return b.blobs.Release(ctx, c.holder(), c.Digest)
}

// read returns the files of a stored archive and reserves memory for them.
func (b *Bundles) read(ctx context.Context, c Content, memory *budget.Share) (render.Files, error) {
	content, err := b.blobs.Content(ctx, c.Digest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the content: %w", err)
	}
	return b.open(ctx, content, memory)
}

// wholeChart returns the folder of the chart in an archive, as chartIn does. It
// returns nf.TooLarge if a file of the chart is too large to be read.
func wholeChart(files render.Files, named string) (string, error) {
	chart, err := chartIn(files, named)
	if err == nil {
		_, err = chartFiles(files, chart)
	}
	return chart, err
}

// chartIn returns the folder of the chart in an archive: the named one, or else
// the first by name that has a Chart.yaml.
func chartIn(files render.Files, named string) (string, error) {
	if own, bare := files["Chart.yaml"]; bare {
		return bareChart(own, named)
	}
	var folders []string
	for name := range files {
		folder, rest, _ := strings.Cut(name, "/")
		if rest == "Chart.yaml" && (named == "" || folder == named) {
			folders = append(folders, folder)
		}
	}
	if len(folders) > 0 {
		return slices.Min(folders), nil
	}
	if named != "" {
		return "", noChart(fmt.Errorf("there is no chart in the folder %q of the archive", named))
	}
	return "", noChart(errors.New("no folder of the archive has a Chart.yaml"))
}

func noChart(cause error) error {
	return &nf.Error{Kind: nf.Invalid, Op: "find", Subject: "the chart", Reason: nf.ReasonChart, Err: cause}
}

// chartFiles returns the files of the chart in an archive, by their paths
// relative to the parent of the chart's folder.
func chartFiles(files render.Files, chart string) (render.Files, error) {
	out := render.Files{}
	_, bare := files["Chart.yaml"]
	for name, content := range files {
		if bare {
			out[chart+"/"+name] = content
		} else if strings.HasPrefix(name, chart+"/") {
			out[name] = content
		}
	}
	if _, ok := out[chart+"/Chart.yaml"]; !ok {
		return nil, noChart(fmt.Errorf("there is no chart in the folder %q of the archive", chart))
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if out.PassedBy(name) {
			return nil, nf.E(nf.TooLarge, "read", "the chart", nf.Violations{{File: name, Message: "is too large to be read with the chart"}})
		}
	}
	return out, nil
}
