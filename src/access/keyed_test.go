package access_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// keyed makes a call with a request key, if the call takes one.
func (h *house) keyed(ctx context.Context, c accesstest.Case, key string) error {
	o := nf.Options{Key: nf.RequestKey{Key: key}}
	var err error
	switch id := vnf(c.Project, c.Region); c.Call.Name {
	case "Upgrade":
		_, err = h.Instances.Upgrade(ctx, id, nf.UpgradeRequest{Edit: func(*nf.Spec) error { return nil }, Options: o})
	case "Rollback":
		_, err = h.Instances.Rollback(ctx, id, nf.RollbackRequest{Options: o})
	case "Configure":
		_, err = h.Instances.Configure(ctx, id, nf.ConfigureRequest{Edit: func(*nf.Spec) error { return nil }, Options: o})
	case "Test":
		_, err = h.Instances.Test(ctx, id, nf.TestRequest{Options: o})
	case "Act":
		_, err = h.Instances.Act(ctx, id, nf.ActRequest{Options: o})
	case "Terminate":
		_, err = h.Instances.Terminate(ctx, id, nf.TerminateRequest{Options: o})
	case "Retry":
		_, err = h.Operations.Retry(ctx, op(c.Project, c.Region), o)
	case "Undo":
		_, err = h.Operations.Undo(ctx, op(c.Project, c.Region), o)
	default:
		err = h.make(ctx, c)
	}
	return err
}

// TestKeyOfAnotherScope has a key whose operation is where the caller has no permission,
// in a request that it may make.
func TestKeyOfAnotherScope(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.world.keyed["token:operator-a-east/k"] = nf.Operation{ID: "the-other", Project: "b", Region: "east"}
	req := nf.TerminateRequest{Options: nf.Options{Key: nf.RequestKey{Key: "k"}}}
	if op, err := h.Instances.Terminate(h.as(t, "operator-a-east"), "vnf-a-east", req); nf.ReasonOf(err) != nf.ReasonIdempotency {
		t.Errorf("the key shows operation %q: %v", op.ID, err)
	}
}
