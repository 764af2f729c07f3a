package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// open unpacks an uploaded archive, which is a gzipped tar.
func (b *Bundles) open(archive []byte) (render.Files, error) {
	if !bytes.HasPrefix(archive, []byte("\x1f\x8b")) {
		return nil, &nf.Error{Kind: nf.Invalid, Op: "open", Subject: "archive", Reason: "gzip", Err: errors.New("it is not gzipped")}
	}
	files, _, err := render.Archive(archive, b.cfg.Limits)
	return files, err
}

// replace keeps an archive and lets go of the one that swap, which writes the
// record, says it has replaced.
func (b *Bundles) replace(ctx context.Context, archive []byte, swap func(context.Context, Content) (Content, error)) error {
	// Each upload holds the archive for itself: one that is replaced or removed
	// beside this one lets go of its own hold only.
	fresh := Content{Upload: b.cfg.NewID()}
	var err error
	if fresh.Digest, fresh.Size, err = b.blobs.Put(ctx, fresh.holder(), bytes.NewReader(archive), b.cfg.Limits.Archive); err != nil {
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

// read returns the files of an archive that is kept.
func (b *Bundles) read(ctx context.Context, c Content) (render.Files, error) {
	archive, err := b.blobs.ReadAll(ctx, c.Digest)
	if err != nil {
		return nil, fmt.Errorf("cannot read the content: %w", err)
	}
	return b.open(archive)
}

// chartIn returns the folder of the chart in an archive: the one that is named,
// or else the first by name that has a Chart.yaml.
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
	return &nf.Error{Kind: nf.Invalid, Op: "find", Subject: "the chart", Reason: "chart", Err: cause}
}

// chartFiles returns the files of the chart in an archive, by their paths from
// the folder that the chart's folder is in.
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
