package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// read passes the entries of a backup to each, and returns the summary if the
// backup is complete. It returns an error of each unchanged.
func read(ctx context.Context, r io.Reader, identities []age.Identity, each func(key string, value []byte) error) (Summary, error) {
	if len(identities) == 0 {
		return Summary{}, nf.E(nf.Invalid, "open", "the backup", errors.New("an identity or a passphrase is required"))
	}
	src := &source{r: r}
	plain, err := age.Decrypt(src, identities...)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return Summary{}, nf.E(nf.Forbidden, "open", "the backup", errors.New("it was not encrypted to any of the identities or passphrases given"))
	}
	if err != nil {
		return Summary{}, src.fail(err)
	}
	d, err := newDecoder(plain)
	if err != nil {
		return Summary{}, src.fail(err)
	}
	for {
		if ctx.Err() != nil {
			return Summary{}, nf.E(nf.Unreachable, "read", "the backup", ctx.Err())
		}
		key, value, ok, err := d.next()
		if err != nil {
			return Summary{}, src.fail(err)
		}
		if !ok {
			return d.summary, nil
		}
		if err := each(key, value); err != nil {
			return Summary{}, err
		}
	}
}

// source distinguishes an error of the reader from an error in the data.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) fail(err error) error {
	if s.err != nil {
		return failRead(s.err)
	}
	if nf.KindOf(err) == nf.Unsupported {
		return err
	}
	return nf.E(nf.Invalid, "read", "the backup", fmt.Errorf("it is damaged, truncated or not a backup: %w", err))
}

func failRead(err error) error { return fmt.Errorf("cannot read the backup: %w", err) }
