package storetest

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Counting is a database that counts the entries that its lists yield. It is not
// safe for concurrent lists.
type Counting struct {
	store.KV

	Entries int
}

// List implements store.KV.
func (c *Counting) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range c.KV.List(ctx, prefix, start) {
			c.Entries++
			if !yield(e, err) {
				return
			}
		}
	}
}
