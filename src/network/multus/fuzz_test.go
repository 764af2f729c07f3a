package multus_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// FuzzNormalize checks that a canonical form is its own canonical form, and that a
// network of it has objects whose configuration is JSON.
func FuzzNormalize(f *testing.F) {
	for _, main := range mains {
		for _, with := range addressings {
			f.Add([]byte(main[:len(main)-1] + `, "ipam": ` + with.ipam + "}"))
		}
	}
	for _, spec := range []string{staticNetwork, sharedNetwork, hostLocal, fixedPool, sharedPool, layer2, ipvlan, tunedDevice, switchedOff, declared, rawAble} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		once, err := multus.Driver{}.Normalize(spec, nf.NetworkRegion{})
		if err != nil {
			if nf.KindOf(err) != nf.Invalid || len(nf.ViolationsOf(err)) == 0 {
				t.Fatalf("an error without violations: %v", err)
			}
			return
		}
		twice, err := multus.Driver{}.Normalize(once, nf.NetworkRegion{})
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent: %s, then %s (%v)", once, twice, err)
		}
		n := nf.Network{Name: "oam", Spec: once}
		objects, err := multus.Driver{}.Objects(n, "x")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if config, _ := o.Object["spec"].(map[string]any)["config"].(string); !json.Valid([]byte(config)) {
				t.Fatalf("the configuration is not JSON: %s", config)
			}
		}
		multus.Driver{}.NodeLocal(once)
		if _, err := (multus.Driver{}).Layout(n); err != nil {
			t.Fatal(err)
		}
		for _, replicas := range []int{-1, 1} {
			asked := nf.Attachment{IPs: []string{"10.1.0.9/24"}, MAC: "02:00:00:00:00:01", DefaultRoute: []string{"10.1.0.1"}, Bandwidth: &nf.Bandwidth{EgressRate: 1, EgressBurst: 1}}
			if _, err := (multus.Driver{}).Connect(n, "x", asked, replicas); err != nil && nf.KindOf(err) != nf.Invalid {
				t.Fatal(err)
			}
		}
	})
}
