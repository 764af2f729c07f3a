package network_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/sriov"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// nodes is a cloud region of which only the nodes are read.
type nodes struct {
	shared.Cluster

	allocatable []map[string]any // by node
	err         error
}

func (n nodes) Lookup(context.Context, nf.Ref) (map[string]any, error) {
	var items []any
	for _, allocatable := range n.allocatable {
		items = append(items, map[string]any{"status": map[string]any{"allocatable": allocatable}})
	}
	return map[string]any{"items": items}, n.err
}

// TestAdvice has the operation of a network warn of a resource that no node offers.
func TestAdvice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		w.plugins = map[string]bool{"a": true}
		s, _ := w.start(t)
		spec := func(text string) func(n *nf.Network) error {
			return func(n *nf.Network) error { n.Spec = json.RawMessage(text); return nil }
		}
		for _, tc := range []struct {
			reason string
			act    func() (nf.Operation, error)
			want   int
		}{
			{"it is created with one", func() (nf.Operation, error) {
				return s.Create(t.Context(), request(func(r *nf.SharedRequest) { _ = spec(`{"wires":["a"],"device":"x/y"}`)(&r.Resource) }))
			}, 1},
			{"it gets another one", func() (nf.Operation, error) {
				return s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: spec(`{"wires":["a"],"device":"x/z"}`)})
			}, 1},
			{"its specification stays", func() (nf.Operation, error) {
				return s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: func(n *nf.Network) error { n.Labels = map[string]string{"a": "b"}; return nil }})
			}, 0},
			{"it needs none any more", func() (nf.Operation, error) {
				return s.Change(t.Context(), oam, nf.SharedChangeRequest{Edit: spec(`{"wires":["a"]}`)})
			}, 0},
		} {
			op, err := tc.act()
			must(t, err)
			if len(op.Warnings) != tc.want {
				t.Errorf("%s: the warnings are %q, want %d", tc.reason, op.Warnings, tc.want)
			}
			w.end(t, op)
		}
	})
}

// TestResourceOfNodes creates networks of virtual functions in regions whose nodes offer
// several resources.
func TestResourceOfNodes(t *testing.T) {
	t.Parallel()
	const missing = `no node of cloud region edge offers the resource "intel.com/net" (spec.resource_name): pods that are attached wait until one does`
	many := map[string]any{"b.com/0": "1", "b.com/1": "1"}
	for i := range 9 {
		many[fmt.Sprintf("a.com/%d", i)] = "1"
	}
	plain := map[string]any{"cpu": "4", "memory": "8Gi", "hugepages-2Mi": "0"}
	for name, tc := range map[string]struct {
		reason string
		in     nodes
		spec   string
		want   []string
	}{
		"Offered":    {"one node is enough", nodes{allocatable: []map[string]any{plain, {"intel.com/net": "8"}}}, "", nil},
		"None":       {"the nodes have no devices", nodes{allocatable: []map[string]any{plain}}, "", []string{missing}},
		"Many":       {"a warning is short", nodes{allocatable: []map[string]any{many}}, "", []string{missing + "; the nodes offer a.com/0, a.com/1, a.com/2, a.com/3, a.com/4, a.com/5, a.com/6, a.com/7, a.com/8, b.com/0 and 1 more"}},
		"Misspelled": {"the names that there are help", nodes{allocatable: []map[string]any{{"intel.com/net1": "8", "intel.com/dsp": "1"}}}, "", []string{missing + "; the nodes offer intel.com/dsp, intel.com/net1"}},
		"Ended":      {"the device plugin of the node does not run", nodes{allocatable: []map[string]any{{"intel.com/net": "0"}}}, "", []string{missing}},
		"Unreadable": {"the account may not list nodes", nodes{err: errors.New("forbidden")}, "", nil},
		"Operated":   {"the operator's networks have one, too", nodes{}, `{"type":"SriovNetwork","resource_name":"intel.com/net"}`, []string{missing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := tc.spec
			if spec == "" {
				spec = `{"type":"sriov","resource_name":"intel.com/net"}`
			}
			got := network.Drivers{"sriov": sriov.Driver{}}.Advise(t.Context(), tc.in, nf.Network{Region: "edge", Driver: "sriov", Spec: json.RawMessage(spec)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
