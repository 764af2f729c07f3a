package sol003_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// hosts is the parameter of a VNF that makes the region metal.
func hosts() nf.InstantiateVNFRequest {
	return nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: nf.VNFRequest{Extra: map[string]any{
		"k8s_cluster_installation_param": map[string]any{"vim_name": "metal", "password": "s3cret"},
	}}}
}

// clusters is an engine of VNFs on hosts, which registers their region as it begins.
func (w *world) clusters() sol003.Engine {
	e := newEngine()
	check := func(_ context.Context, req nf.InstantiateRequest) (region, cloud string, err error) {
		installation, _ := req.Inputs.Parameters["k8s_cluster_installation_param"].(map[string]any)
		region, _ = installation["vim_name"].(string)
		cloud, _ = installation["cloud"].(string)
		if region == "" || installation["password"] != "s3cret" {
			return "", "", nf.E(nf.Invalid, "instantiate", "the VNF", nf.Violations{{Field: "vim_name", Message: "is missing"}})
		}
		return region, cloud, nil
	}
	return sol003.Engine{Changes: registrar{e, w}, Repairs: e, Instances: e, Check: check}
}

type registrar struct {
	sol003.Changes

	w *world
}

func (r registrar) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	op, err := r.Changes.Instantiate(ctx, req)
	if err == nil {
		r.w.register(req.Region)
	}
	return op, err
}

func (w *world) register(region string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.regions[region] = nf.Region{ID: region, Type: nf.KubernetesRegion, Access: nf.Access{Server: "https://" + region + ":6443"}}
}

// TestHosts instantiates a VNF that makes a cluster on hosts, and another one there.
// Terminating the first one is refused, and then cascades.
func TestHosts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t, func(c *config) { c.Engines = map[string]sol003.Engine{sol003.ClusterEngine: w.clusters()} })
		ctx, a, b := t.Context(), create(t, m), create(t, m)
		regions, bare, err := m.NewRegions(ctx, a, hosts())
		if err != nil || !bare || len(regions) != 1 || regions[0] != "metal" {
			t.Errorf("the request makes %v (%v): %v", regions, bare, err)
		}
		onMachines := hosts()
		onMachines.Extra["k8s_cluster_installation_param"].(map[string]any)["cloud"] = "sky"
		if regions, _, err := m.NewRegions(ctx, a, onMachines); err != nil || !slices.Equal(regions, []string{"metal", "sky"}) {
			t.Errorf("the request for machines requires permissions in %v: %v", regions, err)
		}
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, a, hosts()) })
		v := get(t, m, a)
		want := map[string]nf.VIMConnection{"metal": {VIM: nf.Region{ID: "metal"}.VIMID(), Region: "metal", Type: "ETSINFV.KUBERNETES.V_1", Server: "https://metal:6443", Made: true}}
		if diff := cmp.Diff(want, v.VIMs); diff != "" || v.Instantiated.Region != "metal" || len(v.Instantiated.Params) > 0 {
			t.Errorf("the VNF is in %s with the parameters %v; its connections (-want +got):\n%s", v.Instantiated.Region, v.Instantiated.Params, diff)
		}
		for key, value := range w.records(t) {
			if strings.Contains(value, "s3cret") {
				t.Errorf("%s still has the credentials of the hosts", key)
			}
		}
		_, err = m.Scale(ctx, a, nf.ScaleVNFRequest{Aspect: "front"})
		wantKind(t, "hosts are not scaled", err, nf.Unsupported)
		_, err = m.Connect(ctx, a, nf.ConnectVNFRequest{Networks: []nf.Attachment{{Network: "blue", Workload: "web"}}})
		wantKind(t, "hosts have no networks", err, nf.Unsupported)
		_, err = m.ChangePackage(ctx, a, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2"})
		wantKind(t, "hosts have no objects of a package", err, nf.Unsupported)
		if err == nil || !strings.Contains(err.Error(), "change its site") {
			t.Errorf("the refusal does not say what to do: %v", err)
		}
		other := create(t, m)
		_, err = m.Instantiate(ctx, other, hosts())
		wantKind(t, "a region is made once", err, nf.Conflict)

		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Instantiate(ctx, b, nf.InstantiateVNFRequest{Flavor: "simple", VIMs: map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "metal"}.VIMID()}}})
		})
		_, err = m.Terminate(ctx, a, nf.TerminateVNFRequest{})
		wantKind(t, "something uses the region", err, nf.Conflict)
		if !strings.Contains(nf.TextOf(err).String(), b) {
			t.Errorf("the refusal does not name %s: %v", b, err)
		}
		_, err = m.Terminate(ctx, a, nf.TerminateVNFRequest{VNFRequest: nf.VNFRequest{Extra: map[string]any{"cascade": "yes"}}})
		wantKind(t, "cascade is a flag", err, nf.Invalid)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Terminate(ctx, a, nf.TerminateVNFRequest{VNFRequest: nf.VNFRequest{Extra: map[string]any{"cascade": true}}})
		})
		for _, id := range []string{a, b} {
			if v := get(t, m, id); v.Instantiated != nil || v.VIMs != nil {
				t.Errorf("VNF %s is %+v", id, v)
			}
		}
	})
}

// TestHostsResume: a process that dies while a cluster is made leaves it to the next one,
// which makes no second one.
func TestHostsResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		clusters := w.clusters()
		with := func(c *config) { c.Engines = map[string]sol003.Engine{sol003.ClusterEngine: clusters} }
		first, stop := w.start(t, with)
		a := create(t, first)
		o, err := first.Instantiate(t.Context(), a, hosts())
		must(t, err)
		<-time.After(time.Second)
		stop()
		m, _ := w.start(t, with)
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceCompleted {
			t.Fatalf("the resumed occurrence is %s: %+v", o.State, o.Failure)
		}
		if n := len(clusters.Changes.(registrar).Changes.(*engine).ops); n != 1 {
			t.Errorf("%d operations were begun", n)
		}
	})
}

// TestCascadeFails: once another VNF was terminated, the termination is no longer rolled
// back, but retried.
func TestCascadeFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t, func(c *config) { c.Engines = map[string]sol003.Engine{sol003.ClusterEngine: w.clusters()} })
		ctx, a, b := t.Context(), create(t, m), create(t, m)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, a, hosts()) })
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Instantiate(ctx, b, nf.InstantiateVNFRequest{Flavor: "simple", VIMs: map[string]nf.VIMConnectionRequest{"vim1": {VIM: nf.Region{ID: "metal"}.VIMID()}}})
		})
		w.engine.failures[nf.Terminate] = 1
		cascade := nf.TerminateVNFRequest{VNFRequest: nf.VNFRequest{Extra: map[string]any{"cascade": true}}}
		o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Terminate(ctx, a, cascade) })
		blocked := get(t, m, b).Occurrence
		must(t, m.Retry(ctx, blocked, nf.RequestKey{}))
		if got := ended(t, m, blocked); got.State != nf.OccurrenceCompleted {
			t.Fatalf("the other VNF's termination is %s: %+v", got.State, got.Failure)
		}
		must(t, m.Retry(ctx, o.ID, nf.RequestKey{}))
		if got := ended(t, m, o.ID); got.State != nf.OccurrenceCompleted {
			t.Errorf("the repeated termination is %s: %+v", got.State, got.Failure)
		}
	})
}

// TestWorkloadClusters checks the clusters of Cluster API that a request makes regions of.
func TestWorkloadClusters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		ctx, id := t.Context(), create(t, m)
		request := func(value any) nf.InstantiateVNFRequest {
			return nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: nf.VNFRequest{Extra: map[string]any{"workload_clusters": value}}}
		}
		for reason, value := range map[string]any{
			"they are a list":            "edge",
			"a cluster becomes a region": []any{map[string]any{"cluster": "edge"}},
			"each becomes another one":   []any{map[string]any{"cluster": "a", "cloud_region_id": "edge-1"}, map[string]any{"cluster": "b", "cloud_region_id": "edge-1"}},
		} {
			_, err := m.Instantiate(ctx, id, request(value))
			wantKind(t, reason, err, nf.Invalid)
		}
		_, err := m.Instantiate(ctx, id, hosts())
		wantKind(t, "without an engine for hosts", err, nf.Unsupported)
		good := request([]any{map[string]any{"cluster": "edge", "cloud_region_id": "edge-1"}})
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, good) })
		v := get(t, m, id)
		if c := v.VIMs["edge-1"]; !c.Made || v.VIMs["default"].Made {
			t.Errorf("the connections are %+v", v.VIMs)
		}
		spec := w.engine.revisions[id][0]
		if len(spec.Workloads) != 1 || spec.Workloads[0].Region != "edge-1" || spec.Inputs.Parameters["workload_clusters"] != nil {
			t.Errorf("the engine was asked for %+v", spec)
		}
	})
}
