package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	gcInterval     = 10 * time.Minute // between scans for stale records
	retentionPause = time.Hour        // between scans for expired operations
)

// StaleRecords maps a description of each stale record to the function that
// removes it.
type StaleRecords map[string]func(context.Context) error

// Collector removes the stale records of a kind: those that crashed processes
// have left, and those that the store has written late. It also deletes the
// operations that are past their retention.
type Collector struct {
	Ledger    *Ledger
	Kind      nf.SubjectKind
	Retention time.Duration // how long ended operations are kept

	// Find adds the stale records that only the kind knows. It calls Ledger.Scan.
	Find func(ctx context.Context, found StaleRecords) error
	// Expire deletes what else goes with an expired operation, unless the operation
	// is still needed. Nil: there is nothing.
	Expire func(ctx context.Context, op nf.Operation) (needed bool, err error)
}

// All removes the stale records of a former process. No other process may be
// active, so one scan is enough.
func (c Collector) All(ctx context.Context) error {
	found, err := c.find(ctx)
	if err == nil {
		err = c.remove(ctx, found, found)
	}
	if err != nil {
		return fmt.Errorf("cannot remove what a former process left behind: %w", err)
	}
	return nil
}

func (c Collector) find(ctx context.Context) (StaleRecords, error) {
	found := StaleRecords{}
	err := c.Find(ctx, found)
	return found, err
}

// Run scans the store every ten minutes for stale records, and every hour for
// expired operations, until the context ends.
func (c Collector) Run(ctx context.Context) {
	var chores sync.WaitGroup
	chores.Go(func() { c.collect(ctx) })
	chores.Go(func() { c.expire(ctx) })
	chores.Wait()
}

// collect removes a record if two successive scans find it: a request that is
// being accepted has such records for a moment, too.
func (c Collector) collect(ctx context.Context) {
	var before StaleRecords
	for ctx.Err() == nil {
		now, err := c.find(ctx)
		if err == nil {
			err = c.remove(ctx, before, now)
		}
		if err != nil && ctx.Err() == nil {
			c.Ledger.workers.cfg.Logger.WarnContext(ctx, "failed to remove stale records", "error", err)
		}
		before = now
		delay.For(ctx, gcInterval, nil)
	}
}

// remove removes the records that both scans have found.
func (c Collector) remove(ctx context.Context, before, now StaleRecords) error {
	var errs []error
	for what, drop := range now {
		if before[what] == nil {
			continue
		}
		if err := drop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove %s: %w", what, err))
			continue
		}
		c.Ledger.workers.cfg.Logger.InfoContext(ctx, "stale record removed", "what", what)
	}
	return errors.Join(errs...)
}

// expire deletes expired operations periodically, until the context ends.
func (c Collector) expire(ctx context.Context) {
	log := c.Ledger.workers.cfg.Logger
	for ctx.Err() == nil {
		n, err := c.deleteExpired(ctx, c.Ledger.workers.cfg.Clock().Add(-c.Retention))
		switch {
		case err != nil && ctx.Err() == nil:
			log.WarnContext(ctx, "failed to delete expired operations", "error", err)
		case n > 0:
			log.InfoContext(ctx, "expired operations deleted", "operations", n, "older_than", c.Retention.String())
		}
		delay.For(ctx, retentionPause, nil)
	}
}

// deleteExpired deletes the operations that ended before the time.
func (c Collector) deleteExpired(ctx context.Context, before time.Time) (deleted int, err error) {
	// Collected first: a store need not support changes while it is listed.
	var old []nf.Operation
	for op, err := range c.Ledger.All(ctx) {
		if err != nil {
			return 0, err
		}
		if op.Subject.Kind == c.Kind && op.State.Final() && op.Finished.Before(before) {
			old = append(old, op)
		}
	}
	for _, op := range old {
		needed := false
		if c.Expire != nil {
			needed, err = c.Expire(ctx, op)
		}
		if err == nil && !needed {
			err = c.Ledger.forget(ctx, op)
		}
		if err != nil {
			return deleted, fmt.Errorf("cannot delete operation %s: %w", op.ID, err)
		}
		if !needed {
			deleted++
		}
	}
	return deleted, nil
}
