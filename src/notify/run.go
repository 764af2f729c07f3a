package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

const (
	joinPause  = time.Second
	leavePause = 5 * time.Second // how long the last words may take
	sweepPause = time.Hour
)

// Run serves the subscriptions that fall to this replica until the context ends.
// It is called once.
func (n *Notifier) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		m, err := n.join(ctx)
		if err == nil {
			t := &tenure{n: n, m: m, desks: map[string]*manned{}}
			err = t.hold(ctx)
		}
		if err != nil && ctx.Err() == nil {
			n.cfg.Logger.WarnContext(ctx, "notifications rest", "error", err)
		}
		lease.Rest(ctx, joinPause, nil)
	}
	return nil
}

// join begins a lease.
func (n *Notifier) join(ctx context.Context) (*lease.Member, error) {
	m, err := n.replicas.Join(ctx, n.cfg.NewID())
	if err == nil && n.cfg.Sole {
		err = m.Evict(ctx)
	}
	return m, err
}

// attend makes a service known to those who change what it serves, until leave
// is called.
func (n *Notifier) attend(s *service) (leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.services[s.uid] = s
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.services[s.uid] == s {
			delete(n.services, s.uid)
		}
	}
}

// remind makes the service of a subscription look at it, if it is served here.
func (n *Notifier) remind(uid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.services[uid]; s != nil {
		s.review()
	}
}

// tenure is the time for which this replica holds one lease.
type tenure struct {
	n     *Notifier
	m     *lease.Member
	desks map[string]*manned // by region
	looks time.Time          // when the list of subscriptions is looked through next
}

// manned is a desk that runs.
type manned struct {
	*desk

	stop    context.CancelFunc
	running sync.WaitGroup
}

// dismiss stops a desk and waits for its end.
func (d *manned) dismiss() {
	d.stop()
	d.running.Wait()
}

// hold serves until the context ends or the lease is lost, or could not be
// renewed for so long that others may soon think so.
func (t *tenure) hold(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var chores sync.WaitGroup
	chores.Go(func() { t.n.clean(work) })
	defer chores.Wait()
	lease.Keeper{
		Lasts: t.n.cfg.Lease, Renew: t.m.Renew, Lose: func() { stop(lease.ErrLost) },
		Failed: func(err error) {
			t.n.cfg.Logger.WarnContext(ctx, "the lease for notifications could not be renewed", "error", err)
		},
		Renewed: func(time.Time) {
			if err := t.scan(work); err != nil && work.Err() == nil {
				t.n.cfg.Logger.WarnContext(ctx, "cannot look for subscriptions", "error", err)
			}
		},
		Rest: func(ctx context.Context, d time.Duration) {
			if lease.Rest(ctx, d, t.n.poked) {
				t.looks = time.Time{} // somebody has changed a subscription
			}
		},
	}.Keep(work)
	for region, d := range t.desks {
		d.dismiss()
		delete(t.desks, region)
	}
	if err := context.Cause(work); errors.Is(err, lease.ErrLost) {
		return err
	}
	return t.leave(ctx)
}

// clean removes now and again what belongs to nobody, until the context ends.
func (n *Notifier) clean(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.sweep(ctx); err != nil && ctx.Err() == nil {
			n.cfg.Logger.WarnContext(ctx, "old letters could not be forgotten", "error", err)
		}
		lease.Rest(ctx, sweepPause, nil)
	}
}

// leave ends the lease and what goes with it, so that nobody waits for it to
// lapse.
func (t *tenure) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // its last word
	defer cancel()
	rounds, err := t.n.rounds.List(ctx, "")
	for _, r := range rounds {
		if r.Replica == t.m.ID() {
			err = errors.Join(err, t.give(ctx, r.Region))
		}
	}
	if err := errors.Join(err, t.m.Leave(ctx)); err != nil {
		return fmt.Errorf("cannot leave; the others will wait for the lease to lapse: %w", err)
	}
	return nil
}

// scan sees to it that the desks of those regions are manned here that fall to
// this replica.
func (t *tenure) scan(ctx context.Context) error {
	now := t.n.now()
	if now.Before(t.looks) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, t.n.cfg.Lease/3)
	defer cancel()
	rounds, err := t.n.rounds.List(limited, "")
	if err != nil {
		return err
	}
	// The rounds came first: who has taken one had joined before, so he is among
	// the living, or dead.
	alive, _, err := t.m.Survey(limited)
	if err != nil {
		return err
	}
	fair := share{regions: map[string][]record{}, held: map[string]round{}, alive: alive}
	for rec, err := range t.n.subscriptions.All(limited, "") {
		if err != nil {
			return err
		}
		fair.regions[rec.Region] = append(fair.regions[rec.Region], rec)
	}
	for _, r := range rounds {
		fair.held[r.Region] = r
	}
	if err := t.release(ctx, fair); err != nil {
		return err
	}
	if err := t.claim(ctx, fair); err != nil {
		return err
	}
	t.looks = now.Add(t.n.cfg.Lease / 2)
	return nil
}

// share is how the regions that have subscriptions fall to the replicas.
type share struct {
	regions map[string][]record
	held    map[string]round
	alive   map[string]bool
}

// release gives up the regions that fall to another, or that have no
// subscriptions any more.
func (t *tenure) release(ctx context.Context, s share) error {
	for region, r := range s.held {
		if r.Replica != t.m.ID() || len(s.regions[region]) > 0 && chosen(region, s.alive) == t.m.ID() {
			continue
		}
		t.dismiss(region)
		if err := t.give(ctx, region); err != nil {
			return err
		}
		delete(s.regions, region) // for whom it falls to
	}
	for region := range t.desks {
		if s.held[region].Replica != t.m.ID() {
			t.dismiss(region) // it was taken from us
		}
	}
	return nil
}

// claim takes the regions that fall to this replica and that nobody alive holds,
// and hands the desks their subscriptions.
func (t *tenure) claim(ctx context.Context, s share) error {
	for region, recs := range s.regions {
		r := s.held[region]
		if r.Replica != t.m.ID() {
			if s.alive[r.Replica] || chosen(region, s.alive) != t.m.ID() {
				continue
			}
			taken, err := t.take(ctx, region, r)
			if err != nil {
				return err
			}
			if !taken {
				continue
			}
		}
		t.man(ctx, region).assign(recs)
	}
	return nil
}

// man returns the desk of a region, which runs.
func (t *tenure) man(ctx context.Context, region string) *manned {
	d := t.desks[region]
	if d == nil {
		ctx, stop := context.WithCancel(ctx)
		d = &manned{desk: newDesk(t.n, region), stop: stop}
		d.running.Go(func() { d.run(ctx) })
		t.desks[region] = d
	}
	return d
}

func (t *tenure) dismiss(region string) {
	if d := t.desks[region]; d != nil {
		d.dismiss()
		delete(t.desks, region)
	}
}
