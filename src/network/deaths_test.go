package network_test

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestDeaths lets a process die or stall at each call of a request and of its
// operation.
func TestDeaths(t *testing.T) {
	create := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Create(ctx, request(func(r *nf.SharedRequest) { r.Key = key }))
	}
	change := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Change(ctx, oam, nf.SharedChangeRequest{Key: key, Edit: func(n *nf.Network) error {
			n.Spec = json.RawMessage(`{"wires":["b"]}`)
			return nil
		}})
	}
	restart := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Change(ctx, oam, rewired(func(r *nf.SharedChangeRequest) { r.Key = key }))
	}
	remove := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Release(ctx, oam, nf.SharedReleaseRequest{Holder: "ann", Key: key})
	}
	refused := func(w *world) { w.refused = "-a" }
	made := func(t *testing.T, w *world) {
		t.Helper()
		s, stop := w.start(t)
		w.create(t, s, request())
		stop()
	}
	used := func(t *testing.T, w *world) {
		t.Helper()
		is := &instances{}
		s, stop := w.start(t, is.with(t, "vnf-1"))
		w.create(t, s, request())
		is.attach(t, w, s)
		stop()
	}
	unwell := func(t *testing.T, w *world) { used(t, w); w.refused = "vnf-1-pod" }
	cases := map[string]struct {
		prepare func(t *testing.T, w *world)
		request func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error)
		deaths  int
	}{
		"Create":       {func(*testing.T, *world) {}, create, 40},
		"Ensure":       {func(*testing.T, *world) {}, ensure, 40},
		"CreateFails":  {func(_ *testing.T, w *world) { refused(w) }, create, 40},
		"Change":       {made, change, 40},
		"Restart":      {used, restart, 60},
		"RestartFails": {unwell, restart, 60},
		"Remove":       {made, remove, 30},
	}
	scenarios := map[string]operationtest.Scenario{}
	for name, tc := range cases {
		scenarios[name] = operationtest.Scenario{Deaths: tc.deaths, World: func(t *testing.T) operationtest.World {
			w := newWorld()
			tc.prepare(t, w)
			return operationtest.World{
				KV: w.kv,
				Start: func(p *operationtest.Process) operationtest.Replica {
					s, stop := w.start(t, func(c *config) {
						c.Work = p.Config(w.kv)
						m := crashingWorld{w, p}
						c.KV, c.Regions, c.Open = c.Work.KV, m, w.open(m)
						(&instances{}).with(t, "vnf-1")(c)
					})
					return operationtest.Replica{
						Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return tc.request(ctx, s, key) },
						Stop:    stop,
					}
				},
				Snapshot: func() any { return w.snapshot(t) },
				Unknown: func() []string {
					var known []string
					for _, n := range w.snapshot(t).Networks {
						for _, ref := range n.Inventory {
							known = append(known, ref.Key())
						}
					}
					return slices.DeleteFunc(w.applied(), func(key string) bool { return slices.Contains(known, key) })
				},
			}
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// snapshot is what a run leaves behind, without ids and times.
type snapshot struct {
	Networks []nf.Network
	Records  map[string]int
	Objects  []string
	Held     int // holds on the region
}

func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	out := snapshot{Records: w.stored(t), Objects: w.applied()}
	for _, table := range []string{"networks/", "instances/"} { // see instances
		for n, err := range store.NewTable[nf.Network](w.kv, table, "network").All(t.Context(), "") {
			must(t, err)
			n.Created, n.Updated, n.Last = time.Time{}, time.Time{}, ""
			n.Failure = nf.Text{Message: regexp.MustCompile(`[0-9a-f]{12}-[A-Z0-9]+`).ReplaceAllString(n.Failure.String(), "ID")}
			out.Networks = append(out.Networks, n)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out.Held = len(w.held)
	return out
}

// crashingWorld is the world as a process reaches it that may die.
type crashingWorld struct {
	*world

	process *operationtest.Process
}

func (m crashingWorld) Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return operationtest.Call(m.process, "apply", func() ([]nf.Change, error) { return m.world.Apply(ctx, owner, objects) }, nil)
}

func (m crashingWorld) Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return operationtest.Call(m.process, "delete", func() ([]nf.Change, error) { return m.world.Delete(ctx, owner, refs) }, nil)
}

func (m crashingWorld) Hold(ctx context.Context, h nf.Holding) error {
	_, err := operationtest.Call(m.process, "hold the region", func() (any, error) { return nil, m.world.Hold(ctx, h) }, nil)
	return err
}

func (m crashingWorld) Release(ctx context.Context, h nf.Holding) error {
	_, err := operationtest.Call(m.process, "release the region", func() (any, error) { return nil, m.world.Release(ctx, h) }, nil)
	return err
}

func (m crashingWorld) Watch(ctx context.Context, owner nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return m.world.Watch(ctx, owner, targets)
}
