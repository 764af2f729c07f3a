package shared

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestWithdrawBesideADuplicate withdraws a request whose process has died, while another one
// of the same holder creates the resource: the holder keeps its hold.
func TestWithdrawBesideADuplicate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		duplicate bool
	}{
		"Alone":     {"no resource was created", false},
		"Duplicate": {"the other request has created the resource", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const id = "east.lan"
			holder := Named("so")
			kv := memory.New()
			table, holds := store.NewTable[nf.Shared](kv, "networks/", "network"), store.NewHolds(kv, "networks/")
			hold := func() {
				if err := holds.Drop(t.Context(), id, holder); err != nil {
					t.Fatal(err)
				}
				if err := holds.Add(t.Context(), id, holder); err != nil {
					t.Fatal(err)
				}
			}
			hold() // the last that the process did
			looks, accepted := 0, !tc.duplicate
			during := storetest.Failing{KV: kv, Fail: func(method, key string) error {
				if method == "Get" && key == "networks/"+id {
					looks++
				}
				deletes := method == "Delete" && strings.HasPrefix(key, "holds/")
				if accepted || looks < 2 && !deletes {
					return nil
				}
				accepted = true // after the resource was looked for, at the last moment
				hold()
				return table.Insert(t.Context(), id, nf.Shared{ID: id})
			}}
			r := &Resources{
				cfg:   Config{Task: func(*nf.Operation) *nf.SharedTask { return &nf.SharedTask{Holder: "so"} }},
				table: store.NewTable[nf.Shared](during, "networks/", "network"), holds: store.NewHolds(during, "networks/"),
			}
			if err := r.withdraw(t.Context(), nf.Operation{Subject: nf.Subject{Kind: nf.NetworkSubject, ID: id}}); err != nil {
				t.Fatal(err)
			}
			if has, err := holds.Has(t.Context(), id, holder); err != nil || has != tc.duplicate || !accepted {
				t.Errorf("%s: held %t, accepted %t, %v", tc.reason, has, accepted, err)
			}
		})
	}
}
