package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// claim is the entry of one operation in the list of work. It exists from before
// the operation is recorded until after its end.
type claim struct {
	Operation string     `json:"operation"`
	Subject   nf.Subject `json:"subject"`
	Project   string     `json:"project,omitempty"`
	Region    string     `json:"region"`
	Replica   string     `json:"replica,omitempty"` // that runs it; empty: none yet
	Token     string     `json:"token,omitempty"`   // fencing token of this claim, also stored in the operation and its subject
	Cancel    bool       `json:"cancel,omitempty"`  // cancellation was requested
	Stop      bool       `json:"stop,omitempty"`    // an end before the next step was requested
}

func (c claim) job(token string) Job {
	return Job{ID: c.Operation, Subject: c.Subject, Project: c.Project, Region: c.Region, Token: token}
}

// claimOn returns the entry of a job.
func claimOn(j Job, replica, token string) claim {
	return claim{Operation: j.ID, Subject: j.Subject, Project: j.Project, Region: j.Region, Replica: replica, Token: token}
}

// Reserve adds a new operation to the list of work, and records which operation
// the request's key stands for, if it has one. The ops that record the request
// follow in the same list of writes. The claim is this replica's: no
// other may take it before the request is accepted or this replica is dead.
//
// The context is one of detached. Afterwards the caller calls Start if the request
// is accepted. If Reserve fails, only what the ops may have written remains to be
// removed. However, if that is unknown (nf.Unreachable), nothing is removed, and the
// caller calls Start, too. Reserve returns nf.Unreachable while this replica holds
// no lease, and nf.Busy with nf.ReasonIdempotency if another request with the key is
// being accepted.
func (w *Workers) Reserve(ctx context.Context, j Job, key nf.RequestKey, ops ...store.Op) error {
	t := w.currentMembership()
	if t == nil {
		return nf.E(nf.Unreachable, "accept", "operation "+j.ID, errNoLease)
	}
	w.track(j.ID) // first: a request that finds the key's record checks whether the operation is handled
	reserved, err := w.reserveOps(j, key, t.id)
	if err == nil {
		_, err = store.Write(ctx, w.cfg.KV, slices.Concat(reserved, ops))
	}
	if failed, ok := errors.AsType[*store.WriteError](err); ok && failed.Index == 0 && nf.KindOf(err) == nf.Exists && len(reserved) > 1 {
		w.untrack(j.ID)
		return beingAccepted(key)
	}
	if err != nil && (len(ops) == 0 || nf.KindOf(err) != nf.Unreachable) { // the records may have been written all the same
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause)
		defer cancel()
		if left := errors.Join(w.Drop(last, j.ID), w.abandon(last, j, key)); left != nil {
			w.cfg.Logger.WarnContext(ctx, "failed to delete the records of a rejected request", "operation", j.ID, "error", left)
		}
	}
	return err
}

// reserveOps returns the ops of Reserve: first that of the key, if there is one.
func (w *Workers) reserveOps(j Job, key nf.RequestKey, replica string) ([]store.Op, error) {
	claimed, err := w.claims.InsertOp(j.ID, claimOn(j, replica, j.Token))
	if key.Key == "" || err != nil {
		return []store.Op{claimed}, err
	}
	keyed, err := w.requests.InsertOp(RequestID(key), request{ID: RequestID(key), Digest: key.Digest, Operation: j.ID, Replica: replica})
	return []store.Op{keyed, claimed}, err
}

// Start adds an accepted operation to this replica's queue. If that is full, or if
// earlier operations of the region are still waiting, it releases the claim, so that
// the first replica with a free slot takes the operation. If this replica has lost its
// lease in the meantime, another one takes it.
func (w *Workers) Start(ctx context.Context, j Job) {
	q := w.kinds[j.Subject.Kind].queue
	if !q.hasLeft(j.Region) && !q.isFull(j.Region) {
		w.enqueue(j)
		return
	}
	_, err := w.claims.Update(ctx, j.ID, func(c *claim) error {
		if c.Token != j.Token {
			return ErrTaken
		}
		c.Replica, c.Token = "", ""
		return nil
	})
	if err != nil && !errors.Is(err, ErrTaken) {
		// The claim is still this replica's, or a scan will find it released.
		w.cfg.Logger.WarnContext(ctx, "failed to release an operation to other replicas", "operation", j.ID, "error", err)
		w.enqueue(j)
		return
	}
	w.untrack(j.ID)
	q.leave(j.Region)
	w.wake()
}

// enqueue adds a job to the queue, unless the membership under which it was
// claimed has ended.
func (w *Workers) enqueue(j Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.tracked[j.ID]; ok {
		w.kinds[j.Subject.Kind].queue.push(j)
	}
}

// Held returns ErrTaken unless the job's claim is still in the list of work. Who
// writes the job's token into a record for the first time calls Held between the read of the record's revision and the write: if another replica
// claims the operation after this call, its own write of the record comes later.
func (w *Workers) Held(ctx context.Context, j Job) error {
	c, err := w.claims.Get(ctx, j.ID)
	if nf.IgnoreNotFound(err) == nil && c.Token != j.Token {
		return ErrTaken
	}
	return err
}

// Restore adds operations that have not ended to the list of work again, if their
// claims were lost. A replica then resumes them.
func (w *Workers) Restore(ctx context.Context, jobs []Job) error {
	claimed := map[string]bool{}
	for c, err := range w.claims.All(ctx, "") {
		if err != nil {
			return fmt.Errorf("cannot read the list of work: %w", err)
		}
		claimed[c.Operation] = true
	}
	for _, j := range jobs {
		if claimed[j.ID] {
			continue
		}
		// It may have ended since it was read, and then has no claim.
		op, err := w.ledger.Get(ctx, j.ID)
		if err == nil && op.State.Final() || nf.KindOf(err) == nf.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		err = w.claims.Insert(ctx, j.ID, claimOn(j, "", ""))
		if nf.KindOf(err) == nf.Exists {
			continue
		}
		if err != nil {
			return err
		}
		w.cfg.Logger.WarnContext(ctx, "operation without a claim added to the list of work again", "operation", j.ID)
		w.wake()
	}
	return nil
}

// Drop removes an operation from the list of work.
func (w *Workers) Drop(ctx context.Context, operation string) error {
	return w.claims.DeleteWhere(ctx, operation, func(claim) bool { return true })
}

// abandon removes what else Reserve has recorded for a request that is not
// accepted.
func (w *Workers) abandon(ctx context.Context, j Job, key nf.RequestKey) error {
	err := w.DeleteRequest(ctx, j.ID, key)
	w.untrack(j.ID)
	return err
}

// Cancel stops an operation wherever it runs. The cancellation is recorded in the
// operation first.
func (w *Workers) Cancel(ctx context.Context, operation string) error {
	w.stop(operation, (*stops).now)
	// It may run on another replica, which only reads the list of work.
	_, err := w.claims.Update(ctx, operation, func(c *claim) error { c.Cancel = true; return nil })
	return nf.IgnoreNotFound(err)
}

// Stop stops an operation before its next step, wherever it runs. The cancellation is
// recorded in the operation first.
func (w *Workers) Stop(ctx context.Context, operation string) error {
	w.stop(operation, (*stops).later)
	_, err := w.claims.Update(ctx, operation, func(c *claim) error { c.Stop = true; return nil })
	return nf.IgnoreNotFound(err)
}

// take claims an operation that is unclaimed, or that a dead replica had
// claimed.
func (w *Workers) take(ctx context.Context, t *membership, seen claim) error {
	token := w.cfg.NewID()
	w.track(seen.Operation)
	_, err := w.claims.Update(ctx, seen.Operation, func(c *claim) error {
		if c.Replica != seen.Replica || c.Token != seen.Token {
			return ErrTaken
		}
		c.Replica, c.Token = t.id, token
		return nil
	})
	if err != nil {
		w.untrack(seen.Operation)
		if errors.Is(err, ErrTaken) || nf.KindOf(err) == nf.NotFound {
			return nil
		}
		return fmt.Errorf("cannot claim operation %s: %w", seen.Operation, err)
	}
	if seen.Replica != "" {
		w.cfg.Logger.InfoContext(ctx, "operation taken over", "operation", seen.Operation, "from", seen.Replica)
	}
	w.kinds[seen.Subject.Kind].queue.push(seen.job(token))
	return nil
}

// scan reads the list of work. It stops operations that were cancelled through
// another replica, and claims those that no living replica runs, as far as this
// replica has free places.
func (w *Workers) scan(ctx context.Context, t *membership) error {
	// Order matters: a replica joins before it claims. Every replica in this list
	// is therefore either in the survey below or dead.
	list, err := w.claims.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot read the list of work: %w", err)
	}
	alive, ended, err := t.member.Survey(ctx)
	if err != nil {
		return err
	}
	for id := range ended {
		w.cfg.Logger.WarnContext(ctx, "the lease of a replica has expired", "replica", id)
		w.cfg.LeaseEnded(false)
	}
	w.setLiving(alive)
	for _, c := range list {
		if c.Cancel {
			w.stop(c.Operation, (*stops).now)
		}
		if c.Stop {
			w.stop(c.Operation, (*stops).later)
		}
		p := w.kinds[c.Subject.Kind]
		if p == nil || t.closing.Load() { // a newer version of the service knows the kind
			continue
		}
		unclaimed := c.Replica == "" || !alive[c.Replica]
		stray := c.Replica == t.id && !w.Tracks(c.Operation)
		if !unclaimed && !stray || w.Tracks(c.Operation) || p.queue.leaves(c.Region) {
			continue
		}
		if err := w.take(ctx, t, c); err != nil {
			return err
		}
	}
	return nil
}

// track records that this replica handles an operation, from acceptance to its
// end.
func (w *Workers) track(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.tracked[id]; !ok {
		w.tracked[id] = nil
	}
}

// Tracks reports whether this replica handles an operation.
func (w *Workers) Tracks(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.tracked[id]
	return ok
}

// untrack records that this replica no longer handles an operation.
func (w *Workers) untrack(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tracked, id)
}

// stop stops an operation that runs here, because it was cancelled.
func (w *Workers) stop(id string, how func(*stops)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.tracked[id]; s != nil {
		how(s)
	}
}
