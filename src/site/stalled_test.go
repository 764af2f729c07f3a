package site_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// stalledKV is a store that a replica reaches until it is stalled.
type stalledKV struct {
	store.KV

	stalled atomic.Bool
}

func (f *stalledKV) stall()   { f.stalled.Store(true) }
func (f *stalledKV) is() bool { return f.stalled.Load() }

func (f *stalledKV) failIfStalled() error {
	if f.is() {
		return nf.E(nf.Unreachable, "use", "the store", errors.New("it is away"))
	}
	return nil
}

func (f *stalledKV) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := f.failIfStalled(); err != nil {
		return store.Entry{}, err
	}
	return f.KV.Get(ctx, key)
}

func (f *stalledKV) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := f.failIfStalled(); err != nil {
		return 0, err
	}
	return f.KV.Put(ctx, key, value, expected)
}

func (f *stalledKV) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := f.failIfStalled(); err != nil {
		return err
	}
	return f.KV.Delete(ctx, key, expected)
}

func (f *stalledKV) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	if err := f.failIfStalled(); err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
	}
	return f.KV.List(ctx, prefix, start)
}
