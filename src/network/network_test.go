package network_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestUseCount creates a network, lets two instances hold it, and ends the holds: the
// number of holders is 1, 2, 3, 2, 1, 0, and the network is gone with the last one.
func TestUseCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		counts := []int{count(t, s)}
		for _, id := range []string{"vnf-1", "vnf-2", "vnf-2"} {
			_, err := s.Use(t.Context(), oam, instance(id))
			must(t, err)
			counts = append(counts, count(t, s))
		}
		op, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		if op.ID != "" {
			t.Errorf("a network with holders is removed by %+v", op)
		}
		counts = append(counts, count(t, s))
		for _, id := range []string{"vnf-1", "vnf-1", "vnf-2"} {
			must(t, s.Leave(t.Context(), oam, instance(id)))
			counts = append(counts, count(t, s))
		}
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 2, 3, 3, 2, 1, 1, 0}, counts); diff != "" {
			t.Errorf("holders (-want +got):\n%s", diff)
		}
		if got := state(t, s); got != "" || len(w.applied()) > 0 || len(w.held) > 0 {
			t.Errorf("the network is %q, with %v in the region, which %v hold", got, w.applied(), w.held)
		}
	})
}

// TestSameNetworkTwice creates a network that exists.
func TestSameNetworkTwice(t *testing.T) {
	spec := func(text string) func(*nf.SharedRequest) {
		return func(r *nf.SharedRequest) { r.Resource.Spec, r.Holder = json.RawMessage(text), "bob" }
	}
	cases := map[string]struct {
		reason  string
		edit    func(*nf.SharedRequest)
		kind    nf.Kind
		field   string
		holders int
	}{
		"Equal":     {"an equal spec adds a holder", spec(`{"wires":["b","a"]}`), 0, "", 2},
		"Same":      {"a holder counts once", func(*nf.SharedRequest) {}, 0, "", 1},
		"Different": {"the difference is named", spec(`{"wires":["a"]}`), nf.Exists, "spec.wires", 1},
		"Driver":    {"another driver is another network", func(r *nf.SharedRequest) { r.Resource.Driver = "other" }, nf.Unsupported, "driver", 1},
		"Wrong":     {"the driver refuses the spec", spec(`{}`), nf.Invalid, "spec.wires", 1},
		"Region":    {"the region does not exist", func(r *nf.SharedRequest) { r.Resource.Region = "west" }, nf.NotFound, "cloud_region_id", 1},
		"Name":      {"the name is not a label", func(r *nf.SharedRequest) { r.Resource.Name = "a.b" }, nf.Invalid, "name", 1},
		"Holder":    {"a request without a holder", func(r *nf.SharedRequest) { r.Holder = "" }, nf.Invalid, "holder", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				first := spec(`{"wires":["a","b"]}`)
				w.create(t, s, request(first, func(r *nf.SharedRequest) { r.Holder = "ann" }))
				op, err := s.Create(t.Context(), request(first, func(r *nf.SharedRequest) { r.Holder = "ann" }, tc.edit))
				w.end(t, op)
				violations := nf.ViolationsOf(err)
				if tc.kind == 0 && err != nil || tc.kind != 0 && (nf.KindOf(err) != tc.kind || len(violations) == 0 || violations[0].Field != tc.field) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				if got := count(t, s); got != tc.holders {
					t.Errorf("%s: %d holders, want %d", tc.reason, got, tc.holders)
				}
			})
		})
	}
}

// TestNodeLocal creates a network whose addresses are unique on each node only.
func TestNodeLocal(t *testing.T) {
	for nodes, wanted := range map[int]bool{1: true, 2: false} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				w.nodes = nodes
				s, _ := w.start(t)
				op, err := s.Create(t.Context(), request(func(r *nf.SharedRequest) { r.Resource.Spec = json.RawMessage(`{"wires":["a"],"local":true}`) }))
				if v := nf.ViolationsOf(err); wanted != (err == nil) || !wanted && (nf.KindOf(err) != nf.Invalid || v[0].Field != "spec.ipam.type") {
					t.Errorf("in a region with %d nodes: %v", nodes, err)
				}
				w.end(t, op)
			})
		})
	}
}

// TestPlugins compares the CNI plugins of a network with those that its region declares.
func TestPlugins(t *testing.T) {
	cases := map[string]struct {
		reason   string
		declared map[string]bool
		field    string // that is refused
		warnings int
	}{
		"there":   {"both plugins are declared", map[string]bool{"a": true, "b": true}, "", 0},
		"unknown": {"a plugin that is not declared may be there", map[string]bool{"a": true}, "", 1},
		"absent":  {"one that is declared as absent is not", map[string]bool{"b": false}, "spec.wires[1]", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				op, err := s.Create(t.Context(), request())
				must(t, err)
				w.end(t, op)
				w.plugins = tc.declared
				spec := json.RawMessage(`{"wires":["a","b"]}`)
				changed, err := s.Change(t.Context(), "edge.oam", nf.SharedChangeRequest{Edit: func(n *nf.Network) error { n.Spec = spec; return nil }})
				created, createErr := s.Create(t.Context(), request(func(r *nf.SharedRequest) { r.Resource.Name, r.Resource.Spec = "other", spec }))
				for verb, got := range map[string]struct {
					op  nf.Operation
					err error
				}{"create": {created, createErr}, "change": {changed, err}} {
					switch v := nf.ViolationsOf(got.err); {
					case tc.field == "" && (got.err != nil || len(got.op.Warnings) != tc.warnings):
						t.Errorf("%s: %s: %v, with the warnings %q", verb, tc.reason, got.err, got.op.Warnings)
					case tc.field != "" && (nf.KindOf(got.err) != nf.Unsupported || len(v) != 1 || v[0].Field != tc.field):
						t.Errorf("%s: %s: %v, want that %s is refused", verb, tc.reason, got.err, tc.field)
					}
					if got.err == nil {
						w.end(t, got.op)
					}
				}
			})
		})
	}
}

// TestCreateFails undoes a network that the region refuses.
func TestCreateFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.refused = "-a"
		op, err := s.Create(t.Context(), request())
		must(t, err)
		if op = w.end(t, op); op.State != nf.OperationFailed || op.UndoFailure != nil {
			t.Errorf("the operation is %s: %+v", op.State, op.UndoFailure)
		}
		if got := state(t, s); got != "" || count(t, s) != 0 || len(w.held) != 0 {
			t.Errorf("the network is %q, with %d holders, and %v hold the region", got, count(t, s), w.held)
		}
	})
}

// TestChange changes a network that is in use: its objects are those of the new spec.
// If the region refuses them, the former spec is restored.
func TestChange(t *testing.T) {
	cases := map[string]struct {
		reason  string
		refuse  string
		objects []string
		state   nf.OperationState
	}{
		"Accepted": {"objects are added and deleted", "", []string{"Wire.test/k8splugin-networks/oam-b", "Wire.test/k8splugin-networks/oam-c"}, nf.Succeeded},
		"Refused":  {"it is undone", "-c", []string{"Wire.test/k8splugin-networks/oam-a"}, nf.OperationFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				w.create(t, s, request())
				w.refused = tc.refuse
				op, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error {
					n.Spec, n.Keep, n.Description, n.Labels = json.RawMessage(`{"wires":["c","b"]}`), true, "new", map[string]string{"a": "b"}
					return nil
				}})
				must(t, err)
				op = w.end(t, op)
				n, err := s.Get(t.Context(), oam)
				must(t, err)
				if op.State != tc.state || n.State != nf.SharedActive || (n.Failure.Message != "") != (tc.refuse != "") {
					t.Errorf("%s: the operation is %s, the network %s: %s", tc.reason, op.State, n.State, n.Failure)
				}
				if changed := tc.refuse == ""; !n.Keep || (n.Description == "new") != changed || (n.Labels["a"] == "b") != changed {
					t.Errorf("%s: the network is kept %t, is %q and has the labels %v", tc.reason, n.Keep, n.Description, n.Labels)
				}
				if diff := cmp.Diff(tc.objects, w.applied()); diff != "" || len(n.Inventory) != len(tc.objects) {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestKeep keeps a network without holders until a client releases it.
func TestKeep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request(func(r *nf.SharedRequest) { r.Resource.Keep = true }))
		_, err := s.Use(t.Context(), oam, instance("vnf-1"))
		must(t, err)
		_, err = s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		_, err = s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "bob", IfUnused: true})
		if nf.KindOf(err) != nf.Conflict || len(nf.ViolationsOf(err)) != 1 {
			t.Errorf("a network in use is removed: %v", err)
		}
		must(t, s.Leave(t.Context(), oam, instance("vnf-1")))
		<-time.After(time.Hour)
		if got := state(t, s); got != nf.SharedActive {
			t.Errorf("a kept network is %q", got)
		}
		op, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "bob"})
		must(t, err)
		w.end(t, op)
		if got := state(t, s); got != "" {
			t.Errorf("a released network is %q", got)
		}
	})
}

// TestUsedAgain lets an instance use a network while its removal begins: the network
// remains, or the instance is told to wait.
func TestUsedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		w.setAway(true)
		op, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		synctest.Wait() // the removal has found no holder, and waits for the region
		_, err = s.Use(t.Context(), oam, instance("vnf-1"))
		if nf.KindOf(err) != nf.Busy || nf.OperationOf(err) != op.ID {
			t.Errorf("a network that is being deleted can be used: %v", err)
		}
		w.setAway(false)
		w.end(t, op)
		if _, err = s.Use(t.Context(), oam, instance("vnf-1")); nf.KindOf(err) != nf.NotFound || count(t, s) != 0 {
			t.Errorf("a deleted network can be used: %v, %d holders", err, count(t, s))
		}
	})
}

// TestUsedBeforeItsRemoval lets an instance use a network whose removal was accepted,
// and has not begun: the network remains.
func TestUsedBeforeItsRemoval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t, func(c *config) { c.Parallel = 1 })
		w.create(t, s, request())
		w.gate = make(chan struct{})
		_, err := s.Create(t.Context(), request(func(r *nf.SharedRequest) { r.Resource.Name = "wan" })) // takes the only place
		must(t, err)
		synctest.Wait()
		op, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"})
		must(t, err)
		_, busy := s.Use(t.Context(), oam, instance("vnf-1"))
		close(w.gate)
		op = w.end(t, op)
		_, again := s.Use(t.Context(), oam, instance("vnf-1"))
		if nf.KindOf(busy) != nf.Busy || again != nil || !op.Network.Used || op.State != nf.Succeeded {
			t.Errorf("the removal is %s, and has found a holder: %t; the network was used: %v, and then: %v", op.State, op.Network.Used, busy, again)
		}
		if got := state(t, s); got != nf.SharedActive || count(t, s) != 1 || len(w.applied()) != 2 {
			t.Errorf("the network is %q, with %d holders; in the region: %v", got, count(t, s), w.applied())
		}
	})
}

// TestFailedNetwork has a change whose undo fails. Its holders remain, and new ones are
// refused.
func TestFailedNetwork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		_, err := s.Use(t.Context(), oam, instance("vnf-1"))
		must(t, err)
		w.refused = "a" // the former wire, too
		op, err := s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error {
			n.Spec = json.RawMessage(`{"wires":["aa"]}`)
			return nil
		}})
		must(t, err)
		w.end(t, op)
		for _, id := range []string{"vnf-1", "vnf-2"} {
			if _, err := s.Use(t.Context(), oam, instance(id)); nf.KindOf(err) != nf.Conflict {
				t.Errorf("%s uses a failed network: %v", id, err)
			}
		}
		if got := state(t, s); got != nf.SharedFailed || count(t, s) != 2 {
			t.Errorf("the network is %q, with %d holders, want those that it had", got, count(t, s))
		}
	})
}

// TestManyUsers lets 100 instances use and leave one network at once.
func TestManyUsers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		var use, leave sync.WaitGroup
		for i := range 100 {
			use.Go(func() {
				if _, err := s.Use(t.Context(), oam, instance(fmt.Sprintf("vnf-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		use.Wait()
		if got := count(t, s); got != 101 {
			t.Errorf("%d holders, want 101", got)
		}
		leave.Go(func() {
			if _, err := s.Release(t.Context(), oam, nf.SharedReleaseRequest{Holder: "ann"}); err != nil {
				t.Error(err)
			}
		})
		for i := range 100 {
			leave.Go(func() {
				for {
					err := s.Leave(t.Context(), oam, instance(fmt.Sprintf("vnf-%d", i)))
					if nf.KindOf(err) != nf.Busy || err == nil {
						if err != nil {
							t.Error(err)
						}
						return
					}
					<-time.After(time.Second)
				}
			})
		}
		leave.Wait()
		<-time.After(time.Minute)
		if got := state(t, s); got != "" || len(w.applied()) > 0 || count(t, s) != 0 {
			t.Errorf("the network is %q, with %d holders and the objects %v", got, count(t, s), w.applied())
		}
	})
}

// TestAbandoned removes a network whose last holder was dropped by a process that died
// before it had begun the removal.
func TestAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		w.create(t, s, request())
		must(t, w.kv.Delete(t.Context(), "holds/networks/"+oam+"/holder/ann", store.Any))
		<-time.After(time.Hour)
		if got := state(t, s); got != "" || len(w.applied()) > 0 {
			t.Errorf("the network is %q, with the objects %v", got, w.applied())
		}
	})
}

// TestNewRefuses leaves out what a configuration needs.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := network.New(shared.Config{}, network.Drivers{"plain": plain{}}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}
