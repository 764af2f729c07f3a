package storetest

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Failing is a database that fails when it is told to. Both functions are asked
// with the method ("Get", "Put", "Delete", "List") and the key or prefix, may
// be nil, and may be called from several goroutines; Close is passed on.
type Failing struct {
	store.KV

	// Fail is asked before a call. An error is returned in the place of the call.
	Fail func(method, key string) error

	// Lose is asked after a call that succeeded. An error is returned though the
	// call was carried out: its answer was lost on the way.
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

// List implements store.KV. Lose is asked when the whole list was read.
func (f Failing) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if err := ask(f.Fail, "List", prefix); err != nil {
			yield(store.Entry{}, err)
			return
		}
		for e, err := range f.KV.List(ctx, prefix) {
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
