package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	maxFailures = 10               // operations that one search tries in vain to delete
	gcDelay     = time.Minute      // before the first search for stale records: it reads every record, and a start does not wait for it
	gcInterval  = 10 * time.Minute // between two searches
)

// StaleRecords maps a description of each stale record to the function that
// removes it.
type StaleRecords map[string]func(context.Context) error

// Sweep is one search for the stale records of a kind: those that crashed
// processes have left, and those that the store has written late. Its methods are
// called in this order.
type Sweep interface {
	// Subjects reads the kind's subjects, by Locks.Scan.
	Subjects(ctx context.Context, named Named) error
	// Operation is called for every operation of the kind, in the order of their
	// acceptance.
	Operation(op nf.Operation)
	// Find adds the stale records that only the kind knows.
	Find(ctx context.Context, found StaleRecords) error
}

// collector removes the stale records of all kinds, and the operations that are
// past their retention.
type collector struct {
	workers *Workers
	before  StaleRecords // what the last search has found; nil: there was none
}

// staleSearch is one search. It reads every record once.
type staleSearch struct {
	workers *Workers
	now     time.Time
	sweeps  map[nf.SubjectKind]Sweep
	named   Named
	known   map[string]int // the number of batches of each operation's log
	live    []Job          // operations that have not ended
	expired []string       // ids of operations past their retention that no subject needs: there may be very many
	found   StaleRecords
	locks   StaleRecords // those of found that are locks

	complete bool // expired has all
}

// run searches every ten minutes, until the context ends. Requests need no search: what a
// former process has left of a request that it was accepting is found through its
// claim, and removed by the replica that takes the claim.
func (c *collector) run(ctx context.Context) {
	delay.For(ctx, gcDelay, nil)
	for ctx.Err() == nil {
		if err := c.collect(ctx); err != nil && ctx.Err() == nil {
			c.workers.cfg.Logger.WarnContext(ctx, "failed to remove stale records", "error", err)
		}
		delay.For(ctx, gcInterval, nil)
	}
}

// collect deletes expired operations, and removes a record if two successive searches
// find it: a request that is being accepted has such records for a moment, too. But if
// there is only one process, the first search removes locks: no request can use their
// subjects, and no operation that has ended or does not exist locks again.
func (c *collector) collect(ctx context.Context) error {
	r, err := c.search(ctx)
	if err == nil {
		switch {
		case c.before != nil:
			err = c.remove(ctx, c.before, r.found)
		case c.workers.cfg.Sole:
			err = c.remove(ctx, r.locks, r.locks)
		}
	}
	if r.complete {
		err = errors.Join(err, c.expire(ctx, r.expired))
	}
	c.before = r.found
	return err
}

// remove removes the records that both searches have found.
func (c *collector) remove(ctx context.Context, before, now StaleRecords) error {
	var errs []error
	for what, drop := range now {
		if before[what] == nil {
			continue
		}
		if err := drop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove %s: %w", what, err))
			continue
		}
		c.workers.cfg.Logger.InfoContext(ctx, "stale record removed", "what", what)
	}
	return errors.Join(errs...)
}

// expire deletes expired operations. It reads each again when it deletes it.
func (c *collector) expire(ctx context.Context, expired []string) error {
	deleted := 0
	var errs []error
	for _, id := range expired {
		op, err := c.workers.ledger.Get(ctx, id)
		if err != nil && nf.KindOf(err) == nf.NotFound { // another replica has deleted it
			continue
		}
		if err == nil {
			err = c.workers.kinds[op.Subject.Kind].Expire(ctx, op)
		}
		if err == nil {
			err = c.workers.ledger.deleteRecords(ctx, op)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot delete operation %s: %w", id, err))
			if ctx.Err() != nil || nf.KindOf(err) == nf.Unreachable || len(errs) == maxFailures {
				break
			}
			continue
		}
		deleted++
	}
	if deleted > 0 {
		c.workers.cfg.Logger.InfoContext(ctx, "expired operations deleted", "operations", deleted)
	}
	return errors.Join(errs...)
}

// search reads the store. After an error, the result has only a part of the stale
// records.
func (c *collector) search(ctx context.Context) (*staleSearch, error) {
	r := &staleSearch{
		workers: c.workers, now: c.workers.cfg.Clock(), sweeps: map[nf.SubjectKind]Sweep{},
		named: Named{last: map[string]bool{}, locks: map[string]heldLock{}}, known: map[string]int{}, found: StaleRecords{},
	}
	// Order matters: an operation is recorded before its subject names it, and
	// before its details.
	if err := r.readSubjects(ctx); err != nil {
		return r, err
	}
	for op, err := range c.workers.ledger.All(ctx) {
		if err != nil {
			return r, err
		}
		r.add(op)
	}
	r.complete = true
	for _, lock := range r.named.locks { // of operations that have ended or do not exist
		r.found[lock.what] = func(ctx context.Context) error { return lock.release(ctx, r.now.UTC()) }
	}
	r.locks = maps.Clone(r.found)
	var errs []error
	for _, sweep := range r.sweeps {
		errs = append(errs, sweep.Find(ctx, r.found))
	}
	errs = append(errs, r.addEntries(ctx), r.addDetails(ctx), r.addRequests(ctx), c.workers.Restore(ctx, r.live))
	return r, errors.Join(errs...)
}

func (r *staleSearch) readSubjects(ctx context.Context) error {
	for kind, p := range r.workers.kinds {
		if p.Sweep == nil {
			continue
		}
		r.sweeps[kind] = p.Sweep()
		if err := r.sweeps[kind].Subjects(ctx, r.named); err != nil {
			return err
		}
	}
	return nil
}

// add adds an operation to the search.
func (r *staleSearch) add(op nf.Operation) {
	r.known[op.ID] = op.Batches
	if !op.State.Final() {
		r.known[op.ID] = math.MaxInt // it may count more in a moment
		r.live = append(r.live, jobOf(op))
		delete(r.named.locks, op.ID)
	}
	p := r.workers.kinds[op.Subject.Kind]
	if p == nil || p.Sweep == nil { // a newer version of the service knows the kind
		return
	}
	r.sweeps[op.Subject.Kind].Operation(op)
	if op.State.Final() && !r.named.last[op.ID] && op.Finished.Before(r.now.Add(-p.Retention)) {
		r.expired = append(r.expired, op.ID)
	}
}
