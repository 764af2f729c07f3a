package volume_test

import (
	"context"
	"encoding/json"
	"strings"
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
	const class = `{"source":{"class":{"name":"fast"}},"size":"10Gi"}`
	create := func(spec string) func(context.Context, *shared.Resources, nf.RequestKey) (nf.Operation, error) {
		return func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
			return s.Create(ctx, request(spec, func(r *nf.SharedRequest) { r.Key = key }))
		}
	}
	change := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Change(ctx, data, nf.SharedChangeRequest{Key: key, Edit: func(v *nf.Shared) error {
			v.Spec = json.RawMessage(strings.Replace(string(v.Spec), "10Gi", "20Gi", 1))
			return nil
		}})
	}
	remove := func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error) {
		return s.Release(ctx, data, nf.SharedReleaseRequest{Holder: "ann", Key: key})
	}
	made := func(spec string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			s, _, stop := w.start(t)
			w.create(t, s, request(spec))
			stop()
		}
	}
	nothing := func(*testing.T, *world) {}
	cases := map[string]struct {
		prepare func(t *testing.T, w *world)
		request func(ctx context.Context, s *shared.Resources, key nf.RequestKey) (nf.Operation, error)
		deaths  int
	}{
		"Create":        {nothing, create(nfs), 30},
		"CreateFails":   {func(_ *testing.T, w *world) { w.refused = true }, create(nfs), 30},
		"CreateByClass": {nothing, create(class), 30},
		"Change":        {made(nfs), change, 30},
		"Remove":        {made(class), remove, 20},
		"RemoveAll":     {made(strings.TrimSuffix(class, "}") + `,"retention":"delete"}`), remove, 20},
	}
	scenarios := map[string]operationtest.Scenario{}
	for name, tc := range cases {
		scenarios[name] = operationtest.Scenario{Deaths: tc.deaths, World: func(t *testing.T) operationtest.World {
			w := newWorld()
			tc.prepare(t, w)
			return operationtest.World{
				KV: w.kv,
				Start: func(p *operationtest.Process) operationtest.Replica {
					s, _, stop := w.start(t, func(c *config) {
						c.Work = p.Config(w.kv)
						c.KV, c.Open = c.Work.KV, w.open(crashingWorld{w, p})
					})
					return operationtest.Replica{
						Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return tc.request(ctx, s, key) },
						Stop:    stop,
					}
				},
				Snapshot: func() any { return w.snapshot(t) },
				Unknown:  func() []string { return nil },
			}
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// snapshot is what a run leaves behind, without ids and times.
type snapshot struct {
	Volumes []nf.Volume
	Records map[string]int
	Objects []string
	Erased  int
}

func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	out := snapshot{Records: map[string]int{}, Objects: w.left(), Erased: len(w.erased)}
	for e, err := range w.kv.List(t.Context(), "", "") {
		must(t, err)
		if table, _, _ := strings.Cut(e.Key, "/"); table != "replicas" {
			out.Records[table]++
		}
	}
	for v, err := range store.NewTable[nf.Volume](w.kv, "volumes/", "volume").All(t.Context(), "") {
		must(t, err)
		v.Created, v.Updated, v.Last = time.Time{}, time.Time{}, ""
		out.Volumes = append(out.Volumes, v)
	}
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

func (m crashingWorld) Patch(ctx context.Context, ref nf.Ref, patch map[string]any) error {
	_, err := operationtest.Call(m.process, "patch", func() (any, error) { return nil, m.world.Patch(ctx, ref, patch) }, nil)
	return err
}
