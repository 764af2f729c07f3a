package operation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
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

// findDetails finds what is left of operations that do not exist, of any kind:
// their changes, logs and keys, and the batches of logs that their operations do
// not count.
func (l *Ledger) findDetails(ctx context.Context, found StaleRecords) error {
	known := map[string]int{} // the number of batches of each operation's log
	for op, err := range l.All(ctx) {
		if err != nil {
			return err
		}
		known[op.ID] = op.Batches
		if !op.State.Final() {
			known[op.ID] = math.MaxInt // it may count more in a moment
		}
	}
	return errors.Join(l.addDetails(ctx, found, known), l.addRequests(ctx, found, known))
}

// addDetails finds the details of operations that do not exist, and the batches
// of logs that their operations do not count. The caller gives the number of batches of
// each operation. A stalled process may have written them late.
func (l *Ledger) addDetails(ctx context.Context, found StaleRecords, known map[string]int) error {
	for _, prefix := range [...]string{changesPrefix, logPrefix} {
		for key, err := range l.keys(ctx, prefix) {
			if err != nil {
				return err
			}
			operation, number, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
			batches, ok := known[operation]
			n, err := strconv.Atoi(number)
			switch {
			case !ok:
				found["details of operation "+operation] = func(ctx context.Context) error { return l.deleteDetails(ctx, operation) }
			case prefix == logPrefix && err == nil && n >= batches:
				found["batch "+number+" of the log of operation "+operation] = func(ctx context.Context) error {
					return nf.IgnoreNotFound(l.kv.Delete(ctx, key, store.Any))
				}
			}
		}
	}
	return nil
}

// addRequests finds the records of keys that stand for operations that do not
// exist: a process died before it had recorded the operation.
func (l *Ledger) addRequests(ctx context.Context, found StaleRecords, known map[string]int) error {
	for r, err := range l.workers.requests.All(ctx, "") {
		if err != nil {
			return err
		}
		if _, ok := known[r.Operation]; !ok {
			found["key of operation "+r.Operation] = func(ctx context.Context) error { return l.workers.forgetRequest(ctx, r.ID, r.Operation) }
		}
	}
	return nil
}
