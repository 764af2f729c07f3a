package sol003_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCreateRepeated repeats the creation of a VNF under its key.
func TestCreateRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		wanted := nf.VNF{Name: "router", VNFD: nf.VNFD{ID: "vnfd-1"}, Request: nf.RequestKey{Client: "ann", Key: "k", Digest: "d"}}
		first, err := m.Create(t.Context(), wanted)
		must(t, err)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), first.ID, instantiate) })
		again, err := m.Create(t.Context(), wanted)
		if err != nil || again.ID != first.ID || again.Instantiated == nil {
			t.Errorf("the repeated request returns %+v: %v", again, err)
		}
		wanted.Request.Client = "bob"
		other, err := m.Create(t.Context(), wanted)
		if err != nil || other.ID == first.ID {
			t.Errorf("the key of another client: %+v, %v", other, err)
		}
		wanted.Request = nf.RequestKey{Client: "ann", Key: "k", Digest: "e"}
		if _, err = m.Create(t.Context(), wanted); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonIdempotency {
			t.Errorf("another request under the key: %v", err)
		}
		created := 0
		for _, n := range notices(t, m) {
			if n == string(nf.NoticeCreation) {
				created++
			}
		}
		if created != 2 {
			t.Errorf("%d creations have a notice", created)
		}
	})
}
