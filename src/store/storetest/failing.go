package storetest

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Failing is a database that fails on demand. Both functions are called with
// the method ("Get", "Put", "Delete", "List") and the key or prefix. They may
// be nil, and may be called concurrently. Close is passed on.
type Failing struct {
	store.KV

	// Fail is called before a call. An error is returned instead of making the
	// call.
	Fail func(method, key string) error

	// Lose is called after a successful call. An error is returned although the
	// call was carried out, as if its response was lost.
	Lose func(method, key string) error
}

var _ store.KV = Failing{}

// Get implements store.KV.
func (f Failing) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := ask(f.Fail, "Get", key); err != nil {
		return store.Entry{}, err
	}
	e, err := f.KV.Get(ctx, key)
	if err == nil {
		err = ask(f.Lose, "Get", key)
	}
	return e, err
}

// Put implements store.KV.
func (f Failing) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := ask(f.Fail, "Put", key); err != nil {
		return 0, err
	}
	rev, err := f.KV.Put(ctx, key, value, expected)
	if err == nil {
		err = ask(f.Lose, "Put", key)
	}
	return rev, err
}

// Delete implements store.KV.
func (f Failing) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := ask(f.Fail, "Delete", key); err != nil {
		return err
	}
	err := f.KV.Delete(ctx, key, expected)
	if err == nil {
		err = ask(f.Lose, "Delete", key)
	}
	return err
}

// List implements store.KV. Lose is called after the whole list was read.
func (f Failing) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if err := ask(f.Fail, "List", prefix); err != nil {
			yield(store.Entry{}, err)
			return
		}
		for e, err := range f.KV.List(ctx, prefix, start) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := ask(f.Lose, "List", prefix); err != nil {
			yield(store.Entry{}, err)
		}
	}
}

func ask(hook func(method, key string) error, method, key string) error {
	if hook == nil {
		return nil
	}
	return hook(method, key)
}
