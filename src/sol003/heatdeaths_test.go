package sol003_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// TestHeatDeaths lets a process die or stall at each call of a request for a VNF of virtual
// machines, and of its attempt: there is one stack, which the attempt has changed once.
func TestHeatDeaths(t *testing.T) {
	machines := request{true, func(ctx context.Context, m *sol003.Manager, id string, key nf.RequestKey) (nf.Occurrence, error) {
		return m.Instantiate(ctx, id, onCloud(func(r *nf.InstantiateVNFRequest) { r.Key = key }))
	}}
	scenarios := map[string]operationtest.Scenario{}
	for name, request := range map[string]request{"Instantiate": machines, "Scale": scaling, "Heal": healing, "Terminate": termination} {
		scenarios[name] = operationtest.Scenario{Deaths: 30, World: func(t *testing.T) operationtest.World {
			t.Helper()
			w, c := newWorld(t), newClouds()
			m, stop := w.start(t, func(cfg *config) { cfg.Clouds = c })
			d := disturbed{vnf: create(t, m), request: request, clouds: c}
			if !request.fresh {
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), d.vnf, onCloud()) })
			}
			stop()
			out := w.crashing(t, d)
			before := out.Snapshot
			out.Snapshot = func() any { return []any{before(), fmt.Sprint(c.changes, len(c.stacks))} }
			return out
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// crashingClouds are the clouds as a process reaches them that may die.
type crashingClouds struct {
	sol003.Clouds

	process *operationtest.Process
}

func (c crashingClouds) call(what string, whole func() error) error {
	_, err := operationtest.Call(c.process, what, func() (struct{}, error) { return struct{}{}, whole() }, nil)
	return err
}

// Apply implements sol003.Clouds.
func (c crashingClouds) Apply(ctx context.Context, region string, s nf.Stack) error {
	return c.call("apply a stack", func() error { return c.Clouds.Apply(ctx, region, s) })
}

// Delete implements sol003.Clouds.
func (c crashingClouds) Delete(ctx context.Context, region, name string) error {
	return c.call("delete a stack", func() error { return c.Clouds.Delete(ctx, region, name) })
}
