package networkservice_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/networkservice"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

type crashingRequest func(ctx context.Context, s *networkservice.Services, key nf.RequestKey) (nf.Operation, error)

// TestDeaths lets a process die or stall at each call of a request and of its
// operation.
func TestDeaths(t *testing.T) {
	create := func(members ...nf.ServiceMember) crashingRequest {
		return func(ctx context.Context, s *networkservice.Services, key nf.RequestKey) (nf.Operation, error) {
			req := request(members...)
			req.Key = key
			return s.Create(ctx, req)
		}
	}
	change := func(members ...nf.ServiceMember) crashingRequest {
		return func(ctx context.Context, s *networkservice.Services, key nf.RequestKey) (nf.Operation, error) {
			return s.Change(ctx, "vpn", nf.ServiceChangeRequest{Edit: replace(members...), Options: nf.Options{Key: key}})
		}
	}
	terminate := func(ctx context.Context, s *networkservice.Services, key nf.RequestKey) (nf.Operation, error) {
		return s.Terminate(ctx, "vpn", nf.Options{Key: key})
	}
	undo := func(ctx context.Context, s *networkservice.Services, key nf.RequestKey) (nf.Operation, error) {
		return s.Undo(ctx, "vpn", nf.Options{Key: key})
	}
	good := []nf.ServiceMember{member("fw", 1, "fw"), member("sink", 1, "sink"), member("gen", 2, "gen")}
	built := func(t *testing.T, w *world) {
		t.Helper()
		s, stop := w.start(t)
		created(t, s, good...)
		stop()
	}
	kept := func(t *testing.T, w *world) {
		t.Helper()
		built(t, w)
		s, stop := w.start(t)
		op, err := s.Change(t.Context(), "vpn", nf.ServiceChangeRequest{Edit: replace(member("fw", 1, "fw2"), member("new", 2, "bad")), Options: nf.Options{OnFailure: nf.Keep}})
		must(t, err)
		end(t, s, op)
		stop()
	}
	nothing := func(*testing.T, *world) {}
	cases := map[string]struct {
		prepare func(t *testing.T, w *world)
		request crashingRequest
		deaths  int
	}{
		"Create":      {nothing, create(good...), 78},
		"CreateFails": {nothing, create(member("fw", 1, "fw"), member("sink", 2, "bad")), 90},
		"Change":      {built, change(member("fw", 1, "fw2"), member("gen", 2, "gen"), member("new", 3, "new")), 82},
		"ChangeFails": {built, change(member("fw", 1, "fw2"), member("new", 1, "bad")), 93},
		"Retry":       {func(t *testing.T, w *world) { kept(t, w); w.repaired = true }, change(member("fw", 1, "fw2"), member("new", 2, "bad")), 88},
		"Undo":        {kept, undo, 75},
		"Terminate":   {built, terminate, 78},
	}
	scenarios := map[string]operationtest.Scenario{}
	for name, tc := range cases {
		scenarios[name] = operationtest.Scenario{Deaths: tc.deaths, World: func(t *testing.T) operationtest.World {
			w := newWorld()
			tc.prepare(t, w)
			return w.crashing(t, tc.request)
		}}
	}
	operationtest.Deaths(t, scenarios)
}

// crashing returns the world for processes that may die.
func (w *world) crashing(t *testing.T, request crashingRequest) operationtest.World {
	t.Helper()
	return operationtest.World{
		KV: w.kv,
		Start: func(p *operationtest.Process) operationtest.Replica {
			m := crashingWorld{w, p}
			s, stop := w.start(t, func(c *networkservice.Config, work *operation.Config) {
				*work = p.Config(w.kv)
				c.KV, c.Instances, c.Children = work.KV, m, m
			})
			return operationtest.Replica{
				Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return request(ctx, s, key) },
				Stop:    stop,
			}
		},
		Snapshot: func() any { return w.snapshot(t) },
		Unknown: func() []string {
			known := w.snapshot(t).Services
			return slices.DeleteFunc(w.running(), func(in string) bool {
				service, member, _ := strings.Cut(strings.Fields(in)[0], ".")
				return slices.ContainsFunc(known, func(s nf.NetworkService) bool {
					return s.ID == service && slices.ContainsFunc(s.All(), func(m nf.ServiceMember) bool { return m.Name == member })
				})
			})
		},
	}
}

// snapshot is what a run leaves behind, without ids and times.
type snapshot struct {
	Services  []nf.NetworkService
	Ends      []string // of operations
	Instances []string
	Records   map[string]int // by the first part of their keys
}

func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	out := snapshot{Records: map[string]int{}, Instances: w.running()}
	for s, err := range store.NewTable[nf.NetworkService](w.kv, "services/", "network service").All(t.Context(), "") {
		must(t, err)
		s.Created, s.Updated, s.Last = time.Time{}, time.Time{}, ""
		out.Services = append(out.Services, s)
	}
	for op, err := range store.NewTable[nf.Operation](w.kv, "operations/", "operation").All(t.Context(), "") {
		must(t, err)
		end := fmt.Sprint(op.Verb, " ", op.State)
		if op.Failure != nil {
			end += ": " + op.Failure.Message
		}
		out.Ends = append(out.Ends, end)
	}
	slices.Sort(out.Ends)
	for e, err := range w.kv.List(t.Context(), "", "") {
		must(t, err)
		if table, _, _ := strings.Cut(e.Key, "/"); table != "replicas" {
			out.Records[table]++
		}
	}
	return out
}

// crashingWorld is the world as a process reaches it that may die.
type crashingWorld struct {
	*world

	process *operationtest.Process
}

func (m crashingWorld) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	return operationtest.Call(m.process, "instantiate", func() (nf.Operation, error) { return m.world.Instantiate(ctx, req) }, nil)
}

func (m crashingWorld) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	return operationtest.Call(m.process, "upgrade", func() (nf.Operation, error) { return m.world.Upgrade(ctx, id, req) }, nil)
}

func (m crashingWorld) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return operationtest.Call(m.process, "terminate", func() (nf.Operation, error) { return m.world.Terminate(ctx, id, req) }, nil)
}
