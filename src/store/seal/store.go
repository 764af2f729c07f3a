package seal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
)

// Store encrypts the values of another store. Values have at most
// store.MaxValue bytes before encryption.
//
// In addition to the errors of store.KV, its methods return nf.Internal for a
// value that cannot be decrypted (it was damaged, moved, or never encrypted).
// They return nf.Unreachable with the reason ReasonKey if this process does not
// have the value's KEK, or "kms" if the key service does not respond. Keys
// below schema.Prefix are nf.Invalid, and List leaves them out.
type Store struct {
	kv         store.KV
	keys       Keys
	compressor compressor
}

var (
	_ store.KV     = (*Store)(nil)
	_ store.Writer = (*Store)(nil)
)

// New returns a store that encrypts the values of the KV. Close closes the KV.
func New(kv store.KV, keys Keys) *Store {
	return &Store{kv: kv, keys: keys, compressor: newCompressor()}
}

// Get implements store.KV.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := checkKey(key); err != nil {
		return store.Entry{}, err
	}
	e, err := s.kv.Get(ctx, key)
	if err != nil {
		return store.Entry{}, err
	}
	return s.Open(ctx, e)
}

// Put implements store.KV.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	if err := store.CheckSize(key, value, store.MaxValue); err != nil {
		return 0, err
	}
	stored, err := s.seal(ctx, key, value)
	if err != nil {
		return 0, err
	}
	return s.kv.Put(ctx, key, stored, expected)
}

// Delete implements store.KV. It needs no KEK.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return s.kv.Delete(ctx, key, expected)
}

// Write implements store.Writer.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	sealed := slices.Clone(ops)
	for i, op := range ops {
		err := checkKey(op.Key)
		if err == nil && op.Value != nil {
			sealed[i].Value, err = s.seal(ctx, op.Key, op.Value)
		}
		if err != nil {
			return nil, &store.WriteError{Index: i, Err: err}
		}
	}
	return store.Carry(ctx, s.kv, sealed)
}

// List implements store.KV. A value that cannot be decrypted ends the sequence.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range s.kv.List(ctx, prefix, start) {
			if err == nil && reserved(e.Key) {
				continue
			}
			if err == nil {
				e, err = s.Open(ctx, e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close implements store.KV.
func (s *Store) Close() error { return s.kv.Close() }

func (s *Store) seal(ctx context.Context, key string, value []byte) ([]byte, error) {
	kek, err := s.keys.Primary(ctx)
	if err != nil {
		return nil, fail(ctx, "seal", key, err)
	}
	return s.sealValue(ctx, kek, key, value)
}

// Open decrypts an entry of the KV.
func (s *Store) Open(ctx context.Context, e store.Entry) (store.Entry, error) {
	value, err := s.openValue(ctx, e.Key, e.Value)
	if err != nil {
		return store.Entry{}, err
	}
	e.Value = value
	return e, nil
}

// KeyInUse returns the id of a KEK that a store is encrypted with: that of the
// first encrypted record, otherwise the one that the store's schema names. It is
// "" if nothing is encrypted. KeyInUse needs no KEK.
func KeyInUse(ctx context.Context, kv store.KV) (string, error) {
	for e, err := range kv.List(ctx, "", "") {
		if err != nil {
			return "", fmt.Errorf("cannot determine the key that the store is encrypted with: %w", err)
		}
		if id, _, _, err := parse(e.Value); err == nil && !reserved(e.Key) {
			return id, nil
		}
	}
	rec, err := schema.Read(ctx, kv)
	return rec.SealedBy, nf.IgnoreNotFound(err)
}

func reserved(key string) bool { return strings.HasPrefix(key, schema.Prefix) }

func checkKey(key string) error {
	if reserved(key) {
		return nf.E(nf.Invalid, "use", "key "+strconv.Quote(key), fmt.Errorf("keys below %q are not encrypted", schema.Prefix))
	}
	return store.CheckKey(key)
}

// fail returns the error of a record. The end of the context, and a key service
// that does not respond, are temporary; everything else is damage.
func fail(ctx context.Context, op, key string, err error) error {
	e := &nf.Error{Kind: nf.Internal, Op: op, Subject: record(key), Err: err}
	switch {
	case ctx.Err() != nil:
		e.Kind, e.Err = nf.Unreachable, ctx.Err()
	case nf.KindOf(err) == nf.Unreachable:
		e.Kind, e.Reason = nf.Unreachable, nf.ReasonKMS
	}
	return e
}

// missing returns the error of a record whose KEK this process does not have.
func missing(key string, err error) error {
	return &nf.Error{Kind: nf.Unreachable, Op: "open", Subject: record(key), Reason: nf.ReasonKey,
		Err: fmt.Errorf("this process does not have its encryption key: %w", err)}
}

func record(key string) string { return "record " + strconv.Quote(key) }
