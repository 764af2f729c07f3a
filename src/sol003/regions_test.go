package sol003_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDescribedRegions has regions that requests for VNFs have described: one is removed when
// no VNF uses it.
func TestDescribedRegions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{"used", "unused", "held"} {
			w.regions[id] = nf.Region{ID: id, Type: nf.KubernetesRegion, Origin: nf.OriginVNF, Access: nf.Access{Server: "https://" + id + ":6443"}}
		}
		m, _ := w.start(t)
		exist := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return strings.Join(slices.Sorted(maps.Keys(w.regions)), " ")
		}
		id, req := create(t, m), instantiate
		req.VIMs = map[string]nf.VIMConnectionRequest{"vim1": {VIM: "8343f55f-0000-4000-8000-000000000000", Interface: map[string]any{"endpoint": "https://used:6443"}}}
		_, err := m.Instantiate(t.Context(), id, req)
		wantKind(t, "such a region is not found by its server", err, nf.NotFound)
		req.VIMs = map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "used"}.VIMID()}}
		w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
		o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, req) })
		<-time.After(time.Hour)
		if got := exist(); got != "edge held stack used west" {
			t.Errorf("while an occurrence needs one, there are %s", got)
		}
		must(t, m.Retry(t.Context(), o.ID, nf.RequestKey{}))
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceCompleted {
			t.Fatalf("the retry ended %s: %+v", o.State, o.Failure)
		}
		<-time.After(time.Hour)
		if got := exist(); got != "edge held stack used west" {
			t.Errorf("while a VNF uses one, there are %s", got)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(t.Context(), id, nf.TerminateVNFRequest{}) })
		if got := exist(); got != "edge held stack used west" {
			t.Errorf("a request may have just registered one: there are %s", got)
		}
		<-time.After(time.Hour)
		if got := exist(); got != "edge held stack west" {
			t.Errorf("after the termination, there are %s", got)
		}
	})
}
