package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// storePlan returns the op that holds the plan for the operation. It stores a large
// plan at once. The plan of an earlier revision is already stored.
func (s *records) storePlan(ctx context.Context, op *nf.Operation, encoded []byte) ([]store.Op, error) {
	ops := make([]store.Op, 1)
	var err error
	switch user := planUser(op.ID); {
	case op.Instance.Target.Plan != "":
		ops[0], err = s.blobs.HoldOp(ctx, user, op.Instance.Target.Plan)
	case len(encoded) <= store.MaxInline:
		ops[0], op.Instance.Target.Plan, err = s.blobs.PutOp(ctx, user, encoded)
	default:
		ops = nil
		op.Instance.Target.Plan, _, err = s.blobs.Put(ctx, user, bytes.NewReader(encoded), int64(len(encoded)))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot store the plan: %w", err)
	}
	return ops, nil
}

// dropPlan releases a revision's plan.
func (s *records) dropPlan(ctx context.Context, rev nf.Revision) error {
	if rev.Plan == "" {
		return nil
	}
	return nf.IgnoreNotFound(s.blobs.Release(ctx, planUser(rev.Operation), rev.Plan))
}

// loadPlan reads a stored plan.
func (s *records) loadPlan(ctx context.Context, digest string) (render.Plan, error) {
	encoded, err := s.blobs.ReadAll(ctx, digest)
	if err != nil {
		return render.Plan{}, operation.RecordError(fmt.Errorf("cannot read the plan: %w", err))
	}
	plan, err := render.Decode(encoded)
	if err != nil {
		return render.Plan{}, fmt.Errorf("cannot decode the plan: %w", err)
	}
	return plan, nil
}

// planInForce returns an instance's plan in force and its revision.
func (s *records) planInForce(ctx context.Context, in nf.Instance) (render.Plan, nf.Revision, error) {
	if in.Revision == 0 {
		return render.Plan{}, nf.Revision{}, nf.E(nf.Conflict, "use", "VNF instance "+in.ID, errors.New("it was never instantiated"))
	}
	rev, err := s.revisions.Get(ctx, revisionKey(in.ID, in.Revision))
	if err != nil {
		return render.Plan{}, rev, err
	}
	plan, err := s.loadPlan(ctx, rev.Plan)
	return plan, rev, err
}

// lastPlan is Engine.Plan of an instance.
func (s *records) lastPlan(ctx context.Context, in nf.Instance) (render.Plan, error) {
	if in.Revision == 0 {
		op, err := s.ledger.Get(ctx, in.LastOperation)
		if nf.IgnoreNotFound(err) != nil {
			return render.Plan{}, err
		}
		if op.Instance.Target.Plan != "" {
			return s.loadPlan(ctx, op.Instance.Target.Plan)
		}
	}
	plan, _, err := s.planInForce(ctx, in)
	tune(&plan, in, nf.Rollback)
	return plan, err
}

// planUser returns the user under which a plan's blob is held, as long as a
// revision or its operation may need it.
func planUser(operation string) string { return "plan/" + operation }
