package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestCrash is generated: for every scenario, the process dies at every write to
// the store and at every call that changes the cluster: right before it, right
// after it, and, where a call has parts, between them. A new process on the same
// store, and the client who repeats the request whose answer he may have missed,
// must bring about what an undisturbed run does, record by record and object by
// object.
func TestCrash(t *testing.T) {
	for name, sc := range crashScenarios() {
		t.Run(name, func(t *testing.T) {
			var want world
			synctest.Test(t, func(t *testing.T) { want, _ = sc.play(t, death{}) })
			moments := 0
			for _, how := range []string{before, during, after} {
				for n := 1; ; n++ {
					died := false
					synctest.Test(t, func(t *testing.T) {
						got, reached := sc.play(t, death{at: n, how: how})
						died = reached
						if diff := cmp.Diff(want, got); reached && diff != "" {
							t.Errorf("died %s event %d (-undisturbed +resumed):\n%s", how, n, diff)
						}
					})
					if !died {
						break
					}
					moments++
				}
			}
			if moments < 10 {
				t.Errorf("only %d deaths were tried", moments)
			}
			t.Logf("%d deaths", moments)
		})
	}
}

// TestCrashAndTooLate is the same for deaths after which nobody comes back before
// the deadline: what was done is taken back, or stays, and there is never an
// object that no inventory knows of.
func TestCrashAndTooLate(t *testing.T) {
	for name, sc := range crashScenarios() {
		t.Run(name, func(t *testing.T) {
			for _, how := range []string{before, during, after} {
				for n, died := 1, true; died; n++ {
					synctest.Test(t, func(t *testing.T) {
						sc.late = true
						var w world
						w, died = sc.play(t, death{at: n, how: how})
						for key, owner := range w.unknown() {
							t.Errorf("died %s event %d: %s of %q is in no inventory", how, n, key, owner)
						}
					})
				}
			}
		})
	}
}

// unknown returns the objects that bear an owner in whose inventory they are not.
func (w world) unknown() map[string]string {
	out := map[string]string{}
	for key, object := range w.Objects {
		owner, _, _ := strings.Cut(object, "map[")
		known := slices.ContainsFunc(w.Instances, func(in nf.Instance) bool {
			return owner == in.ID && slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Key() == key })
		})
		if owner != "" && !known {
			out[key] = owner
		}
	}
	return out
}

// The moments at which a process can die, about one event.
const (
	before = "before"
	during = "during"
	after  = "after"
)

// death says at which event of its life a process dies; the zero value lives.
type death struct {
	at  int
	how string
}

// scenario is one verb with one outcome.
type crashScenario struct {
	prepare func(t *testing.T, s *site, e *engine)
	request func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error)
	late    bool // the next process comes after the deadline
}

func crashScenarios() map[string]crashScenario {
	first := func(pkg string) func(*testing.T, *site, *engine) {
		return func(t *testing.T, _ *site, e *engine) { e.up(t, pkg, named) }
	}
	instantiate := func(pkg string, onFailure nf.OnFailure) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
		return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
			return e.Instantiate(ctx, nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg},
				Options: nf.Options{OnFailure: onFailure, Key: key}})
		}
	}
	upgrade := func(pkg string, onFailure nf.OnFailure) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
		return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
			req := change(pkg, "xl")
			req.OnFailure, req.Key = onFailure, key
			return e.Upgrade(ctx, e.only(ctx).ID, req)
		}
	}
	refuse := func(s *site) {
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	}
	broken := func(pkg string) func(*testing.T, *site, *engine) {
		return func(t *testing.T, s *site, e *engine) {
			e.up(t, "db_old", named)
			refuse(s)
			op, err := upgrade(pkg, nf.Keep)(t.Context(), e, nf.RequestKey{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
			s.cluster.refuse("bad", nil)
		}
	}
	pair := func(prepare func(*testing.T, *site, *engine), request func(context.Context, *engine, nf.RequestKey) (nf.Operation, error)) crashScenario {
		return crashScenario{prepare: prepare, request: request}
	}
	return map[string]crashScenario{
		"instantiate":              pair(func(*testing.T, *site, *engine) {}, instantiate("x_y-z", "")),
		"instantiate fails, undo":  pair(func(_ *testing.T, s *site, _ *engine) { refuse(s) }, instantiate("x_y-bad", nf.Undo)),
		"instantiate fails, keep":  pair(func(_ *testing.T, s *site, _ *engine) { refuse(s) }, instantiate("x_y-bad", nf.Keep)),
		"instantiate, cancelled":   pair(func(_ *testing.T, s *site, _ *engine) { s.cluster.script("z", nf.InProgress, "") }, cancelled(instantiate("x_y-z", ""))),
		"upgrade":                  pair(first("db_old"), upgrade("db_new", "")),
		"upgrade fails, undo":      pair(func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, upgrade("db_bad-new", nf.Undo)),
		"upgrade fails, keep":      pair(func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, upgrade("db_bad-new", nf.Keep)),
		"terminate":                pair(first("db_web-svc"), terminate(false)),
		"terminate, orphan":        pair(first("db_web-svc"), terminate(true)),
		"terminate, volumes":       pair(claimed("set.db-web"), terminateWhole),
		"terminate, volumes stay":  pair(claimed("set.db-web"), terminate(false)),
		"rollback":                 pair(upgraded, rollback),
		"retry of a failed change": pair(broken("db_bad-new"), again((*engine).Retry)),
		"instantiate with hooks":   pair(func(*testing.T, *site, *engine) {}, instantiate(hooked, "")),
		"hook fails, undo":         pair(func(_ *testing.T, s *site, _ *engine) { s.cluster.script("lonce", nf.StatusFailed, "no") }, instantiate("early.e_x_late.lonce", nf.Undo)),
		"upgrade with hooks":       pair(first(hooked), upgrade("early.e_db-new_late.lonce", "")),
		"upgrade back, with hooks": pair(func(t *testing.T, s *site, e *engine) { first(hooked)(t, s, e); refuse(s) }, upgrade("early.e_bad-new_late.lonce", nf.Undo)),
		"terminate with hooks":     pair(first(hooked), terminate(false)),
		"configure":                pair(first("db_old"), configure("cfg-old")),
		"configure fails, undo":    pair(func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, configure("bad-old")),
		"adopt":                    pair(running("db", "web"), adopt("db_web-absent")),
		"adopt fails":              pair(running("db", "web", "!theirs"), adopt("db_web-theirs")),
		"test":                     pair(first("db_probe.p-probe.q"), tested),
		"other namespaces":         pair(elsewhere("mon"), move("db_new", "logs")),
		"other namespaces, undo":   pair(func(t *testing.T, s *site, e *engine) { elsewhere("mon")(t, s, e); refuse(s) }, move("db_new-bad", "logs")),
		"terminate elsewhere":      pair(elsewhere("mon"), terminate(false)),
		"undo of a failed change":  pair(broken("db_bad-new"), again((*engine).Undo)),
	}
}

// cancelled makes a request and thinks better of it.
func cancelled(request func(context.Context, *engine, nf.RequestKey) (nf.Operation, error)) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		op, err := request(ctx, e, key)
		if err != nil {
			return op, err
		}
		_, err = e.Cancel(ctx, op.ID)
		if nf.KindOf(err) == nf.Conflict {
			err = nil // it was cancelled before, and is on its way back
		}
		return op, err
	}
}

func named(req *nf.InstantiateRequest) { req.Name = "vnf" }

func upgraded(t *testing.T, _ *site, e *engine) {
	e.up(t, "db_old", named)
	op, err := e.Upgrade(t.Context(), e.only(t.Context()).ID, change("db_new", "xl"))
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, op)
}

// elsewhere makes an instance that has an object in a further namespace.
func elsewhere(namespace string) func(*testing.T, *site, *engine) {
	return func(t *testing.T, _ *site, e *engine) { e.up(t, "db_new", named, opening("new", namespace)) }
}

// move changes an instance into another namespace.
func move(pkg, namespace string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Upgrade(ctx, e.only(ctx).ID, nf.UpgradeRequest{Options: nf.Options{OnFailure: nf.Undo, Key: key}, Edit: func(s *nf.Spec) error {
			s.Package, s.Namespaces = pkg, []string{namespace}
			s.Inputs.Parameters = placed(map[string]any{"new": namespace})
			return nil
		}})
	}
}

func rollback(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
	return e.Rollback(ctx, e.only(ctx).ID, nf.RollbackRequest{Revision: 1, Options: nf.Options{Key: key}})
}

func terminate(orphan bool) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Terminate(ctx, e.only(ctx).ID, nf.TerminateRequest{Orphan: orphan, Options: nf.Options{Key: key}})
	}
}

// hooked is a package with hooks of every kind but tests, an object that is
// shared and one that is kept.
const hooked = "shared.crd_early.e-early.eonce_db-keep.k_late.lonce-bye.b-gone.gonce"

func configure(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Configure(ctx, e.only(ctx).ID, nf.ConfigureRequest{Options: nf.Options{Key: key}, Edit: func(s *nf.Spec) error {
			s.Amendments = []nf.Amendment{{Name: "day2", Package: pkg, Inputs: nf.Inputs{Parameters: map[string]any{"size": "m"}}}}
			return nil
		}})
	}
}

// running puts objects into the region that bear a mark, but for those with a "!".
func running(names ...string) func(*testing.T, *site, *engine) {
	return func(_ *testing.T, s *site, _ *engine) {
		for _, name := range names {
			bare, theirs := strings.CutPrefix(name, "!")
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"size": "was"}}}
			u.SetName(bare)
			u.SetNamespace("ns")
			if u.SetLabels(map[string]string{"mark": "x"}); theirs {
				// It looks free until it is to be taken.
				s.cluster.before = func(call string) {
					if call == "adopt" {
						u.SetLabels(nil)
					}
				}
			}
			s.cluster.objects[refOf(u).Key()] = &fakeObject{owner: "", object: u}
		}
	}
}

func adopt(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Adopt(ctx, nf.AdoptRequest{
			InstantiateRequest: nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg}, Options: nf.Options{Key: key}},
			Claim:              nf.Claim{Labels: map[string]string{"mark": "x"}},
		})
	}
}

func tested(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
	return e.Test(ctx, e.only(ctx).ID, nf.TestRequest{Options: nf.Options{Key: key}})
}

func again(verb func(*engine, context.Context, string, nf.Options) (nf.Operation, error)) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return verb(e, ctx, e.only(ctx).LastOperation, nf.Options{Key: key})
	}
}

// only returns the only instance; the zero one when there is none, or when the
// store cannot be asked any more.
func (e *engine) only(ctx context.Context) nf.Instance {
	all, err := e.Instances(ctx)
	if err != nil || len(all) != 1 {
		return nf.Instance{}
	}
	return all[0]
}

// play makes the scenario's request to a process that dies as told, and lets
// another one take over. It reports whether the process got that far.
func (sc crashScenario) play(t *testing.T, d death) (world, bool) {
	s := newSite(t)
	key := nf.RequestKey{Client: "client", Key: "the request", Digest: "of it"}
	first := s.start()
	sc.prepare(t, s, first)
	first.stop()

	p := &process{site: s, death: d, gone: make(chan struct{})}
	e := s.start(func(c *lifecycle.Config) {
		c.Drain = time.Nanosecond
		c.KV = storetest.Failing{KV: s.kv, Fail: p.beforeWrite, Lose: p.afterWrite}
		c.Open = func(context.Context, string, string) (lifecycle.Cluster, error) {
			return mortalCluster{s.cluster, p}, nil
		}
	})
	p.born()
	op, err := sc.request(t.Context(), e, key)
	if err == nil {
		p.follow(t, e, op)
	}
	reached := p.dead()
	e.stop()

	if sc.late {
		<-time.After(time.Hour)
	}
	last := s.start()
	for op, err = sc.request(t.Context(), last, key); nf.KindOf(err) == nf.Busy; op, err = sc.request(t.Context(), last, key) {
		<-time.After(nf.AfterOf(err))
	}
	if err != nil {
		t.Fatalf("died %s event %d: the repeated request: %v", d.how, d.at, err)
	}
	last.end(t, op)
	// The request may have left another operation behind, that was never accepted:
	// it is taken up when there is room.
	<-time.After(time.Minute)
	synctest.Wait()
	w := s.world()
	last.stop()
	return w, reached
}

// world is all that a run leaves behind, without the ids and times that differ
// from run to run.
type world struct {
	Instances  []nf.Instance
	Revisions  []string
	Records    map[string]int // by the first part of their keys
	Objects    map[string]string
	Namespaces []string
	Held       []string
	Ends       []string // of the operations that were accepted
}

func (s *site) world() world {
	w := world{Records: map[string]int{}, Objects: map[string]string{}, Namespaces: s.cluster.madeNamespaces()}
	names := strings.NewReplacer()
	for in, err := range store.NewTable[nf.Instance](s.kv, "instances/", "VNF instance").All(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		names = strings.NewReplacer(in.ID, "INSTANCE")
		in.ID, in.Created, in.Updated, in.LastOperation = "INSTANCE", time.Time{}, time.Time{}, ""
		w.Instances = append(w.Instances, in)
	}
	for op, err := range store.NewTable[nf.Operation](s.kv, "operations/", "operation").All(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if op.Failure == nil || op.Failure.Reason != "unheeded" {
			w.Ends = append(w.Ends, fmt.Sprintf("%s %s %d", op.Verb, op.State, op.Revision))
		}
	}
	for _, key := range s.records() {
		table, _, _ := strings.Cut(key, "/")
		w.Records[table]++
		if table == "revisions" {
			w.Revisions = append(w.Revisions, names.Replace(key))
		}
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	for key, o := range s.cluster.objects {
		w.Objects[key] = fmt.Sprint(names.Replace(o.owner), o.object.Object["data"], o.deleting)
	}
	for held := range maps.Keys(s.catalog.held) {
		w.Held = append(w.Held, names.Replace(held))
	}
	slices.Sort(w.Held)
	return w
}
