package site_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stubborn has instances whose termination does not simply succeed.
type stubborn struct {
	refusal error // of Terminate
	ended   nf.Operation
	lost    error // of Wait
}

func (s stubborn) Terminate(_ context.Context, id string) (nf.Operation, error) {
	return nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Verb: nf.Terminate}, s.refusal
}

func (s stubborn) Wait(context.Context, string) (nf.Operation, error) { return s.ended, s.lost }

// TestTermination removes a site whose instance cannot be terminated.
func TestTermination(t *testing.T) {
	busy := func(operation string) error {
		return &nf.Error{Kind: nf.Busy, Op: "terminate", Subject: "VNF instance vnf-1", Operation: operation}
	}
	late := nf.FailureOf("prune", nf.E(nf.Timeout, "terminate", "VNF instance vnf-1", errors.New("its deadline has passed")))
	cases := map[string]struct {
		reason string
		is     stubborn
		kind   nf.Kind
		says   string // empty: the site is removed
	}{
		"Gone": {"an instance that was deleted in the meantime is no error", stubborn{refusal: nf.E(nf.NotFound, "get", "VNF instance vnf-1", nil)}, 0, ""},
		"Failed": {"the failure of the termination is that of the removal",
			stubborn{ended: nf.Operation{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, Verb: nf.Terminate, State: nf.OperationFailed, Failure: &nf.Failure{Kind: nf.Timeout, Message: "pod web stays"}}}, nf.Timeout, "cannot terminate VNF instance vnf-1: pod web stays"},
		"Late": {"a failure that names the termination is not repeated",
			stubborn{ended: nf.Operation{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, Verb: nf.Terminate, State: nf.OperationFailed, Failure: late}}, nf.Timeout, late.Said().String()},
		"Cancelled": {"a cancelled termination has no failure", stubborn{ended: nf.Operation{State: nf.OperationCancelled}}, nf.Failed, "VNF instance vnf-1: operation op-1 is cancelled"},
		"Refused":   {"other errors are returned", stubborn{refusal: nf.E(nf.Unsupported, "terminate", "VNF instance vnf-1", nil)}, nf.Unsupported, "vnf-1"},
		"Nameless":  {"an operation without a name cannot be waited for", stubborn{refusal: busy("")}, nf.Busy, "vnf-1"},
		"Lost":      {"an operation that cannot be followed is not repeated", stubborn{lost: nf.E(nf.Conflict, "read", "op-1", nil)}, nf.Conflict, "cannot terminate VNF instance vnf-1"},
		"OtherLost": {"nor is the wait for another's", stubborn{refusal: busy("op-2"), lost: nf.E(nf.Conflict, "read", "op-2", errors.New("broken"))}, nf.Conflict, "cannot terminate VNF instance vnf-1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t, func(c *config) { c.Instances = tc.is })
				build(t, s)
				op, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
				must(t, err)
				op, _ = end(t, s, op)
				switch {
				case tc.says == "" && op.State != nf.Succeeded:
					t.Errorf("%s: the removal is %s: %+v", tc.reason, op.State, op.Failure)
				case tc.says != "" && (op.Failure == nil || op.Failure.Kind != tc.kind || !strings.Contains(op.Failure.Said().String(), tc.says) ||
					strings.Count(op.Failure.Said().String(), "cannot terminate VNF instance vnf-1") > 1):
					t.Errorf("%s: the failure is %+v, want %s with %q", tc.reason, op.Failure, tc.kind, tc.says)
				}
			})
		})
	}
}

// slowInstances has instances whose terminations end only when the test lets them.
type slowInstances struct{ done chan struct{} }

func (p slowInstances) Terminate(_ context.Context, id string) (nf.Operation, error) {
	return nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Verb: nf.Terminate}, nil
}

func (p slowInstances) Wait(ctx context.Context, id string) (nf.Operation, error) {
	select {
	case <-p.done:
		return nf.Operation{ID: id, State: nf.Succeeded}, nil
	case <-ctx.Done():
		return nf.Operation{ID: id}, context.Cause(ctx)
	}
}

// TestPlaceDuringTermination builds a site while the removal of another one waits
// for a termination. The removal leaves the only place to the build.
func TestPlaceDuringTermination(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, p := newWorld(), slowInstances{make(chan struct{})}
		s, _ := w.start(t, func(c *config) { c.Instances, c.Parallel = p, 1 })
		build(t, s)
		removal, err := s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{Instances: []string{"vnf-1"}})
		must(t, err)
		other, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Site.ID, r.Site.Region = "far", "far" }))
		must(t, err)
		time.AfterFunc(time.Hour, func() { close(p.done) })
		if other, _ = end(t, s, other); other.State != nf.Succeeded || other.Finished.Sub(other.Accepted) >= time.Hour {
			t.Errorf("the build is %s after %s: it has waited for the removal's place", other.State, other.Finished.Sub(other.Accepted))
		}
		if removal, _ = end(t, s, removal); removal.State != nf.Succeeded {
			t.Errorf("the removal is %s: %+v", removal.State, removal.Failure)
		}
	})
}
