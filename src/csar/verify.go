package csar

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Verify compares files with the hashes that the CSAR declares. It reads those whose
// content is nil by open, or leaves them out if open is nil. It returns nf.Invalid and
// names each file that differs, and an error of open unchanged.
func (c CSAR) Verify(ctx context.Context, files map[string][]byte, open func(name string) (io.ReadCloser, error)) error {
	var wrong nf.Violations
	for _, a := range c.VNFD.Artifacts {
		content, held := files[a.Path]
		switch {
		case a.Hash == "" || isURL(a.Path) || content == nil && open == nil:
			continue
		case !held:
			return fmt.Errorf("cannot verify %q: it is not a file of the CSAR", a.Path)
		case ctx.Err() != nil:
			return fmt.Errorf("cannot verify the CSAR: %w", context.Cause(ctx))
		}
		same, err := verify(ctx, a, content, open)
		if err != nil {
			return err
		}
		if !same && len(wrong) < maxFaults {
			wrong = append(wrong, nf.Violation{File: a.Path, Message: fmt.Sprintf("its %s differs from the one that %s declares", a.Algorithm, c.lists())})
		}
	}
	if wrong != nil {
		return nf.E(nf.Invalid, "verify", "the CSAR", wrong)
	}
	return nil
}

func (c CSAR) lists() string {
	if c.VNFD.Manifest != "" {
		return c.VNFD.Manifest
	}
	return MetaFile
}

// verify reports whether an artifact has its hash.
func verify(ctx context.Context, a nf.PackageArtifact, content []byte, open func(name string) (io.ReadCloser, error)) (bool, error) {
	var from io.Reader = bytes.NewReader(content)
	if content == nil {
		opened, err := open(a.Path)
		if err != nil {
			return false, err
		}
		defer opened.Close()
		from = opened
	}
	algorithm, _ := hashOf(a.Algorithm)
	sum := algorithm.New()
	if _, err := io.Copy(sum, contextReader{ctx, from}); err != nil {
		return false, fmt.Errorf("cannot read %q: %w", a.Path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == a.Hash, nil
}

// contextReader ends with the context, since a large file takes long.
type contextReader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	from io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.from.Read(p)
}
