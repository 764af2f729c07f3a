package sol003_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestModified changes a VNF whose pods are replaced under their names.
func TestModified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.engine.stateful = true
		m, _ := w.start(t)
		id := prepared(t, m, connecting)
		want := map[nf.VNFCChange]int{nf.VNFCModified: 1}
		for _, r := range []request{connecting, changing} {
			o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return r.make(t.Context(), m, id, nf.RequestKey{}) })
			got := map[nf.VNFCChange]int{}
			for _, c := range o.VNFCs {
				got[c.Change]++
			}
			if len(got) != 1 || got[nf.VNFCModified] != 1 {
				t.Errorf("%s has the changes %v, want %v", o.Operation, got, want)
			}
		}
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return scaling.make(t.Context(), m, id, nf.RequestKey{}) })
		if len(o.VNFCs) != 1 || o.VNFCs[0].Change != nf.VNFCAdded {
			t.Errorf("a pod that stays as it is has changed: %+v", o.VNFCs)
		}
	})
}
