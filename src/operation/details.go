package operation

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The prefixes of the keys of an operation's details. The operation's id follows,
// and then the number of the step or the batch.
const (
	changesPrefix = "changes/"
	logPrefix     = "operationlogs/"
)

// keys yields the keys of the store that begin with the prefix.
func (l *Ledger) keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range l.kv.List(ctx, prefix, "") {
			if err != nil {
				err = fmt.Errorf("cannot list the details of operations: %w", err)
			}
			if !yield(e.Key, err) || err != nil {
				return
			}
		}
	}
}

// deleteDetails deletes an operation's changes and log, the last ones first, so
// that a log of which a part was deleted has no gap.
func (l *Ledger) deleteDetails(ctx context.Context, operation string) error {
	for _, prefix := range [...]string{changesPrefix, logPrefix} {
		// Collected first: a store need not support changes while it is listed.
		var keys []string
		for key, err := range l.keys(ctx, prefix+operation+"/") {
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
		for _, key := range slices.Backward(keys) {
			if err := nf.IgnoreNotFound(l.kv.Delete(ctx, key, store.Any)); err != nil {
				return fmt.Errorf("cannot delete the details of operation %s: %w", operation, err)
			}
		}
	}
	return nil
}
