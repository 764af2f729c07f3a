package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// retentionPause is how often old operations are looked for.
const retentionPause = time.Hour

// retain forgets old operations, now and again, until the context ends.
func (e *Engine) retain(ctx context.Context) {
	for {
		if n, err := e.forgetOperations(ctx, e.now().Add(-e.cfg.Retention)); err != nil && ctx.Err() == nil {
			e.cfg.Logger.WarnContext(ctx, "old operations could not be forgotten", "error", err)
		} else if n > 0 {
			e.cfg.Logger.InfoContext(ctx, "old operations were forgotten", "operations", n, "older_than", e.cfg.Retention.String())
		}
		if pause(ctx, retentionPause) != nil {
			return
		}
	}
}

// forgetOperations removes the operations that ended before the time, and what
// they changed. An instance's last operation stays for as long as the instance.
func (e *Engine) forgetOperations(ctx context.Context, before time.Time) (forgotten int, err error) {
	last := map[string]bool{}
	for in, err := range e.instances.All(ctx, "") {
		if err != nil {
			return 0, err
		}
		last[in.LastOperation] = true
	}
	// Collected first: a store need not bear being changed while it is listed.
	var old []nf.Operation
	for op, err := range e.operations.All(ctx, "") {
		if err != nil {
			return 0, err
		}
		if op.State.Final() && op.Finished.Before(before) && !last[op.ID] {
			old = append(old, op)
		}
	}
	for _, op := range old {
		if err := e.forgetOperation(ctx, op); err != nil {
			return forgotten, fmt.Errorf("cannot forget operation %s: %w", op.ID, err)
		}
		forgotten++
	}
	return forgotten, nil
}

// forgetOperation removes the changes first: the operation is what leads to
// them.
func (e *Engine) forgetOperation(ctx context.Context, op nf.Operation) error {
	for i := range op.Steps {
		if err := nf.UnlessGone(e.changes.Delete(ctx, changesKey(op.ID, i))); err != nil {
			return err
		}
	}
	rev, err := e.revisions.Get(ctx, revisionKey(op.Instance, op.Revision))
	if nf.KindOf(err) == nf.NotFound || err == nil && rev.Operation != op.ID {
		err = e.dropPlan(ctx, op.Target) // no revision needs it
	}
	return errors.Join(err, e.dropRequest(ctx, op), nf.UnlessGone(e.operations.Delete(ctx, op.ID)))
}
