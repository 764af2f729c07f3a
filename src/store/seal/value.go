package seal

import (
	"context"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// sealValue returns the stored form of a record's value.
func (s *Store) sealValue(ctx context.Context, kek KEK, key string, value []byte) ([]byte, error) {
	head, err := header(kek.ID())
	if err != nil {
		return nil, fail(ctx, "seal", key, err)
	}
	ad := slices.Concat(head, []byte(key))
	tink, err := aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), wrapper{kek, ad})
	if err != nil {
		return nil, fail(ctx, "seal", key, errUnsealed)
	}
	envelope, err := tink.EncryptWithContext(ctx, s.compressor.pack(value), ad)
	if err != nil {
		return nil, fail(ctx, "seal", key, cause(err, errUnsealed))
	}
	return append(head, envelope...), nil
}

// openValue returns the value in a stored form.
func (s *Store) openValue(ctx context.Context, key string, stored []byte) ([]byte, error) {
	id, head, envelope, err := parse(stored)
	if err != nil {
		return nil, fail(ctx, "open", key, err)
	}
	kek, err := s.keys.Find(ctx, id)
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
	if stored[len(magic)] == plain {
		return value, nil
	}
	if value, err = s.compressor.unpack(value); err != nil {
		return nil, fail(ctx, "open", key, err)
	}
	return value, nil
}
