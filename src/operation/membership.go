package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// membership is this replica's participation in the group, from acquiring a lease
// to losing it. When it loses the lease, it stops its operations and joins
// again under a new id.
type membership struct {
	id         string
	member     *lease.Member
	closing    atomic.Bool               // it claims no more work
	lost       atomic.Bool               // its operations are being stopped
	validUntil atomic.Pointer[time.Time] // until when the other replicas consider this one alive
}

const (
	mostJoins  = 5                // attempts of Join, while the store does not respond
	joinPause  = time.Second      // between attempts to join
	leavePause = 5 * time.Second  // limit for the last writes
	scanPause  = 10 * time.Second // limit for one scan of the list of work
	acceptTime = time.Minute      // limit for the writes that accept a request, if there are no other replicas
)

var errNoLease = errors.New("this replica has not joined yet")

// Join makes this process one of the replicas that share the store. It must
// return before the first request is accepted. Run must follow at once, because
// only Run renews the lease. A write to a store that is slow, as after its own start, is
// repeated a few times.
func (w *Workers) Join(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := w.join(ctx)
		if isSlow := nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) == ""; !isSlow || attempt == mostJoins || ctx.Err() != nil {
			return err
		}
		w.cfg.Logger.WarnContext(ctx, "failed to join the replicas; will retry", "error", err)
		delay.For(ctx, joinPause, nil)
	}
}

// join joins with a new id: an attempt that has failed may still take effect.
func (w *Workers) join(ctx context.Context) error {
	began := time.Now()
	m, err := w.replicas.Join(ctx, w.cfg.NewID())
	if err != nil {
		return fmt.Errorf("cannot join the replicas: %w", err)
	}
	if w.cfg.Sole {
		if err := m.Expel(ctx); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.membership = &membership{id: m.ID(), member: m}
	w.membership.renewed(began, w.cfg.Lease)
	if w.cfg.Sole {
		w.living = map[string]bool{m.ID(): true}
	}
	return nil
}

// renewed records that the lease was renewed at the given time or a little
// later.
func (t *membership) renewed(renewed time.Time, lasts time.Duration) {
	sure := lease.ValidUntil(renewed, lasts)
	t.validUntil.Store(&sure)
}

// currentMembership returns the current membership, or nil if this replica holds no lease.
func (w *Workers) currentMembership() *membership {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.membership
}

// Run runs operations until the context ends. Then it starts no more, gives
// running ones Kind.Drain to finish, stops the rest where they are, and
// returns; another replica or a later process resumes them. It must be called
// once, after Join.
func (w *Workers) Run(ctx context.Context) error {
	defer close(w.stopped)
	var chores sync.WaitGroup
	defer chores.Wait()
	chores.Go(func() { w.collector.run(ctx) })
	for ctx.Err() == nil {
		t := w.currentMembership()
		if t == nil {
			if err := w.join(ctx); err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "failed to rejoin the replicas; will retry", "error", err)
				delay.For(ctx, joinPause, nil)
			}
			continue
		}
		w.serve(ctx, t)
	}
	return nil
}

// serve runs operations for the duration of a membership.
func (w *Workers) serve(ctx context.Context, t *membership) {
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx)) // the membership outlives the operations
	defer stopRenewing()
	active, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	var renewer, pools sync.WaitGroup
	renewer.Go(func() {
		w.renew(renewing, t, func() {
			t.lost.Store(true)
			lose(lease.ErrLost)
			stopRenewing() // or this replica would claim operations that it does not run
		})
	})
	defer context.AfterFunc(ctx, func() { t.closing.Store(true) })()
	for _, p := range w.kinds {
		pools.Go(func() { w.work(ctx, active, p) })
	}
	pools.Wait()
	stopRenewing()
	renewer.Wait()
	w.endMembership(ctx, t)
}

// work runs the operations of one kind, until the service ends or the membership
// is lost.
func (w *Workers) work(ctx, active context.Context, p *pool) {
	running, stop := context.WithCancelCause(active) // operations outlive ctx by the drain time
	defer stop(nil)
	taking, halt := context.WithCancel(ctx)
	defer halt()
	defer context.AfterFunc(active, halt)()
	var jobs sync.WaitGroup
	for {
		j, err := p.queue.next(taking)
		if err != nil {
			break
		}
		jobs.Go(func() {
			defer p.queue.releaseSlot(j.Region)
			w.execute(running, p, j)
		})
	}
	drain := time.AfterFunc(delay.Positive(p.Drain), func() { stop(ErrShutdown) })
	defer drain.Stop()
	jobs.Wait()
}

// endMembership ends a membership. It leaves queued operations to other replicas.
func (w *Workers) endMembership(ctx context.Context, t *membership) {
	w.mu.Lock()
	w.membership = nil
	clear(w.tracked) // first: an operation that is still being accepted is not queued any more
	w.mu.Unlock()
	for _, p := range w.kinds {
		p.queue.clear()
	}
	if t.lost.Load() {
		w.cfg.LeaseEnded(true)
		w.cfg.Logger.ErrorContext(ctx, "this replica has lost its lease, and has stopped its operations", "replica", t.id)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // its last write
	defer cancel()
	if err := t.member.Leave(ctx); err != nil {
		w.cfg.Logger.WarnContext(ctx, "failed to release the lease; other replicas wait until it expires", "replica", t.id, "error", err)
	}
}

// renew renews the lease and scans the list of work, until the context ends or the
// lease is lost.
func (w *Workers) renew(ctx context.Context, t *membership, lose func()) {
	lease.Renewer{
		Lasts: w.cfg.Lease, Sole: w.cfg.Sole, Renew: t.member.Renew, Lose: lose,
		Failed: func(err error) {
			w.cfg.Logger.WarnContext(ctx, "failed to renew the lease", "replica", t.id, "error", err)
		},
		Renewed: func(began time.Time) {
			t.renewed(began, w.cfg.Lease)
			if err := w.scanInTime(ctx, t); err != nil && ctx.Err() == nil {
				w.cfg.Logger.WarnContext(ctx, "failed to read the list of work; will retry", "error", err)
			}
		},
		// Wake early if there may be work for this replica.
		Sleep: func(ctx context.Context, d time.Duration) { delay.For(ctx, d, w.wakeCh) },
	}.Run(ctx)
}

func (w *Workers) scanInTime(ctx context.Context, t *membership) error {
	ctx, cancel := context.WithTimeout(ctx, min(scanPause, w.cfg.Lease/3))
	defer cancel()
	for _, p := range w.kinds {
		p.queue.beginScan()
	}
	if err := w.scan(ctx, t); err != nil {
		return err
	}
	for _, p := range w.kinds {
		p.queue.endScan()
	}
	return nil
}

// wake makes this replica scan the list of work soon.
func (w *Workers) wake() { w.wakeCh.Send() }

// setLiving stores the set of living replicas, for Replicas.
func (w *Workers) setLiving(alive map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.living = alive
}

// detached returns a context for the writes that accept a request: if the
// client disconnects between two of them, the others must follow. It ends
// before another replica may consider this one dead.
func (w *Workers) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	t := w.currentMembership()
	switch {
	case t == nil:
	case w.cfg.Sole:
		return context.WithTimeout(ctx, acceptTime)
	default:
		return context.WithDeadline(ctx, *t.validUntil.Load())
	}
	return context.WithDeadline(ctx, lease.ValidUntil(time.Now(), w.cfg.Lease)) // the request will be refused
}
