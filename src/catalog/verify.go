package catalog

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// verify compares the files that are too large for memory with the digests that the
// package declares, as streams.
func verify(ctx context.Context, v render.Verifier, files render.Files, archive *io.SectionReader, limits render.Limits) error {
	var zip render.Zip
	opened := false
	return v.Verify(ctx, files, func(name string) (io.ReadCloser, error) {
		if !opened {
			var err error
			if zip, err = render.OpenZip(archive, archive.Size(), limits); err != nil {
				return nil, err
			}
			opened = true
		}
		content, _, err := zip.Open(name)
		return content, err
	})
}
