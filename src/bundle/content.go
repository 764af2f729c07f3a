package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// open unpacks an archive, a gzipped tar, and reserves memory for its files.
// The caller must release their size.
func (b *Bundles) open(ctx context.Context, archive *budget.Buffer) (render.Files, error) {
	content := archive.Bytes()
	if !bytes.HasPrefix(content, []byte("\x1f\x8b")) {
		return nil, &nf.Error{Kind: nf.Invalid, Op: "open", Subject: "archive", Reason: nf.ReasonGzip, Err: errors.New("it is not gzipped")}
	}
	most := b.cfg.Limits.MostUnpacked(int64(len(content)))
	if err := archive.Reserve(ctx, most); err != nil {
		return nil, err
	}
	files, _, err := render.Archive(content, b.cfg.Limits)
	archive.Release(most - files.Size())
	return files, err
}

// upload stores an archive if accept returns nil. Swap writes the record and
// returns the content that it replaced, which is then released.
func (b *Bundles) upload(ctx context.Context, content io.Reader, accept func(render.Files) error, swap func(context.Context, Content) (Content, error)) error {
	archive, done, err := b.cfg.Memory.Take(ctx, content)
	if err != nil {
		return err
	}
	defer done()
	files, err := b.open(ctx, archive)
	if err != nil {
		return err
	}
	err = accept(files)
	archive.Release(files.Size())
	if err != nil {
		return err
	}
	// Each upload has its own reference to the archive: a concurrent
	// replacement or removal releases only its own.
	fresh := Content{Upload: b.cfg.NewID()}
	if fresh.Digest, fresh.Size, err = b.blobs.Put(ctx, fresh.holder(), bytes.NewReader(archive.Bytes()), b.cfg.Limits.Archive); err != nil {
		return err
	}
	old, err := swap(ctx, fresh)
	if err != nil {
		return errors.Join(err, b.release(ctx, fresh))
	}
	return b.release(ctx, old)
}

func (b *Bundles) release(ctx context.Context, c Content) error {
	if c == (Content{}) {
		return nil
	}
	return b.blobs.Release(ctx, c.holder(), c.Digest)
}

// read returns the files of a stored archive and reserves memory for them. The
// archive itself does not stay in the buffer.
func (b *Bundles) read(ctx context.Context, c Content, memory *budget.Buffer) (render.Files, error) {
	defer memory.Drop()
	content, size, err := b.blobs.Open(ctx, c.Digest)
	if err == nil {
		err = memory.Grow(ctx, size)
	}
	if err == nil {
		err = memory.Fill(ctx, content)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the content: %w", err)
	}
	return b.open(ctx, memory)
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
	return out, nil
}
