package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestTerminateInsteadOfHooks cancels an operation that has applied everything, for a client
// that does not wait, while its last hook runs. The instance can be terminated then.
func TestTerminateInsteadOfHooks(t *testing.T) {
	cases := map[string]struct {
		reason string
		begin  func(*testing.T, *site, *engine) nf.Operation
	}{
		"Instantiate": {"nothing is undone", func(t *testing.T, s *site, e *engine) nf.Operation {
			s.cluster.script("l", nf.InProgress, "at it")
			op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db_late.l"}, Options: nf.Options{NoWait: true}})
			if err != nil {
				t.Fatal(err)
			}
			return op
		}},
		"Upgrade": {"nor is an upgrade", func(t *testing.T, s *site, e *engine) nf.Operation {
			first := e.up(t, "db")
			s.cluster.script("l", nf.InProgress, "at it")
			req := change("db_late.l", "xl")
			req.Options = nf.Options{NoWait: true}
			op, err := e.Upgrade(t.Context(), first.Subject.ID, req)
			if err != nil {
				t.Fatal(err)
			}
			return op
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				op := tc.begin(t, s, e)
				synctest.Wait()
				if now, err := e.Operation(t.Context(), op.ID); err != nil || now.Applied.IsZero() {
					t.Fatalf("%s: it is applied, and its hook runs: %+v, %v", tc.reason, now, err)
				}
				if _, err := e.Cancel(t.Context(), op.ID); err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.OperationCancelled || op.Undoing {
					t.Errorf("%s: %s, undoing %t, %+v", tc.reason, op.State, op.Undoing, op.Failure)
				}
				op, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: the termination is %s, %+v", tc.reason, op.State, op.Failure)
				}
				if diff := cmp.Diff([]string{}, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
