package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

const (
	joinPause  = time.Second
	longList   = time.Second     // a list of the queues that takes longer is followed by a pause
	listPause  = 4               // which is so many times as long
	leavePause = 5 * time.Second // limits the time to leave the group
	gcDelay    = 2 * time.Minute // the first search for stale requests reads all of them, and a start does not wait for it
	gcInterval = time.Hour
)

// Run delivers the requests of the shards that are assigned to this replica,
// until the context ends. It must be called only once.
func (o *Outbox) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		m, err := o.join(ctx)
		if err == nil {
			ms := &membership{o: o, member: m, shards: map[string]*Shard{}, listedCh: delay.NewSignal()}
			err = ms.serve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "delivery of requests paused", "error", err)
		}
		delay.For(ctx, joinPause, nil)
	}
	return nil
}

// join acquires a lease.
func (o *Outbox) join(ctx context.Context) (*lease.Member, error) {
	m, err := o.replicas.Join(ctx, o.cfg.NewID())
	if err == nil && o.cfg.Sole {
		err = m.Expel(ctx)
	}
	return m, err
}

// membership is this replica's participation in the group, from acquiring a lease to
// losing it.
type membership struct {
	o        *Outbox
	member   *lease.Member
	shards   map[string]*Shard                  // running here
	queues   atomic.Pointer[map[string][]Queue] // by shard, as listed last; nil: not yet
	listedCh delay.Signal                       // holds a token when scan should run soon
	nextScan time.Time                          // when it should run at the latest
}

// serve serves until the context ends or the lease is lost. A lease counts as
// lost as soon as its renewal has failed for so long that it may expire for
// others.
func (ms *membership) serve(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var chores sync.WaitGroup
	chores.Go(func() { ms.o.runGC(work) })
	chores.Go(func() { ms.listQueues(work) })
	defer chores.Wait()
	lease.Renewer{
		Lasts: ms.o.cfg.Lease, Sole: ms.o.cfg.Sole, Renew: ms.member.Renew, Lose: func() { stop(lease.ErrLost) },
		Failed: func(err error) {
			ms.o.log.WarnContext(ctx, "failed to renew the lease for the delivery of requests", "error", err)
		},
		Renewed: func(time.Time) {
			if err := ms.scan(work); err != nil && work.Err() == nil {
				ms.o.log.WarnContext(ctx, "failed to assign queues of requests to replicas", "error", err)
			}
		},
		Sleep: func(ctx context.Context, d time.Duration) {
			if delay.For(ctx, d, ms.listedCh) {
				ms.nextScan = time.Time{}
			}
		},
	}.Run(work)
	ms.stop(slices.Collect(maps.Keys(ms.shards))...)
	if err := context.Cause(work); errors.Is(err, lease.ErrLost) {
		return err
	}
	return ms.leave(ctx)
}

// listQueues lists the queues periodically, and whenever one may have been added or removed,
// until the context ends. A list may take long, so the lease is renewed in the meantime, and
// the next one begins later.
func (ms *membership) listQueues(ctx context.Context) {
	for ctx.Err() == nil {
		began, pause := time.Now(), ms.o.cfg.Lease/2
		shards := map[string][]Queue{}
		err := ms.o.eachQueue(ctx, func(q Queue) { shards[q.Shard] = append(shards[q.Shard], q) })
		switch {
		case err == nil:
			ms.queues.Store(&shards)
			ms.listedCh.Send()
		case ctx.Err() == nil:
			ms.o.log.WarnContext(ctx, "failed to look for queues of requests", "error", err)
			pause = joinPause
		}
		if took := time.Since(began); took > longList {
			delay.For(ctx, listPause*took, nil)
		}
		delay.For(ctx, pause, ms.o.wakeCh)
	}
}

// eachQueue calls do with each queue of the source.
func (o *Outbox) eachQueue(ctx context.Context, do func(Queue)) error {
	for q, err := range o.source.Queues(ctx) {
		if err != nil {
			return err
		}
		do(q)
	}
	return nil
}

// runGC calls collect periodically until the context ends.
func (o *Outbox) runGC(ctx context.Context) {
	delay.For(ctx, gcDelay, nil)
	for ctx.Err() == nil {
		if err := errors.Join(o.collect(ctx), o.source.Collect(ctx)); err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "failed to delete stale requests", "error", err)
		}
		delay.For(ctx, gcInterval, nil)
	}
}

// leave releases this replica's lease and its shards, so that other replicas
// need not wait until the lease expires.
func (ms *membership) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // the context may have ended
	defer cancel()
	// The lease is first: without it, others take the shards, which may be many.
	if err := ms.member.Leave(ctx); err != nil {
		return fmt.Errorf("cannot release the lease; other replicas wait until it expires: %w", err)
	}
	assigned, err := ms.o.assignments.List(ctx, "")
	for _, a := range assigned {
		if a.Replica == ms.member.ID() {
			err = errors.Join(err, ms.release(ctx, a.Shard))
		}
	}
	return err
}

// scan makes the shards that run here match those that are assigned to this
// replica.
func (ms *membership) scan(ctx context.Context) error {
	now := time.Now() // monotonic: the clock may be set back
	listed := ms.queues.Load()
	if listed == nil || now.Before(ms.nextScan) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, ms.o.cfg.Lease/3)
	defer cancel()
	assigned, err := ms.o.assignments.List(limited, "")
	if err != nil {
		return err
	}
	// Order matters: a replica joins before it takes a shard. Listing the
	// assignments first ensures that a replica missing from the survey is dead.
	alive, _, err := ms.member.Survey(limited)
	if err != nil {
		return err
	}
	fair := assignments{shards: maps.Clone(*listed), held: map[string]string{}, alive: alive}
	for _, a := range assigned {
		fair.held[a.Shard] = a.Replica
	}
	ended, err := ms.releaseShards(ctx, limited, fair)
	if err != nil {
		return err
	}
	free, err := ms.claimShards(ctx, limited, fair)
	switch {
	case err != nil:
	case ended || free:
		ms.listedCh.Send() // to end or take shards takes long: the lease is renewed at once, and the rest follows
	default:
		ms.nextScan = now.Add(ms.o.cfg.Lease / 2)
	}
	return err
}

// assignments holds what is needed to assign the shards with queues to
// replicas.
type assignments struct {
	shards map[string][]Queue
	held   map[string]string // replicas, by shard
	alive  map[string]bool
}

// batch is the number of shards that stop at the same time before they are released.
const batch = 16

// releaseShards stops and releases the shards that should be served by another replica or
// have no queues left, until the limited context ends: the lease has to be renewed. Those
// that remain are served until then. It reports whether there were any.
func (ms *membership) releaseShards(ctx, limited context.Context, s assignments) (ended bool, err error) {
	var lost, ending []string
	for shard := range ms.shards {
		if s.held[shard] != ms.member.ID() {
			lost = append(lost, shard) // another replica took it
		}
	}
	ms.stop(lost...)
	for shard, replica := range s.held {
		if replica == ms.member.ID() && (len(s.shards[shard]) == 0 || chosen(shard, s.alive) != ms.member.ID()) {
			ending = append(ending, shard)
		}
	}
	for some := range slices.Chunk(ending, batch) {
		if limited.Err() != nil {
			return true, nil
		}
		ms.stop(some...)
		for _, shard := range some {
			if err := ms.release(ctx, shard); err != nil {
				return false, err
			}
			delete(s.shards, shard) // another replica will take it
		}
	}
	return len(ending) > 0, nil
}

// claimShards takes the shards that this replica should serve and that no live
// replica holds, until the limited context ends: the lease has to be renewed. It
// reports whether more remain. It assigns to each shard its queues.
func (ms *membership) claimShards(ctx, limited context.Context, s assignments) (more bool, err error) {
	for shard, queues := range s.shards {
		if holder := s.held[shard]; holder != ms.member.ID() {
			if s.alive[holder] || chosen(shard, s.alive) != ms.member.ID() {
				continue
			}
			if limited.Err() != nil {
				more = true
				continue
			}
			taken, err := ms.take(ctx, shard, holder)
			if err != nil {
				return false, err
			}
			if !taken {
				continue
			}
		}
		ms.start(ctx, shard).assign(queues)
	}
	return more, nil
}

// start returns the running shard of a name, and starts it if needed.
func (ms *membership) start(ctx context.Context, name string) *Shard {
	s := ms.shards[name]
	if s == nil {
		ctx, stop := context.WithCancel(ctx)
		s = &Shard{
			Name: name, o: ms.o, wakeCh: delay.NewSignal(), surveyed: time.Now(), workers: map[string]*worker{}, cancel: stop,
		}
		s.running.Go(func() { ms.o.source.Serve(ctx, s) })
		ms.shards[name] = s
	}
	return s
}

// stop stops those shards that run here, all at the same time: a request that is under way
// delays the end of its shard.
func (ms *membership) stop(names ...string) {
	for _, name := range names {
		if s := ms.shards[name]; s != nil {
			s.cancel()
		}
	}
	for _, name := range names {
		if s := ms.shards[name]; s != nil {
			s.running.Wait()
			delete(ms.shards, name)
		}
	}
}
