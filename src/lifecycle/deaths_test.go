package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestDeaths is generated: for every scenario, the process dies or stalls at every
// write to the store and at every call that changes the cluster.
func TestDeaths(t *testing.T) {
	scenarios := map[string]operationtest.Scenario{}
	all := deathScenarios()
	maps.Copy(all, workloadDeaths())
	maps.Copy(all, adoptionDeaths())
	for name, sc := range all {
		scenarios[name] = operationtest.Scenario{World: sc.world, Deaths: sc.deaths}
	}
	operationtest.Deaths(t, scenarios)
}

// deathScenario is one verb with one outcome.
type deathScenario struct {
	prepare func(t *testing.T, s *site, e *engine)
	request func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error)
	deaths  int    // at least
	loses   string // when a death loses why the operation failed; empty: never
}

// world returns the scenario's world, with a cluster in which calls can be cut.
func (sc deathScenario) world(t *testing.T) operationtest.World {
	s := newSite(t)
	first := s.start()
	sc.prepare(t, s, first)
	first.stop()
	return operationtest.World{
		KV: s.kv,
		Start: func(p *operationtest.Process) operationtest.Replica {
			e := s.start(func(c *config) {
				c.Work, c.Drain, c.Timeout = p.Config(s.kv), time.Nanosecond, 2*time.Hour
				c.KV = c.Work.KV
				c.Volumes, c.Workloads, c.Directory = fakeVolumes{s.volumes, c.KV, p}, fakeWorkloads{s.volumes, c.KV, p}, emptyDirectory{}
				c.Open = func(context.Context, string, string) (lifecycle.Cluster, error) {
					return crashingCluster{s.cluster, p}, nil
				}
			})
			return operationtest.Replica{
				Request: func(ctx context.Context, key nf.RequestKey) (nf.Operation, error) { return sc.request(ctx, e, key) },
				Stop:    e.stop,
			}
		},
		Snapshot: func() any {
			w := s.world()
			if sc.loses != "" {
				w.Failures = nil
			}
			return w
		},
		// The place of an instance that exists is not collected. If the successor has
		// recorded no changes of a step, the changes of the stalled process stay until
		// the operation is deleted.
		Stays: func(key string) bool {
			return strings.HasPrefix(key, "holds/namespaceuse/") || strings.HasPrefix(key, "namespaceuse/") || s.hasStep(key)
		},
		Unknown: func() []string { return slices.Sorted(maps.Keys(s.world().unknown())) },
	}
}

// hasStep reports whether a key is that of the changes of a step, of an operation
// that exists.
func (s *site) hasStep(key string) bool {
	of, changes := strings.CutPrefix(key, "changes/")
	id, step, _ := strings.Cut(of, "/")
	op, err := store.NewTable[nf.Operation](s.kv, "operations/", "operation").Get(s.t.Context(), id)
	n, bad := strconv.Atoi(step)
	return changes && err == nil && bad == nil && n < len(op.Steps)
}

func deathScenarios() map[string]deathScenario {
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
	stuck := func(s *site) {
		s.cluster.refuse("old", nf.E(nf.Invalid, "apply", "ConfigMap ns/old", nil))
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
	pair := func(deaths int, prepare func(*testing.T, *site, *engine), request func(context.Context, *engine, nf.RequestKey) (nf.Operation, error)) deathScenario {
		return deathScenario{deaths: deaths, prepare: prepare, request: request}
	}
	return map[string]deathScenario{
		"instantiate":              pair(146, func(*testing.T, *site, *engine) {}, instantiate("x_y-z", "")),
		"instantiate fails, undo":  pair(221, func(_ *testing.T, s *site, _ *engine) { refuse(s) }, instantiate("x_y-bad", nf.Undo)),
		"instantiate fails, keep":  pair(138, func(_ *testing.T, s *site, _ *engine) { refuse(s) }, instantiate("x_y-bad", nf.Keep)),
		"instantiate, cancelled":   pair(130, func(_ *testing.T, s *site, _ *engine) { s.cluster.script("z", nf.InProgress, "") }, cancelled(instantiate("x_y-z", ""))),
		"upgrade":                  pair(147, first("db_old"), upgrade("db_new", "")),
		"upgrade fails, undo":      pair(186, func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, upgrade("db_bad-new", nf.Undo)),
		"upgrade fails, undo too":  pair(151, func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s); stuck(s) }, upgrade("db_bad-new", nf.Undo)),
		"upgrade fails, keep":      pair(118, func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, upgrade("db_bad-new", nf.Keep)),
		"terminate":                pair(142, first("db_web-svc"), terminate(false)),
		"terminate, orphan":        pair(127, first("db_web-svc"), terminate(true)),
		"terminate, volumes":       pair(158, claimed("set.db-web"), terminateWhole),
		"terminate, volumes stay":  pair(131, claimed("set.db-web"), terminate(false)),
		"rollback":                 pair(149, upgraded, rollback),
		"retry of a failed change": pair(156, broken("db_bad-new"), again((*engine).Retry)),
		"instantiate with hooks":   pair(294, func(*testing.T, *site, *engine) {}, instantiate(hooked, "")),
		"hook fails, undo": {
			prepare: func(_ *testing.T, s *site, _ *engine) { s.cluster.script("lonce", nf.StatusFailed, "no") },
			request: instantiate("early.e_x_late.lonce", nf.Undo),
			deaths:  320,
			loses:   "the failed hook's object is deleted before the failure is recorded",
		},
		"upgrade with hooks":       pair(244, first(hooked), upgrade("early.e_db-new_late.lonce", "")),
		"upgrade back, with hooks": pair(390, func(t *testing.T, s *site, e *engine) { first(hooked)(t, s, e); refuse(s) }, upgrade("early.e_bad-new_late.lonce", nf.Undo)),
		"terminate with hooks":     pair(252, first(hooked), terminate(false)),
		"configure":                pair(151, first("db_old"), configure("cfg-old")),
		"configure fails, undo":    pair(204, func(t *testing.T, s *site, e *engine) { first("db_old")(t, s, e); refuse(s) }, configure("bad-old")),
		"test":                     pair(157, first("db_probe.p-probe.q"), tested),
		"test fails": pair(162, func(t *testing.T, s *site, e *engine) {
			first("db_probe.p-probe.q")(t, s, e)
			s.cluster.script("p", nf.StatusFailed, "no answer")
		}, tested),
		"other namespaces":        pair(202, elsewhere("mon"), move("db_new", "logs")),
		"other namespaces, undo":  pair(267, func(t *testing.T, s *site, e *engine) { elsewhere("mon")(t, s, e); refuse(s) }, move("db_new-bad", "logs")),
		"terminate elsewhere":     pair(166, elsewhere("mon"), terminate(false)),
		"on networks":             pair(145, func(*testing.T, *site, *engine) {}, attached("pods.web", attachments("oam", "lan"))),
		"on networks, undo":       pair(200, func(_ *testing.T, s *site, _ *engine) { refuse(s) }, attached("pods.web_bad", attachments("oam", "lan"))),
		"new networks, undo":      pair(200, func(_ *testing.T, s *site, _ *engine) { refuse(s) }, attached("pods.web_bad", creating("absent", "lan"))),
		"other networks":          pair(128, func(t *testing.T, _ *site, e *engine) { e.up(t, "pods.web", named, attaching("oam", "lan")) }, rewired("pods.web")),
		"other networks, undo":    pair(180, func(t *testing.T, s *site, e *engine) { e.up(t, "pods.web", named, attaching("oam", "lan")); refuse(s) }, rewired("pods.web_bad")),
		"terminate on networks":   pair(140, func(t *testing.T, _ *site, e *engine) { e.up(t, "pods.web", named, attaching("oam", "lan")) }, terminate(false)),
		"scale":                   pair(80, first("db_web"), acted(scaleTo(5, "db", "web"), "")),
		"scale fails, undo":       pair(90, func(t *testing.T, s *site, e *engine) { first("db_web")(t, s, e); refuseScale(s) }, acted(scaleTo(5, "db", "web"), nf.Undo)),
		"scale fails, keep":       pair(70, func(t *testing.T, s *site, e *engine) { first("db_web")(t, s, e); refuseScale(s) }, acted(scaleTo(5, "db", "web"), nf.Keep)),
		"upgrade of a scaled one": pair(100, scaled, upgrade("db_new", "")),
		"restart":                 pair(80, first("set.db-set.web"), acted(nf.ActRequest{Verb: nf.Restart}, "")),
		"stop":                    pair(70, first("db_web"), acted(machines(nf.Stop), "")),
		"stop fails, undo": pair(90, func(t *testing.T, s *site, e *engine) {
			first("db_web")(t, s, e)
			s.cluster.rejects = map[string]string{"web": `"stop"`}
		}, acted(machines(nf.Stop), nf.Undo)),
		"migrate": pair(70, first("db_web"), acted(machines(nf.Migrate), "")),
		"heal":    pair(70, wounded, acted(nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "web-2"}}, "")),
		"heal fails": pair(70, func(t *testing.T, s *site, e *engine) {
			wounded(t, s, e)
			s.cluster.rejects = map[string]string{"web-2": "guard"}
		}, acted(nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "web-2"}}, "")),
		"correct":                 pair(70, meddled, correct),
		"on volumes":              pair(120, func(*testing.T, *site, *engine) {}, onVolumes("pods.web", "data", "logs")),
		"on volumes, undo":        pair(170, func(_ *testing.T, s *site, _ *engine) { refuse(s) }, onVolumes("pods.web_bad", "data")),
		"terminate on volumes":    pair(120, func(t *testing.T, _ *site, e *engine) { e.up(t, "pods.web", named, using("data", "logs")) }, terminate(false)),
		"undo of a failed change": pair(157, broken("db_bad-new"), again((*engine).Undo)),
	}
}

// attached makes an instance with attachments.
func attached(pkg string, networks []nf.Attachment) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Instantiate(ctx, nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg, Networks: networks}, Options: nf.Options{Key: key}})
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

// running puts objects with a mark into the region, except those with a "!".
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
			s.cluster.objects[nf.RefOf(u).Key()] = &fakeObject{object: u}
		}
	}
}

func adopt(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Adopt(ctx, nf.AdoptRequest{
			InstantiateRequest: nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg}, Options: nf.Options{Key: key}},
			Selector:           nf.AdoptionSelector{Labels: map[string]string{"mark": "x"}},
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
// store is no longer available.
func (e *engine) only(ctx context.Context) nf.Instance {
	all, err := e.Instances(ctx)
	if err != nil || len(all) != 1 {
		return nf.Instance{}
	}
	return all[0]
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
	Ends       []string          // of the operations that were accepted
	Failures   []string          // of those that failed
	Reserved   map[string]string // claims, by the volumes that are reserved for them
}

func (s *site) world() world {
	w := world{Records: map[string]int{}, Objects: map[string]string{}, Namespaces: s.cluster.madeNamespaces()}
	var pairs []string // ids and the names for them
	for in, err := range store.NewTable[nf.Instance](s.kv, "instances/", "VNF instance").All(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		pairs = append(pairs, in.ID, "INSTANCE "+in.Name)
		in.ID, in.Created, in.Updated, in.LastOperation = "INSTANCE "+in.Name, time.Time{}, time.Time{}, ""
		for n := range in.Corrections {
			in.Corrections[n].Last = time.Time{}
		}
		for i := range in.Settings {
			if in.Settings[i].Path == nf.RestartPath {
				in.Settings[i].Value = nil // a time
			}
		}
		w.Instances = append(w.Instances, in)
	}
	slices.SortFunc(w.Instances, func(a, b nf.Instance) int { return strings.Compare(a.ID, b.ID) })
	names := strings.NewReplacer(pairs...)
	for op, err := range store.NewTable[nf.Operation](s.kv, "operations/", "operation").All(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		wantSteps(s.t, op)
		if op.Failure == nil || op.Failure.Reason != "not-accepted" {
			w.Ends = append(w.Ends, fmt.Sprintf("%s %s %d", op.Verb, op.State, op.Instance.Revision))
			if op.Failure != nil {
				w.Failures = append(w.Failures, names.Replace(op.Failure.Message))
			}
		}
	}
	for _, key := range s.records() {
		table, _, _ := strings.Cut(key, "/")
		w.Records[table]++
		if table == "revisions" {
			w.Revisions = append(w.Revisions, names.Replace(key))
		}
	}
	s.volumes.mu.Lock()
	w.Reserved = maps.Clone(s.volumes.claims)
	s.volumes.mu.Unlock()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	for key, o := range s.cluster.objects {
		w.Objects[key] = fmt.Sprint(names.Replace(o.owner.ID), o.object.Object["data"], o.deleting)
	}
	for held := range maps.Keys(s.catalog.held()) {
		w.Held = append(w.Held, names.Replace(held))
	}
	slices.Sort(w.Held)
	return w
}

// unknown returns the objects with an owner in whose inventory they are not.
func (w world) unknown() map[string]string {
	out := map[string]string{}
	for key, object := range w.Objects {
		owner, _, _ := strings.Cut(object, "map[")
		owner, _, _ = strings.Cut(owner, "<nil>") // an object without data
		known := slices.ContainsFunc(w.Instances, func(in nf.Instance) bool {
			return owner == in.ID && slices.ContainsFunc(in.Inventory, func(it nf.Item) bool { return it.Key() == key })
		})
		if owner != "" && !known {
			out[key] = owner
		}
	}
	return out
}
