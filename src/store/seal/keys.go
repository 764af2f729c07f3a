package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Keys provides the KEKs. Implementations are safe for concurrent use.
type Keys interface {
	// Primary returns the KEK that encrypts new values.
	Primary(ctx context.Context) (KEK, error)

	// Find returns the KEK with the id. It returns nf.NotFound if there is none,
	// even after a check for KEKs that other processes have added.
	Find(ctx context.Context, id string) (KEK, error)
}

// KEK is a key encryption key: it wraps data keys, with authentication. It may
// be in an external key service. An error of kind nf.Unreachable means that the
// service does not respond; the caller may retry.
type KEK interface {
	// ID is unique among all KEKs that a store ever uses: 1 to 255 bytes of
	// printable ASCII. It is stored unencrypted.
	ID() string

	// Wrap encrypts a data key, into at most 2048 bytes, and binds it to the
	// associated data.
	Wrap(ctx context.Context, dek, ad []byte) ([]byte, error)

	// Unwrap returns the data key. It fails unless the data key was wrapped by
	// this KEK with the same associated data.
	Unwrap(ctx context.Context, wrapped, ad []byte) ([]byte, error)
}

var (
	errUnopened = errors.New("decryption failed: it was damaged, copied from another record, or encrypted with another key of the same id")
	errUnsealed = errors.New("it cannot be encrypted")
)

// wrapper binds data keys to our associated data, because Tink's envelope has
// none for them.
type wrapper struct {
	kek KEK
	ad  []byte
}

// EncryptWithContext implements tink.AEADWithContext.
func (w wrapper) EncryptWithContext(ctx context.Context, dek, _ []byte) ([]byte, error) {
	wrapped, err := w.kek.Wrap(ctx, dek, w.ad)
	if err == nil && len(wrapped) > maxWrapped {
		err = fmt.Errorf("the wrapped data key has %d bytes; the limit is %d", len(wrapped), maxWrapped)
	}
	return wrapped, err
}

// DecryptWithContext implements tink.AEADWithContext.
func (w wrapper) DecryptWithContext(ctx context.Context, wrapped, _ []byte) ([]byte, error) {
	return w.kek.Unwrap(ctx, wrapped, w.ad)
}

// cause returns the part of an encryption or decryption error that may be
// shown: all of it if a key service does not respond, otherwise a fixed text.
func cause(err, otherwise error) error {
	if nf.KindOf(err) == nf.Unreachable {
		return err
	}
	return otherwise
}
