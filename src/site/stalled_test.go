package site_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// frozenKV is a store that a replica reaches until it is frozen.
type frozenKV struct {
	store.KV

	frozen atomic.Bool
}

func (f *frozenKV) freeze()  { f.frozen.Store(true) }
func (f *frozenKV) is() bool { return f.frozen.Load() }

func (f *frozenKV) away() error {
	if f.is() {
		return nf.E(nf.Unreachable, "use", "the store", errors.New("it is away"))
	}
	return nil
}

func (f *frozenKV) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := f.away(); err != nil {
		return store.Entry{}, err
	}
	return f.KV.Get(ctx, key)
}

func (f *frozenKV) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := f.away(); err != nil {
		return 0, err
	}
	return f.KV.Put(ctx, key, value, expected)
}

func (f *frozenKV) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := f.away(); err != nil {
		return err
	}
	return f.KV.Delete(ctx, key, expected)
}

func (f *frozenKV) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	if err := f.away(); err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
	}
	return f.KV.List(ctx, prefix, start)
}
