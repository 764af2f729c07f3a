package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// tenure is the time for which this replica holds one lease. When it loses it,
// it stops what it does, and comes back as another replica.
type tenure struct {
	id      string
	member  *lease.Member
	closing atomic.Bool               // it takes no more work
	sure    atomic.Pointer[time.Time] // until when nobody takes this replica for dead
}

const (
	joinPause  = time.Second      // between attempts to come back
	leavePause = 5 * time.Second  // how long the last words may take
	scanPause  = 10 * time.Second // how long one look at the list of work may take
)

var errAbsent = errors.New("this replica has not joined yet")

// Join makes this process one of the replicas that share the store. It must
// return before the first request is taken, and Run must follow it at once:
// until then nobody renews the lease.
func (e *Engine) Join(ctx context.Context) error {
	began := time.Now()
	m, err := e.replicas.Join(ctx, e.cfg.NewID())
	if err != nil {
		return fmt.Errorf("cannot join the replicas: %w", err)
	}
	if e.cfg.Sole {
		if err := m.Evict(ctx); err != nil {
			return err
		}
	}
	if err := e.adopt(ctx); err != nil {
		return err
	}
	if e.cfg.Sole {
		// Nobody is at anything: one look is enough.
		found, err := e.leftovers(ctx)
		if err = errors.Join(err, e.sweep(ctx, found, found)); err != nil {
			return fmt.Errorf("cannot remove what a former process left behind: %w", err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tenure = &tenure{id: m.ID(), member: m}
	e.tenure.extend(began, e.cfg.Lease)
	if e.cfg.Sole {
		e.living = map[string]bool{m.ID(): true}
	}
	return nil
}

// extend notes that the lease was renewed at a time, or a little later.
func (t *tenure) extend(renewed time.Time, lasts time.Duration) {
	sure := lease.Sure(renewed, lasts)
	t.sure.Store(&sure)
}

// adopt puts operations that are on no list of work on it: those of a release
// that had none.
func (e *Engine) adopt(ctx context.Context) error {
	for op, err := range e.operations.All(ctx, "") {
		if err != nil {
			return fmt.Errorf("cannot look for unfinished operations: %w", err)
		}
		if op.State.Final() {
			continue
		}
		err := e.claims.Insert(ctx, op.ID, claim{Operation: op.ID, Region: op.Region})
		if err != nil && nf.KindOf(err) != nf.Exists {
			return fmt.Errorf("cannot adopt operation %s: %w", op.ID, err)
		}
	}
	return nil
}

// present returns the tenure of this replica, or nil when it has none.
func (e *Engine) present() *tenure {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tenure
}

// Run carries out operations until the context ends. Then it starts no more,
// gives those that run Config.Drain to finish, stops the rest where they are,
// and returns; another replica, or a later process, resumes them. It is called
// once, after Join.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.stopped)
	var chores errgroup.Group
	chores.Go(func() error { e.retain(ctx); return nil })
	chores.Go(func() error { e.clean(ctx); return nil })
	for ctx.Err() == nil {
		t := e.present()
		if t == nil {
			if err := e.Join(ctx); err != nil && ctx.Err() == nil {
				e.cfg.Logger.WarnContext(ctx, "cannot come back yet", "error", err)
				_ = pause(ctx, joinPause) // the loop looks at the context itself
			}
			continue
		}
		e.serve(ctx, t)
	}
	return chores.Wait()
}

// serve carries out operations for the time of a tenure.
func (e *Engine) serve(ctx context.Context, t *tenure) {
	// Operations outlive ctx by the drain time, the tenure outlives them.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	keeping, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	taking, halt := context.WithCancel(ctx)
	defer halt()
	var lost atomic.Bool
	lose := func() {
		lost.Store(true)
		halt()
		stop(lease.ErrLost)
	}
	var keeper, jobs sync.WaitGroup
	keeper.Go(func() { e.keep(keeping, t, lose) })
	for {
		j, err := e.queue.next(taking)
		if err != nil {
			break
		}
		jobs.Go(func() {
			defer e.queue.give(j.region)
			e.carry(work, j)
		})
	}
	t.closing.Store(true)
	drain := time.AfterFunc(e.cfg.Drain, func() { stop(errShutdown) })
	defer drain.Stop()
	jobs.Wait()
	rest()
	keeper.Wait()
	e.retire(ctx, t, lost.Load())
}

// retire ends a tenure. What it had not begun is for others.
func (e *Engine) retire(ctx context.Context, t *tenure, lost bool) {
	e.mu.Lock()
	e.tenure = nil
	e.mu.Unlock()
	for _, j := range e.queue.clear() {
		e.disown(j.id)
	}
	if lost {
		e.cfg.Meter.LeaseEnded(true)
		e.cfg.Logger.ErrorContext(ctx, "this replica has lost its lease, and has stopped its operations", "replica", t.id)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // its last word
	defer cancel()
	if err := t.member.Leave(ctx); err != nil {
		e.cfg.Logger.WarnContext(ctx, "the others will wait for this replica's lease to lapse", "replica", t.id, "error", err)
	}
}

// keep renews the lease and looks through the list of work, until the context
// ends or the lease is lost.
func (e *Engine) keep(ctx context.Context, t *tenure, lose func()) {
	lease.Keeper{
		Lasts: e.cfg.Lease, Renew: t.member.Renew, Lose: lose,
		Failed: func(err error) {
			e.cfg.Logger.WarnContext(ctx, "the lease could not be renewed", "replica", t.id, "error", err)
		},
		Renewed: func(began time.Time) {
			t.extend(began, e.cfg.Lease)
			if err := e.look(ctx, t); err != nil && ctx.Err() == nil {
				e.cfg.Logger.WarnContext(ctx, "cannot look for work", "error", err)
			}
		},
		// There may be work for others that this replica could do as well.
		Rest: func(ctx context.Context, d time.Duration) { lease.Rest(ctx, d, e.poked) },
	}.Keep(ctx)
}

func (e *Engine) look(ctx context.Context, t *tenure) error {
	ctx, cancel := context.WithTimeout(ctx, min(scanPause, e.cfg.Lease/3))
	defer cancel()
	return e.scan(ctx, t)
}

// poke makes this replica look for work soon.
func (e *Engine) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// note remembers how many replicas there are, for those who ask.
func (e *Engine) note(alive map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.living = alive
}

// Replicas returns how many replicas hold a lease, as this one has seen it last.
func (e *Engine) Replicas() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.living)
}

// Queued returns how many operations wait here for a place.
func (e *Engine) Queued() int { return e.queue.depth() }

// Healthy returns nf.Unreachable while this replica holds no lease: it takes no
// requests that need an operation.
func (e *Engine) Healthy(context.Context) error {
	if e.present() == nil {
		return nf.E(nf.Unreachable, "run", "operations", errAbsent)
	}
	return nil
}
