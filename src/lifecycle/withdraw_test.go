package lifecycle

import (
	"context"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// packageHolds are the holds on packages.
type packageHolds struct {
	Holds

	of store.Holds
}

// ReleaseOps implements Holds.
func (h packageHolds) ReleaseOps(ctx context.Context, of nf.Holding) ([]store.Op, error) {
	return h.of.DropOps(ctx, of.Package, of.Holder)
}

// TestWithdrawBesideADuplicate withdraws a request whose process has died, while another one
// with the same id is accepted: the instance of that one keeps its holds.
func TestWithdrawBesideADuplicate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		duplicate bool
	}{
		"Alone":     {"no instance was created", false},
		"Duplicate": {"the other request has created the instance", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kv := memory.New()
			var accept func() // another request, after the instance was looked for
			holds := packageHolds{of: store.NewHolds(kv, "packages/")}
			r := newRecords(storetest.Failing{KV: kv, Fail: func(method, key string) error {
				if method == "List" && strings.HasPrefix(key, "instancenames/") {
					accept()
				}
				return nil
			}}, holds, nil)
			op := nf.Operation{ID: "one", Subject: subjectOf("vnf"), Verb: nf.Instantiate, Region: "east", Instance: nf.InstanceTask{Target: nf.Revision{Package: "web"}}}
			hold := func() {
				held, err := holds.of.AddOp("web", holderOf(op))
				if err == nil {
					_, err = store.Write(t.Context(), kv, []store.Op{held})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			hold() // the last that the process did
			accept = func() {
				if !tc.duplicate {
					return
				}
				hold()
				if err := r.instances.Insert(t.Context(), "vnf", nf.Instance{ID: "vnf"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.withdraw(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			if has, err := holds.of.Has(t.Context(), "web", holderOf(op)); err != nil || has != tc.duplicate {
				t.Errorf("%s: held %t, %v", tc.reason, has, err)
			}
		})
	}
}
