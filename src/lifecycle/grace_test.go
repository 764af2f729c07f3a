package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestTerminateGrace terminates an instance whose pods take time to end. One pod is being
// deleted at once, and another one later.
func TestTerminateGrace(t *testing.T) {
	cases := map[string]struct {
		reason string
		grace  *time.Duration
		want   []string
	}{
		"None":    {"pods have their own grace periods", nil, []string{}},
		"Zero":    {"pods are killed, each once", new(time.Duration(0)), []string{"shorten web-1 true 0s", "shorten web-2 true 0s"}},
		"Seconds": {"or have at most this long", new(2 * time.Second), []string{"shorten web-1 true 2s", "shorten web-2 true 2s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				s.cluster.pods = []nf.Pod{podOf("web-1"), podOf("web-2"), podOf("other")}
				s.cluster.pods[0].Status = nf.StatusDeleting
				s.cluster.finalizer["web"] = true
				op, err := e.Terminate(t.Context(), id, nf.TerminateRequest{Grace: tc.grace})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(5 * time.Second)
				s.cluster.mu.Lock()
				s.cluster.pods[1].Status = nf.StatusDeleting
				s.cluster.mu.Unlock()
				<-time.After(5 * time.Second)
				s.cluster.mu.Lock()
				delete(s.cluster.objects, configMap("web").Key())
				s.cluster.touch()
				s.cluster.mu.Unlock()
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %s: %v", tc.reason, op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.want, s.cluster.asked("shorten")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestTerminateGraceInvalid(t *testing.T) {
	t.Parallel()
	if err := (nf.TerminateRequest{Grace: new(-time.Second)}).Validate(); nf.KindOf(err) != nf.Invalid {
		t.Errorf("a negative grace period: %v", err)
	}
}
