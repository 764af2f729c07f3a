package site_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// TestOperationsOfSites has two sites with interleaved operations.
func TestOperationsOfSites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		build(t, s)
		<-time.After(time.Millisecond) // ids sort by milliseconds
		west, err := s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Site.ID, r.Site.Region = "west", "west" }))
		must(t, err)
		end(t, s, west)
		<-time.After(time.Millisecond)
		changed, err := s.Change(t.Context(), "edge", nf.SiteChangeRequest{})
		must(t, err)
		end(t, s, changed)

		lists := map[string]struct {
			reason, site string
			want         []string
		}{
			"Every":   {"an empty site stands for every site, in the order of acceptance", "", []string{"edge build", "west build", "edge change"}},
			"One":     {"a site has its own operations", "edge", []string{"edge build", "edge change"}},
			"Missing": {"a site without operations has none", "edg", []string{}},
		}
		for name, tc := range lists {
			all, err := operationsOf(t, s, tc.site)
			must(t, err)
			got := []string{}
			for _, op := range all {
				got = append(got, op.Subject.ID+" "+string(op.Verb))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
			}
		}

		reads := map[string]struct {
			reason, site, id string
			kind             nf.Kind // 0: the operation is found
		}{
			"Own":     {"under its site", "west", west.ID, 0},
			"Any":     {"by its id alone", "", west.ID, 0},
			"Other":   {"not under another site", "edge", west.ID, nf.NotFound},
			"Missing": {"an id that no operation has", "", "none", nf.NotFound},
		}
		for name, tc := range reads {
			op, err := s.Operations().Operation(t.Context(), tc.site, tc.id)
			_, cancelled := s.Operations().Cancel(t.Context(), tc.site, tc.id)
			var followed error
			for _, err := range s.Operations().Follow(t.Context(), tc.site, tc.id, 0) {
				followed = err
			}
			if tc.kind != 0 {
				wantKind(t, name+": "+tc.reason, err, tc.kind)
				wantKind(t, name+": follow: "+tc.reason, followed, tc.kind)
				wantKind(t, name+": cancel: "+tc.reason, cancelled, tc.kind)
				continue
			}
			wantKind(t, name+": cancel: it has ended", cancelled, nf.Conflict)
			if err != nil || followed != nil || op.ID != tc.id {
				t.Errorf("%s: %s: %+v, %v, %v", name, tc.reason, op, err, followed)
			}
		}
	})
}

// operationsOf returns the operations of a site, or of all if it is empty.
func operationsOf(t *testing.T, s *site.Sites, of string) ([]nf.Operation, error) {
	t.Helper()
	var out []nf.Operation
	for op, err := range s.Operations().OperationsFrom(t.Context(), of, nf.Cursor{}) {
		if err != nil {
			return nil, err
		}
		out = append(out, op)
	}
	return out, nil
}
