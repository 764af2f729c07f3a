package site

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// claim is an operation that this replica has taken.
type claim struct {
	site, op, token string
}

const (
	lastWords  = 10 * time.Second // how long it may take to say what became of an operation
	sweepPause = time.Hour
)

// Run carries out operations until the context ends. Those that run then are
// cut, and run again by another replica or a later process. It is called once.
func (s *Sites) Run(ctx context.Context) error {
	defer close(s.stopped)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	jobs.Go(func() { s.clean(ctx) })
	seen := lease.NewSightings[claimRecord](s.cfg.Lease, s.cfg.Clock)
	for ctx.Err() == nil {
		found, err := s.scan(ctx, seen)
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "cannot look for operations of sites", "error", err)
		}
		for _, c := range found {
			jobs.Go(func() {
				ended := s.carry(ctx, c)
				s.leave(c.op)
				if ended {
					s.poke() // somebody may wait for the place
				}
			})
		}
		lease.Rest(ctx, s.cfg.Lease/2, s.poked)
	}
	return nil
}

// scan claims the operations that nobody alive runs, as far as there are places:
// those that sites name, and those that have been decided and not ended.
func (s *Sites) scan(ctx context.Context, seen *lease.Sightings[claimRecord]) ([]claim, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/3)
	defer cancel()
	work := map[string]string{}
	for in, err := range s.sites.All(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("cannot see the sites: %w", err)
		}
		if in.Busy != "" {
			work[in.Busy] = in.ID
		}
	}
	for l, err := range s.leases.All(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("cannot see the leases of sites' operations: %w", err)
		}
		work[l.Operation] = l.Site
	}
	seen.Retain(func(op string) bool { return work[op] != "" })
	var found []claim
	for op, site := range work {
		if !s.enter(op) {
			continue
		}
		token, err := s.take(ctx, site, op, seen)
		if token == "" {
			s.leave(op)
		}
		if err != nil {
			return found, fmt.Errorf("cannot claim operation %s: %w", op, err)
		}
		if token != "" {
			found = append(found, claim{site, op, token})
		}
	}
	return found, nil
}

// enter takes a place for an operation, unless it runs here or there is none.
func (s *Sites) enter(op string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, here := s.running[op]; here || len(s.running) >= s.cfg.Parallel {
		return false
	}
	s.running[op] = nf.SiteOperation{}
	return true
}

// hold remembers how an operation is that runs here.
func (s *Sites) hold(op nf.SiteOperation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, here := s.running[op.ID]; here {
		s.running[op.ID] = op
	}
}

func (s *Sites) leave(op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, op)
}

// clean removes now and again what nobody needs any more, until the context ends.
func (s *Sites) clean(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "old operations of sites could not be forgotten", "error", err)
		}
		lease.Rest(ctx, sweepPause, nil)
	}
}

// sweep forgets operations that ended long ago, and what requests have left
// behind that were never accepted.
func (s *Sites) sweep(ctx context.Context) error {
	old := s.now().Add(-s.cfg.Retention)
	// The sites come first: an operation that is accepted after they were read is
	// too young to be stray.
	busy, wanted := map[string]bool{}, map[string]bool{}
	for in, err := range s.sites.All(ctx, "") {
		if err != nil {
			return err
		}
		busy[in.Busy], wanted[in.Material] = true, true
	}
	all, err := s.operations.List(ctx, "")
	if err != nil {
		return err
	}
	for _, op := range all {
		over := op.State.Final() && op.Finished.Before(old)
		// One that was begun was accepted, though its site is done with it before it is final.
		never := op.Attempts == 0 && !busy[op.ID] && op.Accepted.Before(s.now().Add(-sweepPause))
		if !over && !never {
			continue
		}
		if err := s.forget(ctx, op, wanted[under(op.UID, op.ID)]); err != nil {
			return err
		}
	}
	return nil
}

// forget removes an operation, with its events before it.
func (s *Sites) forget(ctx context.Context, op nf.SiteOperation, keepMaterial bool) error {
	chunks, err := s.events.List(ctx, op.ID+"/")
	if err != nil {
		return err
	}
	for i := range chunks {
		if err := nf.UnlessGone(s.events.Delete(ctx, part(op.ID, i))); err != nil {
			return err
		}
	}
	if !keepMaterial {
		if err := nf.UnlessGone(s.materials.Delete(ctx, under(op.UID, op.ID))); err != nil {
			return err
		}
	}
	if err := nf.UnlessGone(s.leases.Delete(ctx, op.ID)); err != nil {
		return err
	}
	return nf.UnlessGone(s.operations.Delete(ctx, under(op.Site, op.ID)))
}

// shed removes what was secret of a site, but for what is to be kept.
func (s *Sites) shed(ctx context.Context, uid, keep string) error {
	for m, err := range s.materials.All(ctx, uid+"/") {
		if err != nil {
			return err
		}
		if m.ID == keep {
			continue
		}
		if err := nf.UnlessGone(s.materials.Delete(ctx, m.ID)); err != nil {
			return err
		}
	}
	return nil
}
