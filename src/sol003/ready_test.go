package sol003_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestInstantiable checks requests to instantiate, which accepts none of them.
func TestInstantiable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		ctx, id, key := t.Context(), create(t, m), nf.RequestKey{Client: "ann", Key: "k", Digest: "d"}
		want := func(reason, vnf string, req nf.InstantiateVNFRequest, kind nf.Kind) {
			t.Helper()
			o, repeated, err := m.Instantiable(ctx, vnf, req)
			if repeated || o.ID != "" {
				t.Errorf("%s: it was accepted as %+v", reason, o)
			}
			if kind == nf.Internal {
				must(t, err)
				return
			}
			wantKind(t, reason, err, kind)
		}
		flavor, file, keyed := instantiate, instantiate, instantiate
		flavor.Flavor, keyed.Key = "other", key
		file.Extra = map[string]any{"lcm-kubernetes-def-files": []any{"other"}}
		want("there is no such VNF", "none", instantiate, nf.NotFound)
		want("there is no such flavor", id, flavor, nf.Invalid)
		want("the package has no such file", id, file, nf.Invalid)
		want("it can be accepted", id, keyed, nf.Internal)
		for o, err := range m.OccurrencesFrom(ctx, nf.Cursor{}) {
			t.Errorf("there is an occurrence: %+v, %v", o, err)
		}

		first, err := m.Instantiate(ctx, id, keyed)
		must(t, err)
		want("an occurrence runs", id, instantiate, nf.Busy)
		ended(t, m, first.ID)
		want("the VNF is instantiated", id, instantiate, nf.Conflict)
		if o, repeated, err := m.Instantiable(ctx, id, keyed); err != nil || !repeated || o.ID != first.ID {
			t.Errorf("the repeated request is %s (%t), want %s: %v", o.ID, repeated, first.ID, err)
		}
		keyed.Key.Digest = "e"
		want("another request has the key", id, keyed, nf.Conflict)
	})
}
