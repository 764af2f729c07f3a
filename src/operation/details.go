package operation

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

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

// addEntries finds the entries of operations that do not exist.
func (r *staleSearch) addEntries(ctx context.Context) error {
	l := r.workers.ledger
	for _, entries := range [...]store.Table[listed]{l.bySubject, l.byScope} {
		for entry, err := range entries.All(ctx, "") {
			if err != nil {
				return err
			}
			if _, ok := r.known[entry.Operation]; !ok {
				r.found["entry of operation "+entry.Operation] = func(ctx context.Context) error { return l.remove(ctx, entry) }
			}
		}
	}
	return nil
}

// addDetails finds the details of operations that do not exist, and the batches
// of logs that their operations do not count. A stalled process may have written
// them late.
func (r *staleSearch) addDetails(ctx context.Context) error {
	l := r.workers.ledger
	for _, prefix := range [...]string{changesPrefix, logPrefix} {
		for key, err := range l.keys(ctx, prefix) {
			if err != nil {
				return err
			}
			operation, number, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
			batches, ok := r.known[operation]
			n, err := strconv.Atoi(number)
			switch {
			case !ok:
				r.found["details of operation "+operation] = func(ctx context.Context) error { return l.deleteDetails(ctx, operation) }
			case prefix == logPrefix && err == nil && n >= batches:
				r.found["batch "+number+" of the log of operation "+operation] = func(ctx context.Context) error {
					return nf.IgnoreNotFound(l.kv.Delete(ctx, key, store.Any))
				}
			}
		}
	}
	return nil
}

// addRequests finds the records of keys that stand for operations that do not
// exist: a process died before it had recorded the operation.
func (r *staleSearch) addRequests(ctx context.Context) error {
	for was, err := range r.workers.requests.All(ctx, "") {
		if err != nil {
			return err
		}
		if _, ok := r.known[was.Operation]; !ok {
			r.found["key of operation "+was.Operation] = func(ctx context.Context) error { return r.workers.deleteRequest(ctx, was.ID, was.Operation) }
		}
	}
	return nil
}
