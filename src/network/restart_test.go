package network_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// instances stand in for the VNF instances of a network: each is a shared resource with
// the object "ID-pod", and a restart is a change of that resource that changes nothing.
// So they have operations of their own, on the same workers.
type instances struct {
	*shared.Resources

	workloads map[string][]nf.SharedWorkload // by instance
	unready   string                         // an instance that cannot be restarted; empty: none
}

func router(restartable bool) nf.SharedWorkload {
	return nf.SharedWorkload{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "edge", Name: "router"}, Restartable: restartable}
}

// pods are the objects of instances.
type pods struct{ network.Drivers }

func (p pods) Check(_ context.Context, _ shared.Cluster, s nf.Shared) ([]nf.Ref, error) {
	return p.Refs(s)
}

// with returns an edit of a configuration that gives the networks these instances.
func (is *instances) with(t *testing.T, ids ...string) func(*config) {
	t.Helper()
	is.workloads = map[string][]nf.SharedWorkload{}
	for _, id := range ids {
		is.workloads[id] = []nf.SharedWorkload{router(true)}
	}
	return func(c *config) { c.Users = is }
}

// start registers the instances with the workers of a configuration.
func (is *instances) start(t *testing.T, cfg shared.Config) {
	t.Helper()
	cfg.Kind, cfg.Subject, cfg.Table, cfg.Namespace, cfg.Field = pods{network.Drivers{"plain": plain{}}}, nf.InstanceSubject, "instances", "edge", "spec"
	cfg.Task, cfg.Users = func(op *nf.Operation) *nf.SharedTask { return &op.Volume }, nil
	var err error
	is.Resources, err = shared.New(cfg)
	must(t, err)
}

// attach creates the instances, which hold the network.
func (is *instances) attach(t *testing.T, w *world, s *shared.Resources) {
	t.Helper()
	w.plugins = map[string]bool{"a": true, "b": true, "pod": true}
	for _, id := range slices.Sorted(maps.Keys(is.workloads)) {
		op, err := is.Create(t.Context(), nf.SharedRequest{Resource: nf.Shared{Name: id, Region: "edge", Driver: "plain", Spec: json.RawMessage(`{"wires":["pod"]}`)}, Holder: "ann"})
		must(t, err)
		w.end(t, op)
		_, err = s.Use(t.Context(), oam, instance(id))
		must(t, err)
	}
}

func (is *instances) Using(_ context.Context, id, resource string) ([]nf.SharedWorkload, error) {
	if resource != "oam" || is.workloads[id] == nil {
		return nil, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	}
	return is.workloads[id], nil
}

func (is *instances) PreviewAct(_ context.Context, id string, _ nf.ActRequest) (nf.Preview, error) {
	if id == is.unready {
		return nf.Preview{}, nf.E(nf.Conflict, "restart", "VNF instance "+id, errors.New("it is failed"))
	}
	return nf.Preview{}, nil
}

func (is *instances) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	if req.Verb != nf.Restart || !slices.Equal(req.Workloads, []string{"Deployment.apps/edge/router"}) {
		return nf.Operation{}, nf.E(nf.Invalid, string(req.Verb), "VNF instance "+id, errors.New("this is no restart of the router"))
	}
	return is.Change(ctx, "edge."+id, nf.SharedChangeRequest{Key: req.Key, Edit: func(*nf.Shared) error { return nil }})
}

// restarts counts the operations that restarted an instance.
func (is *instances) restarts(t *testing.T, id string) (count int) {
	t.Helper()
	for op, err := range is.Operations().OperationsFrom(t.Context(), "edge."+id, nf.Cursor{}) {
		must(t, err)
		if op.Verb == nf.SharedChange {
			count++
		}
	}
	return count
}

// rewired changes the wires of the network, and restarts what uses it.
func rewired(edit ...func(*nf.SharedChangeRequest)) nf.SharedChangeRequest {
	req := nf.SharedChangeRequest{Restart: true, Edit: func(n *nf.Network) error {
		n.Spec = json.RawMessage(`{"wires":["b"]}`)
		return nil
	}}
	for _, f := range edit {
		f(&req)
	}
	return req
}

// TestRestart changes a network whose users are restarted.
func TestRestart(t *testing.T) {
	cases := map[string]struct {
		reason   string
		edit     func(w *world, is *instances, req *nf.SharedChangeRequest)
		kind     nf.Kind // of the refusal; Internal: none
		restarts int     // of each instance
		failed   bool
		warnings int
		state    string // of the network's objects
	}{
		"Asked":    {reason: "each instance is restarted once", edit: func(*world, *instances, *nf.SharedChangeRequest) {}, restarts: 1, state: "b"},
		"NotAsked": {reason: "nothing is restarted", edit: func(_ *world, _ *instances, r *nf.SharedChangeRequest) { r.Restart = false }, state: "b"},
		"SameSpec": {reason: "pods would see no difference", edit: func(_ *world, _ *instances, r *nf.SharedChangeRequest) {
			r.Edit = func(*nf.Network) error { return nil }
		}, state: "a"},
		"Unready":   {reason: "what cannot be restarted refuses the change", edit: func(_ *world, is *instances, _ *nf.SharedChangeRequest) { is.unready = "vnf-2" }, kind: nf.Conflict, state: "a"},
		"Forbidden": {reason: "the caller may not restart one", edit: func(_ *world, _ *instances, r *nf.SharedChangeRequest) { r.MayRestart = forbid("vnf-2") }, kind: nf.Forbidden, state: "a"},
		"Manual": {reason: "what no action restarts is a warning", edit: func(_ *world, is *instances, _ *nf.SharedChangeRequest) {
			is.workloads["vnf-1"], is.workloads["vnf-2"] = []nf.SharedWorkload{router(false)}, []nf.SharedWorkload{router(false)}
		}, warnings: 1, state: "b"},
		"Gone": {reason: "an instance that was terminated is left out", edit: func(_ *world, is *instances, _ *nf.SharedChangeRequest) {
			clear(is.workloads)
		}, state: "b"},
		"Fails": {reason: "pods that do not start restore the former spec, and get it again", edit: func(w *world, _ *instances, _ *nf.SharedChangeRequest) {
			w.refused = "vnf-2-pod"
		}, restarts: 2, failed: true, warnings: 1, state: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, is := newWorld(), &instances{}
				s, _ := w.start(t, is.with(t, "vnf-1", "vnf-2"))
				w.create(t, s, request())
				is.attach(t, w, s)
				req := rewired(func(r *nf.SharedChangeRequest) { tc.edit(w, is, r) })
				op, err := s.Change(t.Context(), oam, req)
				if tc.kind == nf.Internal && err != nil || tc.kind != nf.Internal && nf.KindOf(err) != tc.kind {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if op = w.end(t, op); (op.State == nf.OperationFailed) != tc.failed || len(op.Warnings) != tc.warnings || op.UndoFailure != nil {
					t.Errorf("%s: the operation is %s (%+v), with the warnings %q", tc.reason, op.State, op.Failure, op.Warnings)
				}
				if text := strings.Join(op.Warnings, "\n"); strings.Contains(text, "vnf-") || strings.Contains(text, "router") {
					t.Errorf("%s: readers who may not see the instances get the warnings %q", tc.reason, op.Warnings)
				}
				if tc.failed && (strings.Contains(op.Failure.Message, "vnf-2") || !strings.Contains(op.Failure.Said().String(), "vnf-2")) {
					t.Errorf("%s: readers who may not see the instance get the failure %+v", tc.reason, op.Failure)
				}
				for _, id := range []string{"vnf-1", "vnf-2"} {
					if got := is.restarts(t, id); got != tc.restarts {
						t.Errorf("%s: %s was restarted %d times, want %d", tc.reason, id, got, tc.restarts)
					}
				}
				if applied := w.applied(); !slices.Contains(applied, "Wire.test/k8splugin-networks/oam-"+tc.state) || len(applied) != 3 {
					t.Errorf("%s: the region has %v", tc.reason, applied)
				}
			})
		})
	}
}

func forbid(id string) func(context.Context, nf.Holder) error {
	return func(_ context.Context, h nf.Holder) error {
		if h.Subject.ID != id {
			return nil
		}
		return nf.E(nf.Forbidden, "restart", "VNF instance "+id, nil)
	}
}

// TestRestartWaits restarts an instance after the operation that runs on it has ended.
func TestRestartWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, is := newWorld(), &instances{}
		s, _ := w.start(t, is.with(t, "vnf-1"))
		w.create(t, s, request())
		is.attach(t, w, s)
		w.gate = make(chan struct{})
		busy, err := is.Change(t.Context(), "edge.vnf-1", nf.SharedChangeRequest{Edit: func(*nf.Shared) error { return nil }})
		must(t, err)
		op, err := s.Change(t.Context(), oam, rewired())
		must(t, err)
		close(w.gate)
		op = w.end(t, op)
		if busy = w.end(t, busy); op.State != nf.Succeeded || busy.State != nf.Succeeded || is.restarts(t, "vnf-1") != 2 {
			t.Errorf("the change %s after the operation %s, and vnf-1 was changed %d times", op.State, busy.State, is.restarts(t, "vnf-1"))
		}
	})
}

// TestLeaveDuringRestart lets the last user leave a network while a change waits for the
// operation of that user: neither waits for the other.
func TestLeaveDuringRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, is := newWorld(), &instances{}
		s, _ := w.start(t, is.with(t, "vnf-1"))
		w.create(t, s, request())
		is.attach(t, w, s)
		must(t, s.Leave(t.Context(), oam, shared.Named("ann")))
		w.gate = make(chan struct{})
		busy, err := is.Change(t.Context(), "edge.vnf-1", nf.SharedChangeRequest{Edit: func(*nf.Shared) error { return nil }})
		must(t, err)
		op, err := s.Change(t.Context(), oam, rewired())
		must(t, err)
		if err := s.Leave(t.Context(), oam, instance("vnf-1")); err != nil {
			t.Errorf("the operation of vnf-1 must wait for the network: %v", err)
		}
		close(w.gate)
		w.end(t, busy)
		w.end(t, op)
		if got := state(t, s); got != nf.SharedActive || count(t, s) != 0 {
			t.Errorf("the network is %q, with %d holders", got, count(t, s))
		}
		<-time.After(time.Hour)
		if got := state(t, s); got != "" {
			t.Errorf("a network without holders is still %q", got)
		}
	})
}

// TestPreviewChange shows what a change would do, and changes nothing.
func TestPreviewChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, is := newWorld(), &instances{}
		s, _ := w.start(t, is.with(t, "vnf-1"))
		w.create(t, s, request())
		is.attach(t, w, s)
		objects := w.applied()
		p, err := s.PreviewChange(t.Context(), oam, rewired())
		must(t, err)
		ref := func(wire string) nf.Ref {
			return nf.Ref{Group: "test", Version: "v1", Kind: "Wire", Namespace: "k8splugin-networks", Name: "oam-" + wire}
		}
		want := nf.SharedPreview{
			Fields:  []nf.Field{{Path: "spec.wires", Old: []any{"a"}, New: []any{"b"}}},
			Changes: []nf.Change{{Ref: ref("a"), Action: nf.Deleted}, {Ref: ref("b"), Action: nf.Created}},
			Users:   []nf.SharedUser{{Holder: instance("vnf-1"), Workloads: []nf.SharedWorkload{router(true)}}},
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("the preview (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(objects, w.applied()); diff != "" || state(t, s) != nf.SharedActive {
			t.Errorf("the preview changed the network, or its objects (-want +got):\n%s", diff)
		}
		is.workloads["vnf-1"] = []nf.SharedWorkload{router(false)}
		if p, err := s.PreviewChange(t.Context(), oam, rewired()); err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "edge/router of VNF instance vnf-1") {
			t.Errorf("a workload that cannot be restarted is not named to the caller: %q, %v", p.Warnings, err)
		}
		if _, err := s.PreviewChange(t.Context(), "edge.none", rewired()); nf.KindOf(err) != nf.NotFound {
			t.Errorf("an unknown network has a preview: %v", err)
		}
	})
}
