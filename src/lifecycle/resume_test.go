package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestResumeAtEveryCall stops the service at each call that it makes to a
// cluster, one run for each, and starts a new one on the same store: the
// operation must end as if nothing had happened.
func TestResumeAtEveryCall(t *testing.T) {
	verbs := map[string]struct {
		run  func(*engine, *testing.T, string) (nf.Operation, error)
		live []string
	}{
		"instantiate": {
			run: func(e *engine, t *testing.T, _ string) (nf.Operation, error) {
				return e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "x_y-z"}})
			},
			live: []string{"db", "old", "x", "y", "z"},
		},
		"upgrade": {
			run: func(e *engine, t *testing.T, id string) (nf.Operation, error) {
				return e.Upgrade(t.Context(), id, change("db_new", "xl"))
			},
			live: []string{"db", "new"},
		},
		"terminate": {
			run: func(e *engine, t *testing.T, id string) (nf.Operation, error) {
				return e.Terminate(t.Context(), id, nf.TerminateRequest{})
			},
			live: []string{},
		},
	}
	for verb, tc := range verbs {
		t.Run(verb, func(t *testing.T) {
			for stopAt := 1; ; stopAt++ {
				reached := false
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t)
					e := s.start(func(c *config) { c.Drain = time.Nanosecond })
					first := e.up(t, "db_old")
					calls, block := 0, make(chan struct{})
					s.cluster.before = func(call string) {
						if call == "preflight" || strings.HasPrefix(call, "dry-run") { // nothing is accepted yet
							return
						}
						if calls++; calls == stopAt {
							reached = true
							<-block
						}
					}
					op, err := tc.run(e, t, first.Subject.ID)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					// By then the worker's context has ended: the call fails.
					defer time.AfterFunc(time.Second, func() { close(block) }).Stop()
					e.stop()
					s.cluster.before = nil
					op = s.start().end(t, op)
					if op.State != nf.Succeeded {
						t.Fatalf("stopped at call %d: %+v", stopAt, op.Failure)
					}
					if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
						t.Errorf("stopped at call %d: objects (-want +got):\n%s", stopAt, diff)
					}
				})
				if !reached {
					if stopAt < 3 {
						t.Fatalf("only %d calls were interrupted", stopAt-1)
					}
					return
				}
			}
		})
	}
}
