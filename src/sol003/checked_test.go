package sol003_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestChecked checks requests, which accepts none of them.
func TestChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		described := map[string]nf.VIMConnectionRequest{"new": {VIM: "none"}}
		ctx, id, key := t.Context(), create(t, m), nf.RequestKey{Client: "ann", Key: "k", Digest: "d"}
		want := func(reason, vnf string, req nf.InstantiateVNFRequest, kind nf.Kind) {
			t.Helper()
			req.Check, req.VIMs = true, described
			o, err := m.Instantiate(ctx, vnf, req)
			if o.ID != "" {
				t.Errorf("%s: it was accepted as %+v", reason, o)
			}
			if kind == nf.Internal {
				must(t, err)
				return
			}
			wantKind(t, reason, err, kind)
		}
		flavor, file, namespace, keyed := instantiate, instantiate, instantiate, instantiate
		flavor.Flavor, keyed.Key = "other", key
		namespace.Extra = map[string]any{"namespace": "A_B"}
		file.Extra = map[string]any{"lcm-kubernetes-def-files": []any{"other"}}
		want("there is no such VNF", "none", instantiate, nf.NotFound)
		want("there is no such flavor", id, flavor, nf.Invalid)
		want("the package has no such file", id, file, nf.Invalid)
		want("no namespace has this name", id, namespace, nf.Invalid)
		want("it can be accepted", id, keyed, nf.Internal)
		for o, err := range m.OccurrencesFrom(ctx, nf.Cursor{}) {
			t.Errorf("there is an occurrence: %+v, %v", o, err)
		}

		first, err := m.Instantiate(ctx, id, keyed)
		must(t, err)
		want("an occurrence runs", id, instantiate, nf.Busy)
		ended(t, m, first.ID)
		want("the VNF is instantiated", id, instantiate, nf.Conflict)
		keyed.Check = true
		if o, err := m.Instantiate(ctx, id, keyed); err != nil || o.ID != first.ID {
			t.Errorf("the repeated request is %s, want %s: %v", o.ID, first.ID, err)
		}
		keyed.Key.Digest = "e"
		want("another request has the key", id, keyed, nf.Conflict)

		checked := nf.VNFRequest{Check: true}
		for reason, err := range map[string]error{
			"a modification": second(m.Modify(ctx, id, nf.ModifyVNFRequest{VNFRequest: checked, VIMs: described})),
			"a new package":  second(m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFRequest: checked, VNFD: "vnfd-2", VIMs: described})),
		} {
			if err != nil {
				t.Errorf("%s: %v", reason, err)
			}
		}
		wantKind(t, "the VNF is not moved", second(m.Modify(ctx, id, nf.ModifyVNFRequest{VNFRequest: checked, VIMs: map[string]nf.VIMConnectionRequest{
			"default": {Interface: map[string]any{"endpoint": "https://west:6443"}, Access: map[string]any{"bearer_token": "s3cret"}},
		}})), nf.Conflict)
		wantKind(t, "no package has the descriptor", second(m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFRequest: checked, VNFD: "none"})), nf.Unsupported)
		all := 0
		for _, err := range m.OccurrencesFrom(ctx, nf.Cursor{}) {
			must(t, err)
			all++
		}
		if all != 1 {
			t.Errorf("there are %d occurrences, want that of the first request", all)
		}
	})
}

func second(_ nf.Occurrence, err error) error { return err }
