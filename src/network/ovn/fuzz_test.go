package ovn_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// FuzzNormalize checks that a canonical form is its own canonical form, and that a
// network of it has objects and attachments, or violations.
func FuzzNormalize(f *testing.F) {
	for _, m := range networks {
		f.Add([]byte(m.spec))
	}
	region := serving("Subnet")
	f.Fuzz(func(t *testing.T, spec []byte) {
		once, err := ovn.Driver{}.Normalize(spec, region)
		if err != nil {
			if nf.KindOf(err) != nf.Invalid || len(nf.ViolationsOf(err)) == 0 {
				t.Fatalf("an error without violations: %v", err)
			}
			return
		}
		twice, err := ovn.Driver{}.Normalize(once, region)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent: %s, then %s (%v)", once, twice, err)
		}
		if v := (ovn.Driver{}).Frozen(once, twice, true); len(v) > 0 {
			t.Fatalf("%s differs from itself: %v", once, v)
		}
		n := nf.Network{Name: "oam", Spec: once}
		objects, err := ovn.Driver{}.Objects(n, "x")
		if err != nil || len(objects) == 0 {
			t.Fatalf("%s has the objects %v (%v)", once, objects, err)
		}
		for _, o := range objects {
			if _, err := json.Marshal(o.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := (ovn.Driver{}).Layout(n); err != nil {
			t.Fatal(err)
		}
		for _, replicas := range []int{-1, 1, 2} {
			asked := nf.Attachment{IPs: []string{"10.1.0.9/24"}, MAC: "02:00:00:00:00:01", DefaultRoute: []string{"10.1.0.1"}, Bandwidth: &nf.Bandwidth{EgressRate: 1_000_000}}
			if _, err := (ovn.Driver{}).Connect(n, "x", asked, replicas); err != nil && nf.KindOf(err) != nf.Invalid {
				t.Fatal(err)
			}
		}
	})
}
