package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// withCluster makes an instance whose cluster becomes the region west.
func withCluster(edit ...func(*nf.WorkloadCluster)) func(*nf.InstantiateRequest) {
	return func(r *nf.InstantiateRequest) {
		named(r)
		w := nf.WorkloadCluster{Cluster: "edge", Region: "west"}
		for _, e := range edit {
			e(&w)
		}
		r.Workloads = []nf.WorkloadCluster{w}
	}
}

// inWest makes an instance in the region west.
func inWest(r *nf.InstantiateRequest) { r.Region, r.Namespace, r.Name = "west", "apps", "app" }

// workloadDeaths are the scenarios of instances with clusters that become regions.
func workloadDeaths() map[string]deathScenario {
	instantiate := func(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
		return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: pkg}, Options: nf.Options{Key: key}}
			withCluster()(&req)
			return e.Instantiate(ctx, req)
		}
	}
	remove := func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		id := "" // the repeated request may find it deleted
		for _, in := range e.all(ctx) {
			if in.Region == "east" {
				id = in.ID
			}
		}
		return e.Terminate(ctx, id, nf.TerminateRequest{Cascade: true, Options: nf.Options{Key: key}})
	}
	refuse := func(_ *testing.T, s *site, _ *engine) {
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	}
	up := func(t *testing.T, _ *site, e *engine) { e.up(t, "cluster.edge_x", withCluster()) }
	inhabited := func(t *testing.T, s *site, e *engine) {
		up(t, s, e)
		e.up(t, "a", inWest)
	}
	return map[string]deathScenario{
		"terminate with instances there": {prepare: inhabited, request: remove, deaths: 250},
		"with a region":                  {prepare: func(*testing.T, *site, *engine) {}, request: instantiate("cluster.edge_x"), deaths: 120},
		"with a region, undo":            {prepare: refuse, request: instantiate("cluster.edge_bad"), deaths: 170},
		"terminate with a region":        {prepare: up, request: remove, deaths: 120},
	}
}

// all returns the instances.
func (e *engine) all(ctx context.Context) []nf.Instance {
	all, _ := e.Instances(ctx)
	return all
}

// TestRegionBeforeReadiness registers the region of a Cluster before it waits for the
// Cluster, whose nodes are ready only with what an instance there brings.
func TestRegionBeforeReadiness(t *testing.T) {
	for name, when := range map[string]nf.ReadyWhen{"Available": nf.ReadyAvailable, "Usable": nf.ReadyUsable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				s.cluster.script("edge", nf.InProgress, "WorkersAvailable: no nodes")
				s.cluster.script("md", nf.InProgress, "no nodes")
				req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "cluster.edge-machines.md"}}
				withCluster(func(w *nf.WorkloadCluster) { w.ReadyWhen = when })(&req)
				op, err := e.Instantiate(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := s.volumes.claims["region west"]; got != "edge" {
					t.Errorf("the region is registered for %q", got)
				}
				now, err := e.Operation(t.Context(), op.ID)
				if err != nil || now.State.Final() != (when == nf.ReadyUsable) {
					t.Errorf("the operation is %s: %v", now.State, err)
				}
				s.cluster.script("edge", nf.Current, "")
				s.cluster.script("md", nf.Current, "")
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("the operation is %s: %+v", op.State, op.Failure)
				}
			})
		})
	}
}

// TestWrongWorkloadClusters rejects requests before anything changes.
func TestWrongWorkloadClusters(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*nf.WorkloadCluster)
		kind   nf.Kind
		field  string
	}{
		"Absent":      {"the package has no such Cluster", func(w *nf.WorkloadCluster) { w.Cluster = "other" }, nf.Invalid, "workload_clusters[0].cluster"},
		"Elsewhere":   {"nor one in that namespace", func(w *nf.WorkloadCluster) { w.Namespace = "other" }, nf.Invalid, "workload_clusters[0].cluster"},
		"Name":        {"no Cluster has such a name", func(w *nf.WorkloadCluster) { w.Cluster = "A b" }, nf.Invalid, "workload_clusters[0].cluster"},
		"NoRegion":    {"the id is required", func(w *nf.WorkloadCluster) { w.Region = "" }, nf.Invalid, "workload_clusters[0].cloud_region_id"},
		"Taken":       {"the id is that of another region", func(w *nf.WorkloadCluster) { w.Region = "taken" }, nf.Exists, "workload_clusters[0].cloud_region_id"},
		"Credentials": {"there are two kinds", func(w *nf.WorkloadCluster) { w.Credentials = "mine" }, nf.Invalid, "workload_clusters[0].credentials"},
		"ReadyWhen":   {"there are two conditions", func(w *nf.WorkloadCluster) { w.ReadyWhen = "soon" }, nf.Invalid, "workload_clusters[0].ready_when"},
		"HandOver":    {"a kubeconfig is not sent in the clear", func(w *nf.WorkloadCluster) { w.HandOver = "http://example.org" }, nf.Invalid, "workload_clusters[0].hand_over"},
		"Server":      {"a token is not sent in the clear", func(w *nf.WorkloadCluster) { w.Server = "http://10.0.0.1" }, nf.Invalid, "workload_clusters[0].server"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			e := s.start()
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "cluster.edge"}}
			withCluster(tc.edit)(&req)
			_, err := e.Instantiate(t.Context(), req)
			v := nf.ViolationsOf(err)
			if nf.KindOf(err) != tc.kind || len(v) == 0 || v[0].Field != tc.field {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if len(s.cluster.asked("apply")) > 0 {
				t.Error("objects were applied")
			}
		})
	}
}

// TestTerminateWithAnInhabitedRegion does not delete a cluster on which instances run,
// unless it is to delete them, too.
func TestTerminateWithAnInhabitedRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.DeletionGuard.Share = 1 })
		id := e.up(t, "cluster.edge_x", withCluster()).Subject.ID
		app := e.up(t, "y", inWest).Subject.ID
		if _, err := e.Terminate(t.Context(), id, nf.TerminateRequest{}); nf.ReasonOf(err) != nf.ReasonHeld || !strings.Contains(err.Error(), app) {
			t.Errorf("terminate: %v", err)
		}
		if _, err := e.PreviewTerminate(t.Context(), id, nf.TerminateRequest{}); nf.ReasonOf(err) != nf.ReasonHeld {
			t.Errorf("its preview: %v", err)
		}
		drop := nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Workloads = nil; return nil }}
		if _, err := e.Upgrade(t.Context(), id, drop); nf.ReasonOf(err) != nf.ReasonHeld {
			t.Errorf("an upgrade that drops the region: %v", err)
		}
		op, err := e.Terminate(t.Context(), id, nf.TerminateRequest{Cascade: true})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("cascade: %+v", op.Failure)
		}
		if diff := cmp.Diff([]string{"delete [y]", "delete [edge]", "delete [x]"}, s.cluster.asked("delete")); diff != "" {
			t.Errorf("deletions (-want +got):\n%s", diff)
		}
		if len(e.all(t.Context())) > 0 || len(s.volumes.claims) > 0 {
			t.Errorf("there are %d instances and the regions %v", len(e.all(t.Context())), s.volumes.claims)
		}
	})
}

// TestUpgradeWithoutTheRegion deregisters a region that the instance no longer asks for.
func TestUpgradeWithoutTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "cluster.edge_x", withCluster()).Subject.ID
		op, err := e.Upgrade(t.Context(), id, nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Workloads = nil; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded || len(s.volumes.claims) > 0 || !slices.Contains(s.cluster.live(), "edge") {
			t.Errorf("%s: regions %v, objects %v", op.State, s.volumes.claims, s.cluster.live())
		}
	})
}

// TestDeclaredClusters makes regions of the clusters that a package declares, unless the
// request has a list.
func TestDeclaredClusters(t *testing.T) {
	declaring := func(region string, requested []nf.WorkloadCluster) func(*nf.Spec) error {
		return func(s *nf.Spec) error {
			s.Inputs.Parameters, s.Workloads = map[string]any{"edge_region": region}, requested
			return nil
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		first   func(*nf.Spec) error
		then    func(*nf.Spec) error // nil: the instance is not changed
		regions []string
		fails   string // "kind field file"
	}{
		"Declared":  {reason: "the request has no list", first: declaring("west", nil), regions: []string{"west"}},
		"Requested": {reason: "the request has a list, which wins", first: declaring("west", []nf.WorkloadCluster{{Cluster: "edge", Region: "north"}}), regions: []string{"north"}},
		"None":      {reason: "also an empty one", first: declaring("west", []nf.WorkloadCluster{})},
		"Moved":     {reason: "an upgrade follows the package", first: declaring("west", nil), then: declaring("north", nil), regions: []string{"north"}},
		"Dropped":   {reason: "or the request, which has none now", first: declaring("west", nil), then: declaring("west", []nf.WorkloadCluster{})},
		"Back":      {reason: "without its list, the package counts", first: declaring("west", []nf.WorkloadCluster{}), then: declaring("west", nil), regions: []string{"west"}},
		"Amended": {
			reason: "an amendment does not render the package, and changes nothing", first: declaring("west", nil),
			then: func(s *nf.Spec) error {
				s.Amendments = []nf.Amendment{{Name: "more", Package: "z"}}
				return nil
			}, regions: []string{"west"},
		},
		"Taken": {reason: "the error has the place in the package", first: declaring("taken", nil), fails: "already-exists workload_clusters[0].cloud_region_id list"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "cluster.edge_x"}}
				if err := tc.first(&req.Spec); err != nil {
					t.Fatal(err)
				}
				op, err := e.Instantiate(t.Context(), req)
				if v := nf.ViolationsOf(err); tc.fails != "" {
					if len(v) != 1 || nf.KindOf(err).String()+" "+v[0].Field+" "+v[0].File != tc.fails || v[0].Line != 7 {
						t.Errorf("%s: %v", tc.reason, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				op = e.end(t, op)
				if tc.then != nil {
					if op, err = e.Upgrade(t.Context(), op.Subject.ID, nf.UpgradeRequest{Edit: tc.then}); err != nil {
						t.Fatal(err)
					}
					op = e.end(t, op)
				}
				var got []string
				for claim := range s.volumes.claims {
					got = append(got, strings.TrimPrefix(claim, "region "))
				}
				if diff := cmp.Diff(tc.regions, got); diff != "" || op.State != nf.Succeeded {
					t.Errorf("%s: %s %+v (-want +got)\n%s", tc.reason, op.State, op.Failure, diff)
				}
			})
		})
	}
}
