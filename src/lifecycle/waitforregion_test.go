package lifecycle_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWaitForRegionRequests makes requests with WaitForRegion while the region is
// unreachable.
func TestWaitForRegionRequests(t *testing.T) {
	waitOptions := nf.Options{WaitForRegion: true, Timeout: time.Minute}
	cases := map[string]struct {
		reason   string
		begin    func(*testing.T, *engine, nf.Operation) (nf.Operation, error)
		accepted bool
		live     []string // in the end, of one that is accepted
	}{
		"Instantiate": {
			reason: "a new instance is checked with the region first",
			begin: func(t *testing.T, e *engine, _ nf.Operation) (nf.Operation, error) {
				return e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "web"}, Options: waitOptions})
			},
		},
		"Upgrade": {
			reason: "so is a change",
			begin: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				req := change("db_web", "xl")
				req.Options = waitOptions
				return e.Upgrade(t.Context(), op.Subject.ID, req)
			},
		},
		"Configure": {
			reason: "of the configuration, too",
			begin: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Options: waitOptions, Edit: func(s *nf.Spec) error {
					s.Amendments = []nf.Amendment{{Name: "day2", Package: "cfg"}}
					return nil
				}})
			},
		},
		"Rollback": {
			reason: "and back",
			begin: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Rollback(t.Context(), op.Subject.ID, nf.RollbackRequest{Revision: 1, Options: waitOptions})
			},
		},
		"Terminate": {
			reason: "a removal is accepted, and waits for longer than its time", accepted: true, live: []string{},
			begin: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{Options: waitOptions})
			},
		},
		"Test": {
			reason: "so is a test", accepted: true, live: []string{"db"},
			begin: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Test(t.Context(), op.Subject.ID, nf.TestRequest{Options: waitOptions})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, "db_probe.p")
				before := s.records()
				s.cluster.leave(errors.New("no route"))
				op, err := tc.begin(t, e, first)
				if !tc.accepted {
					if nf.KindOf(err) != nf.Unreachable {
						t.Fatalf("%s: %v, want that the region is unreachable", tc.reason, err)
					}
					if diff := cmp.Diff(before, s.records()); diff != "" {
						t.Errorf("%s: records (-before +after):\n%s", tc.reason, diff)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				<-time.After(time.Hour)
				s.cluster.leave(nil)
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %s, %+v", tc.reason, op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
