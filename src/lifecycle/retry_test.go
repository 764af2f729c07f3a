package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRetryThatFails retries an operation that failed and left what it did, and
// has the retry fail, too.
func TestRetryThatFails(t *testing.T) {
	failing := func(c *fakeCluster) { c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"} }
	cases := map[string]struct {
		reason string
		pkg    string
		script func(*fakeCluster)
		first  nf.Options
		retry  nf.Options
		want   nf.OnFailure // of the retry
		live   []string
	}{
		"Kept": {
			reason: "what was kept for inspection is kept again", pkg: "db_web", script: failing,
			first: nf.Options{OnFailure: nf.Keep}, want: nf.Keep, live: []string{"db", "web"},
		},
		"KeptAndToUndo": {
			reason: "unless the retry says otherwise", pkg: "db_web", script: failing,
			first: nf.Options{OnFailure: nf.Keep}, retry: nf.Options{OnFailure: nf.Undo}, want: nf.Undo, live: []string{},
		},
		"KeptByItsWait": {
			reason: "a hook after a request that waits for no more than the application takes nothing away, by a retry neither",
			pkg:    "db_late.h", first: nf.Options{NoWait: true}, want: nf.Keep, live: []string{"db", "h"},
			script: func(c *fakeCluster) { c.status["h"] = health{nf.StatusFailed, "exit 1"} },
		},
		"UndoFailed": {
			reason: "what was to be undone and could not be is to be undone still", pkg: "db_web", want: nf.Undo, live: []string{"db", "web"},
			script: func(c *fakeCluster) { failing(c); c.finalizer["web"] = true },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				tc.script(s.cluster)
				e := s.start()
				op := e.up(t, tc.pkg, func(r *nf.InstantiateRequest) { r.Options = tc.first })
				again, err := e.Retry(t.Context(), op.ID, tc.retry)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				again = e.end(t, again)
				if again.OnFailure != tc.want || again.State != nf.OperationFailed {
					t.Errorf("%s: on failure %s, %s", tc.reason, again.OnFailure, again.State)
				}
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
