package site_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestDeaths lets a process die or stall at each call of a request and of its
// operation.
func TestDeaths(t *testing.T) {
	create := func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
		return s.Create(ctx, request(func(r *nf.SiteRequest) { r.Key = key }))
	}
	change := func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
		return s.Change(ctx, "edge", nf.SiteChangeRequest{
			Key: key, Add: []nf.SiteHost{host("n3", nf.Worker)}, Remove: []string{"n2"},
			Secrets: func(m *nf.SiteSecrets) error { m.Password = nf.Secret("hunter23"); return nil },
		})
	}
	remove := func(instances ...string) crashingRequest {
		return func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
			return s.Remove(ctx, "edge", nf.SiteRemoveRequest{Key: key, Instances: instances})
		}
	}
	refused := func(w *world) {
		w.play = func(context.Context, site.Job, teller) error { return nf.E(nf.Failed, "run", "the playbook", nil) }
	}
	endless := func(w *world) {
		w.play = func(ctx context.Context, _ site.Job, _ teller) error { <-ctx.Done(); return context.Cause(ctx) }
	}
	built := func(t *testing.T, w *world) {
		t.Helper()
		s, stop := w.start(t)
		build(t, s)
		stop()
	}
	createMachines := func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
		return s.Create(ctx, machines(func(r *nf.SiteRequest) { r.Key = key }))
	}
	scaleMachines := func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
		return s.Change(ctx, "edge", nf.SiteChangeRequest{Key: key, Workers: new(2), Remove: []string{"worker2"}})
	}
	sky := func(_ *testing.T, w *world) { w.withSky() }
	builtMachines := func(t *testing.T, w *world) {
		t.Helper()
		s, stop := w.withSky().start(t)
		op, err := s.Create(t.Context(), machines())
		succeed(t, s, op, err)
		stop()
		w.sky.lose("worker1") // it is replaced
	}
	cases := map[string]struct {
		prepare func(t *testing.T, w *world)
		request crashingRequest
		deaths  int
	}{
		"Create":         {func(*testing.T, *world) {}, create, 126},
		"CreateFails":    {func(_ *testing.T, w *world) { refused(w) }, create, 110},
		"Cancel":         {func(_ *testing.T, w *world) { endless(w) }, crashingRequest(create).cancelled, 60},
		"Change":         {built, change, 139},
		"ChangeFails":    {func(t *testing.T, w *world) { built(t, w); refused(w) }, change, 121},
		"Remove":         {built, remove(), 120},
		"RemoveCascade":  {func(t *testing.T, w *world) { built(t, w); w.use("vnf-1", "vnf-2") }, remove("vnf-1", "vnf-2"), 157},
		"CreateMachines": {sky, createMachines, 212},
		"ScaleMachines":  {builtMachines, scaleMachines, 213},
		"RemoveMachines": {builtMachines, remove(), 97},
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

// crashingRequest is a request whose process may die.
type crashingRequest func(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error)

// cancelled makes a request and cancels its operation.
func (r crashingRequest) cancelled(ctx context.Context, s *site.Sites, key nf.RequestKey) (nf.Operation, error) {
	op, err := r(ctx, s, key)
	if err == nil {
		_, err = s.Operations().Cancel(ctx, "edge", op.ID)
	}
	if nf.KindOf(err) == nf.Conflict {
		err = nil // it was cancelled before
	}
	return op, err
}

// crashing returns the world for processes that may die.
func (w *world) crashing(t *testing.T, request crashingRequest) operationtest.World {
	return operationtest.World{
		KV: w.kv,
		Start: func(p *operationtest.Process) operationtest.Replica {
			m := crashingWorld{w, p}
			s, stop := w.start(t, func(c *config) {
				c.Work = p.Config(w.kv)
				c.KV, c.Regions, c.Instances = c.Work.KV, m, m
				if w.sky != nil {
					c.Clouds, c.Holds = crashingSky{w.sky, p}, m
				}
				c.Runners = map[nf.SiteDriver]site.Runner{nf.SiteByAnsible: m}
			})
			return operationtest.Replica{
				Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return request(ctx, s, key) },
				Stop:    stop,
			}
		},
		Snapshot: func() any { return w.snapshot(t) },
		Unknown: func() []string {
			known := w.snapshot(t).Sites
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.DeleteFunc(slices.Sorted(maps.Keys(w.regions)), func(region string) bool {
				return w.sky != nil && (region == "cloud" || region == "east") || slices.ContainsFunc(known, func(in nf.Site) bool { return in.Region == region })
			})
		},
	}
}

// snapshot is what a run leaves behind, without ids, times, and the events of a
// run that another run repeats.
type snapshot struct {
	Sites   []nf.Site
	Ends    []string       // of operations
	Records map[string]int // by the first part of their keys
	Regions []string
	Sky     []string // machines
	Users   []string // of the region
	Runs    int      // that are running
}

func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	out := snapshot{Records: map[string]int{}, Runs: w.underWay()}
	for in, err := range store.NewTable[nf.Site](w.kv, "sites/", "site").All(t.Context(), "") {
		must(t, err)
		in.UID, in.Created, in.Updated, in.Last, in.SecretsRecord = "", time.Time{}, time.Time{}, "", ""
		in.Untouched = in.Untouched && in.State != nf.SiteFailed // the cancellation may come before the first run
		out.Sites = append(out.Sites, in)
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
	for _, key := range keys(t, w, "") {
		table, _, _ := strings.Cut(key, "/")
		if table != "operationlogs" && table != "replicas" {
			out.Records[table]++
		}
	}
	if w.sky != nil {
		out.Sky = w.sky.names()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out.Users = slices.Concat(w.users["edge"], w.users["cloud"])
	for id, region := range w.regions {
		out.Regions = append(out.Regions, id+" "+string(region.Access.Kubeconfig))
	}
	slices.Sort(out.Regions)
	return out
}

// uses reports whether an instance uses a region.
func (w *world) uses(region, instance string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.users[region], instance)
}

// crashingWorld is the world as a process reaches it that may die.
type crashingWorld struct {
	*world

	process *operationtest.Process
}

// Run implements site.Runner. A process that dies during a run has begun it.
func (m crashingWorld) Run(ctx context.Context, job site.Job) iter.Seq2[site.Event, error] {
	return func(yield func(site.Event, error) bool) {
		heard := true
		dead := m.process.Call("run "+string(job.Action),
			func() {
				m.world.runBy(ctx, m.process, job)(func(e site.Event, err error) bool { heard = yield(e, err); return heard })
			},
			func() {
				ended, end := context.WithCancel(ctx)
				end()
				m.world.runBy(ended, m.process, job)(func(site.Event, error) bool { return false })
			})
		if dead != nil && heard {
			yield(site.Event{}, dead)
		}
	}
}

func (m crashingWorld) Register(ctx context.Context, r nf.Region) (nf.Region, error) {
	return operationtest.Call(m.process, "register", func() (nf.Region, error) { return m.world.Register(ctx, r) }, nil)
}

func (m crashingWorld) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	return operationtest.Call(m.process, "update region", func() (nf.Region, error) { return m.world.UpdateRegion(ctx, id, edit) }, nil)
}

func (m crashingWorld) Hold(ctx context.Context, h nf.Holding) (err error) {
	if dead := m.process.Call("hold region", func() { err = m.world.Hold(ctx, h) }, nil); dead != nil {
		return dead
	}
	return err
}

func (m crashingWorld) Release(ctx context.Context, h nf.Holding) (err error) {
	if dead := m.process.Call("release region", func() { err = m.world.Release(ctx, h) }, nil); dead != nil {
		return dead
	}
	return err
}

func (m crashingWorld) RemoveRegion(ctx context.Context, id string) (err error) {
	if dead := m.process.Call("remove region", func() { err = m.world.RemoveRegion(ctx, id) }, nil); dead != nil {
		return dead
	}
	return err
}

// Terminate implements site.Instances.
func (m crashingWorld) Terminate(ctx context.Context, id string) (nf.Operation, error) {
	return operationtest.Call(m.process, "terminate "+id, func() (nf.Operation, error) {
		if !m.uses("edge", id) {
			return nf.Operation{}, nf.E(nf.NotFound, "terminate", "VNF instance "+id, nil)
		}
		return m.world.Terminate(ctx, id)
	}, nil)
}

// records returns the records of sites and of the list of work.
func (w *world) records(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for e, err := range w.kv.List(t.Context(), "", "") {
		must(t, err)
		if !strings.HasPrefix(e.Key, "replicas/") {
			out[e.Key] = string(e.Value)
		}
	}
	return out
}

// repeated makes a request until no other one with its key is being accepted.
func repeated(t *testing.T, request func() (nf.Operation, error)) nf.Operation {
	t.Helper()
	var err error
	for range 60 {
		var op nf.Operation
		if op, err = request(); err == nil {
			return op
		}
		if nf.KindOf(err) != nf.Busy {
			break
		}
		<-time.After(time.Second)
	}
	t.Fatalf("the request cannot be repeated: %v", err)
	return nf.Operation{}
}

// TestTwins makes one request under one key twice at once: both become one
// operation.
func TestTwins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		ids := map[string]bool{}
		var mu sync.Mutex
		var both sync.WaitGroup
		for range 8 {
			both.Go(func() {
				op := repeated(t, func() (nf.Operation, error) {
					return s.Create(t.Context(), request(func(r *nf.SiteRequest) { r.Key = nf.RequestKey{Client: "ann", Key: "k", Digest: "d"} }))
				})
				mu.Lock()
				defer mu.Unlock()
				ids[op.ID] = true
			})
		}
		both.Wait()
		if got := slices.Sorted(maps.Keys(ids)); len(got) != 1 {
			t.Errorf("eight requests under one key became the operations %s", fmt.Sprint(got))
		}
	})
}
