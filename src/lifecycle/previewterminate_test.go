package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestPreviewTerminate compares the preview of a removal with the objects that the
// removal then leaves.
func TestPreviewTerminate(t *testing.T) {
	cases := map[string]struct {
		reason   string
		request  nf.TerminateRequest
		script   func(*fakeCluster)
		want     []string
		warnings int
		live     []string
		fails    nf.Kind
	}{
		"Claims stay": {
			reason: "last stages first, and then the claims", want: []string{"deleted db", "deleted a", "kept data-db-0"}, live: []string{"data-db-0"},
		},
		"Claims go": {
			reason: "if the request says so", request: nf.TerminateRequest{Claims: nf.ClaimsDelete}, want: []string{"deleted db", "deleted a", "deleted data-db-0"}, live: []string{},
		},
		"Orphan": {
			reason: "all stays", request: nf.TerminateRequest{Orphan: true}, want: []string{"orphaned db", "orphaned a"}, live: []string{"a", "data-db-0", "db"},
		},
		"Away": {
			reason: "a removal is accepted without the region, and so is its preview", script: func(c *fakeCluster) { c.volumesErr = errors.New("away") },
			want: []string{"deleted db", "deleted a"}, warnings: 1, live: []string{"data-db-0"},
		},
		"Both": {reason: "it fails as the removal", request: nf.TerminateRequest{Orphan: true, Claims: nf.ClaimsDelete}, fails: nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "a_set.db").Subject.ID
				s.cluster.claim("data-db-0", "db")
				if tc.script != nil {
					tc.script(s.cluster)
				}
				before := s.cluster.live()
				got, err := e.PreviewTerminate(t.Context(), id, tc.request)
				if tc.fails != 0 {
					if nf.KindOf(err) != tc.fails {
						t.Errorf("%s: got error %v, want %v", tc.reason, err, tc.fails)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var lines []string
				for _, c := range got.Changes {
					lines = append(lines, fmt.Sprintf("%s %s", c.Action, c.Name))
				}
				if diff := cmp.Diff(tc.want, lines); diff != "" || len(got.Warnings) != tc.warnings {
					t.Errorf("%s: warnings %q, changes (-want +got):\n%s", tc.reason, got.Warnings, diff)
				}
				if diff := cmp.Diff(before, s.cluster.live()); diff != "" {
					t.Errorf("the preview has changed objects (-before +after):\n%s", diff)
				}
				op, err := e.Terminate(t.Context(), id, tc.request)
				if err != nil {
					t.Fatal(err)
				}
				e.end(t, op)
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects that stay (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
