package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// claim is the entry of one operation in the list of work: it is there from
// before the operation is recorded until after its end.
type claim struct {
	Operation string `json:"operation"`
	Region    string `json:"region"`
	Replica   string `json:"replica,omitempty"` // who runs it; empty: nobody yet
	Token     string `json:"token,omitempty"`   // of this claiming; the operation and its instance bear it too
	Cancel    bool   `json:"cancel,omitempty"`  // somebody asked to stop
}

var errTaken = errors.New("another replica has claimed the operation")

// enlist puts a new operation into the list of work, claimed for the replica
// that its request is kept for: until the request is accepted nobody else may
// look at it. It is nf.Unreachable when that is not this replica any more.
func (e *Engine) enlist(ctx context.Context, op nf.Operation, replica string) error {
	if t := e.present(); t == nil || t.id != replica {
		return nf.E(nf.Unreachable, "accept", "operation "+op.ID, errAbsent)
	}
	return e.claims.Insert(ctx, op.ID, claim{Operation: op.ID, Region: op.Region, Replica: replica, Token: op.Claim})
}

// start hands an accepted operation to this replica's queue. When that is full,
// the claim is given up for whoever is free first.
func (e *Engine) start(ctx context.Context, op nf.Operation) {
	c := job{id: op.ID, region: op.Region, token: op.Claim}
	if !e.queue.crowded(op.Region) {
		e.queue.push(c)
		return
	}
	_, err := e.claims.Update(ctx, op.ID, func(c *claim) error {
		c.Replica, c.Token = "", ""
		return nil
	})
	if err != nil {
		// It is still ours, or will be found to be nobody's.
		e.cfg.Logger.WarnContext(ctx, "an operation could not be shared", "operation", op.ID, "error", err)
		e.queue.push(c)
		return
	}
	e.disown(op.ID)
	e.poke()
}

// take claims an operation that is nobody's, or that a dead replica had.
func (e *Engine) take(ctx context.Context, t *tenure, seen claim) error {
	token := e.cfg.NewID()
	e.own(seen.Operation)
	_, err := e.claims.Update(ctx, seen.Operation, func(c *claim) error {
		if c.Replica != seen.Replica || c.Token != seen.Token {
			return errTaken
		}
		c.Replica, c.Token = t.id, token
		return nil
	})
	if err != nil {
		e.disown(seen.Operation)
		if errors.Is(err, errTaken) || nf.KindOf(err) == nf.NotFound {
			return nil
		}
		return fmt.Errorf("cannot claim operation %s: %w", seen.Operation, err)
	}
	if seen.Replica != "" {
		e.cfg.Logger.InfoContext(ctx, "operation taken over", "operation", seen.Operation, "from", seen.Replica)
	}
	e.queue.push(job{id: seen.Operation, region: seen.Region, token: token})
	return nil
}

// drop takes an operation that has ended off the list of work.
func (e *Engine) drop(ctx context.Context, id string) error {
	return nf.UnlessGone(e.claims.Delete(ctx, id))
}

// scan looks through the list of work: it stops what somebody has cancelled
// through another replica, and claims what nobody alive runs, as far as there is
// room.
func (e *Engine) scan(ctx context.Context, t *tenure) error {
	// The list of work comes first: whoever claimed anything in it had joined
	// before, so he is among the living below, or dead.
	list, err := e.claims.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot read the list of work: %w", err)
	}
	alive, ended, err := t.member.Survey(ctx)
	if err != nil {
		return err
	}
	for id := range ended {
		e.cfg.Logger.WarnContext(ctx, "a replica is gone: its lease has stood still", "replica", id)
		e.cfg.Meter.LeaseEnded(false)
	}
	e.note(alive)
	for _, c := range list {
		if c.Cancel {
			e.interrupt(c.Operation)
		}
		unclaimed := c.Replica == "" || !alive[c.Replica]
		stray := c.Replica == t.id && !e.owns(c.Operation)
		if !unclaimed && !stray || e.owns(c.Operation) || e.queue.crowded(c.Region) {
			continue
		}
		if err := e.take(ctx, t, c); err != nil {
			return err
		}
	}
	return nil
}

// own notes that this replica deals with an operation, from its acceptance to
// its end; owns and disown go with it.
func (e *Engine) own(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.owned[id]; !ok {
		e.owned[id] = nil
	}
}

func (e *Engine) disown(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.owned, id)
	delete(e.live, id)
}

// tell says how an operation is that runs here.
func (e *Engine) tell(op nf.Operation) {
	e.mu.Lock()
	e.live[op.ID] = op
	e.mu.Unlock()
	e.feed.publish(op)
}

// Running returns the operations that run here, as they were last written.
func (e *Engine) Running() []nf.Operation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.live))
}

func (e *Engine) owns(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.owned[id]
	return ok
}

// interrupt stops an operation that runs here, because somebody cancelled it.
func (e *Engine) interrupt(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if stop := e.owned[id]; stop != nil {
		stop(errCancelled)
	}
}
