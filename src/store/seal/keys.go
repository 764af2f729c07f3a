package seal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Keys gives out the KEKs. Implementations are safe for concurrent use.
type Keys interface {
	// Primary returns the KEK that new values are sealed by.
	Primary(ctx context.Context) (KEK, error)

	// Find returns the KEK with the id, or nf.NotFound when it is not there,
	// not even after looking again for what others have added.
	Find(ctx context.Context, id string) (KEK, error)
}

// KEK is a key-encryption key: it wraps data keys, with authentication. It may
// be in a key service and not in this process. An error of kind nf.Unreachable
// says that the service does not answer, which is worth trying again.
type KEK interface {
	// ID names the KEK among all that a store ever sees: 1 to 255 bytes of
	// printable ASCII. It is stored in clear.
	ID() string

	// Wrap encrypts a data key, into at most 2048 bytes, and binds it to the
	// associated data.
	Wrap(ctx context.Context, dek, ad []byte) ([]byte, error)

	// Unwrap gives the data key back, or fails when it was not wrapped by this
	// KEK with the same associated data.
	Unwrap(ctx context.Context, wrapped, ad []byte) ([]byte, error)
}

var (
	errUnopened = errors.New("it does not open: it was damaged, or copied from another record, or sealed by another key of the same id")
	errUnsealed = errors.New("it cannot be encrypted")
)

// sealValue returns the stored form of a record's value.
func sealValue(ctx context.Context, kek KEK, key string, value []byte) ([]byte, error) {
	head, err := header(kek.ID())
	if err != nil {
		return nil, fail(ctx, "seal", key, err)
	}
	ad := slices.Concat(head, []byte(key))
	tink, err := aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), wrapper{kek, ad})
	if err != nil {
		return nil, fail(ctx, "seal", key, errUnsealed)
	}
	envelope, err := tink.EncryptWithContext(ctx, value, ad)
	if err != nil {
		return nil, fail(ctx, "seal", key, cause(err, errUnsealed))
	}
	return append(head, envelope...), nil
}

// openValue returns the value that is in a stored form.
func openValue(ctx context.Context, keys Keys, key string, stored []byte) ([]byte, error) {
	id, head, envelope, err := parse(stored)
	if err != nil {
		return nil, fail(ctx, "open", key, err)
	}
	kek, err := keys.Find(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return nil, missing(key, err)
	}
	if err != nil {
		return nil, fail(ctx, "open", key, err)
	}
	ad := slices.Concat(head, []byte(key))
	tink, err := aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), wrapper{kek, ad})
	if err != nil {
		return nil, fail(ctx, "open", key, errUnopened)
	}
	value, err := tink.DecryptWithContext(ctx, envelope, ad)
	if err != nil {
		return nil, fail(ctx, "open", key, cause(err, errUnopened))
	}
	return value, nil
}

// wrapper has Tink's envelope, which has no associated data for its data keys,
// bind them to ours.
type wrapper struct {
	kek KEK
	ad  []byte
}

// EncryptWithContext implements tink.AEADWithContext.
func (w wrapper) EncryptWithContext(ctx context.Context, dek, _ []byte) ([]byte, error) {
	wrapped, err := w.kek.Wrap(ctx, dek, w.ad)
	if err == nil && len(wrapped) > maxWrapped {
		err = fmt.Errorf("the wrapped data key has %d bytes, and %d is the limit", len(wrapped), maxWrapped)
	}
	return wrapped, err
}

// DecryptWithContext implements tink.AEADWithContext.
func (w wrapper) DecryptWithContext(ctx context.Context, wrapped, _ []byte) ([]byte, error) {
	return w.kek.Unwrap(ctx, wrapped, w.ad)
}

// cause returns what may be told of a failure to encrypt or decrypt: all, when
// a key service does not answer, and otherwise a text of our own.
func cause(err, otherwise error) error {
	if nf.KindOf(err) == nf.Unreachable {
		return err
	}
	return otherwise
}
