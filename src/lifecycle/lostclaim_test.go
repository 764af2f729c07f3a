package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestLostClaim deletes the claim of an operation. A replica ends the operation
// all the same.
func TestLostClaim(t *testing.T) {
	cases := map[string]struct {
		reason string
		lose   func(t *testing.T, s *site, op nf.Operation) error
		want   nf.OperationState // empty: the operation does not exist
	}{
		"Running": {"an operation that its instance names is resumed",
			func(*testing.T, *site, nf.Operation) error { return nil }, nf.Succeeded},
		"Late": {"an operation that the store has written after its request was withdrawn is removed",
			func(t *testing.T, s *site, op nf.Operation) error {
				_, err := store.NewTable[nf.Operation](s.kv, "operations/", "operation").Update(t.Context(), op.ID, func(op *nf.Operation) error {
					op.State, op.Steps, op.Attempts, op.Started = nf.Queued, nil, 0, time.Time{}
					return nil
				})
				if err == nil {
					err = s.kv.Delete(t.Context(), "instances/"+op.Subject.ID, store.Any)
				}
				return err
			}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				var one, two meter
				a := s.replica(&one)
				s.cluster.script("a", nf.InProgress, "")
				op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				a.stop()
				if err := tc.lose(t, s, op); err != nil {
					t.Fatal(err)
				}
				if err := s.kv.Delete(t.Context(), "claims/"+op.ID, store.Any); err != nil {
					t.Fatal(err)
				}
				s.cluster.script("a", nf.Current, "")
				b := s.replica(&two)
				<-time.After(time.Hour)
				if op, err = b.Operation(t.Context(), op.ID); nf.IgnoreNotFound(err) != nil || op.State != tc.want {
					t.Errorf("%s: the operation is %s: %+v, %v", tc.reason, op.State, op.Failure, err)
				}
			})
		})
	}
}
