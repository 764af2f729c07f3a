package sol003_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestConfirm changes the package of a VNF. The engine wants a confirmation that objects are
// deleted.
func TestConfirm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		id := prepared(t, m, changing)
		w.engine.guard = "sha256:1"
		change := func(want nf.OccurrenceState, confirm any) nf.Occurrence {
			t.Helper()
			return do(t, m, want, func() (nf.Occurrence, error) {
				return m.ChangePackage(t.Context(), id, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2", VNFRequest: nf.VNFRequest{Extra: map[string]any{"confirm": confirm}}})
			})
		}
		for _, confirm := range []string{"", "sha256:0"} {
			o := change(nf.OccurrenceRolledBack, confirm)
			if f := o.Failure; f.Kind != nf.Conflict || f.Reason != nf.ReasonConfirm || !strings.Contains(f.Message, `additionalParams.confirm "sha256:1"`) || !strings.Contains(f.Message, "ConfigMap old") {
				t.Errorf("with the confirmation %q, the failure is %+v", confirm, f)
			}
		}
		_, err := m.ChangePackage(t.Context(), id, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2", VNFRequest: nf.VNFRequest{Extra: map[string]any{"confirm": true}}})
		wantKind(t, "a confirmation is a text", err, nf.Invalid)

		w.engine.fail(map[nf.Verb]int{nf.Upgrade: 1})
		o := change(nf.OccurrenceFailedTemp, "sha256:1")
		must(t, m.Rollback(t.Context(), o.ID, nf.RequestKey{}))
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceRolledBack {
			t.Fatalf("a rollback confirms itself: it ended %s: %+v", o.State, o.Failure)
		}
		change(nf.OccurrenceCompleted, "sha256:1")
		if v := get(t, m, id); v.Package != "two" || v.Instantiated.Params["confirm"] != nil || w.engine.instances[id].Inputs.Parameters["confirm"] != nil {
			t.Errorf("the confirmation is a parameter of the VNF: %+v", v.Instantiated)
		}
	})
}
