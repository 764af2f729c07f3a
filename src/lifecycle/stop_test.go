package lifecycle_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestStopBeforeTheNextStep stops an operation whose first stage takes ten seconds to apply, and whose second
// one is never ready.
func TestStopBeforeTheNextStep(t *testing.T) {
	cases := map[string]struct {
		reason string
		after  time.Duration
		twice  bool // it is cancelled a second later
		took   time.Duration
		live   []string
	}{
		"Step":      {"the present step is completed, and the next one does not begin", 5 * time.Second, false, 10 * time.Second, []string{"db"}},
		"Wait":      {"a step that only waits ends at once", 15 * time.Second, false, 15 * time.Second, []string{"db", "web"}},
		"Cancelled": {"a cancellation ends the step", 5 * time.Second, true, 10 * time.Second, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.status["web"] = health{nf.InProgress, "pending"}
				s.cluster.before = func(call string) {
					if call == "apply [db]" {
						<-time.After(10 * time.Second)
					}
				}
				e, began := s.start(), time.Now()
				op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{
					Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db_web"}, Options: nf.Options{OnFailure: nf.Keep},
				})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(tc.after)
				if _, err := e.Stop(t.Context(), op.ID); err != nil {
					t.Fatal(err)
				}
				if tc.twice {
					<-time.After(time.Second)
					if _, err := e.Cancel(t.Context(), op.ID); err != nil {
						t.Fatal(err)
					}
				}
				if op = e.end(t, op); op.State != nf.OperationCancelled || time.Since(began).Round(time.Second) != tc.took {
					t.Errorf("%s: it ended %s after %s: %+v", tc.reason, op.State, time.Since(began), op.Failure)
				}
				if diff := cmp.Diff(tc.live, slices.Sorted(slices.Values(s.cluster.live()))); diff != "" {
					t.Errorf("%s: the objects (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
