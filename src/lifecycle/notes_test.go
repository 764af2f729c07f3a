package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestNotes follows the notes of a package through the revisions of an instance.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		noting := func(text string) map[string]any {
			return map[string]any{"secret": "a-pass", "defaults": true, "notes": text}
		}
		first := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Inputs.Parameters = noting("log in with a-pass or default-pass") })
		id := first.Subject.ID
		op, err := e.Upgrade(t.Context(), id, nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
			s.Inputs.Parameters = noting(strings.Repeat("é", nf.MaxNotes))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if op, err = e.Configure(t.Context(), id, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
			s.Amendments = append(s.Amendments, nf.Amendment{Name: "b", Package: "b", Inputs: nf.Inputs{Parameters: map[string]any{"notes": "of the amendment"}}})
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if op, err = e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: 1}); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		masked := "log in with " + nf.Masked + " or " + nf.Masked
		long := nf.Clip(strings.Repeat("é", nf.MaxNotes), nf.MaxNotes)
		for _, tc := range []struct {
			reason   string
			revision int
			want     string
		}{
			{"secrets of the request and of the package are masked", 1, masked},
			{"long notes are cut", 2, long},
			{"an amendment does not replace them", 3, long},
			{"a rollback has those of the former revision", 4, masked},
		} {
			rev, err := e.Revision(t.Context(), id, tc.revision)
			if diff := cmp.Diff(tc.want, rev.Notes); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		}
	})
}
