package store

import (
	"context"
	"iter"
)

// Watcher is a KV that reports its changes, and whose revisions increase with time.
type Watcher interface {
	// Watch returns the changes of the keys with the prefix that any process makes after
	// the call, each once and in the order of their revisions. If a change cannot be
	// reported, an error ends the sequence. Errors have the kinds of KV.
	Watch(ctx context.Context, prefix string) (iter.Seq2[Change, error], error)
}

// Change is one change of a key.
type Change struct {
	Entry

	Deleted bool // the revision is that of the deletion, and there is no value
}
