package lifecycle_test

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// site is a store, a region and a catalog that outlive the engines that tests
// start on them.
type site struct {
	t       *testing.T
	kv      store.KV
	cluster *fakeCluster
	catalog *fakeCatalog
	volumes *reservations
	ids     atomic.Int64
}

func newSite(t *testing.T) *site {
	kv := memory.New()
	s := &site{t: t, kv: kv, cluster: newFakeCluster(), catalog: &fakeCatalog{t: t, kv: kv}, volumes: &reservations{claims: map[string]string{}}}
	t.Cleanup(func() {
		if len(s.cluster.misused) > 0 {
			t.Errorf("objects of the instance were applied as new: %v", s.cluster.misused)
		}
	})
	return s
}

// engine is a running engine with its workers; stop ends both as a signal would.
type engine struct {
	*lifecycle.Engine
	work *operation.Workers
	stop func()
}

// config configures an engine and its workers. The workers have the engine's
// store and ids.
type config struct {
	lifecycle.Config
	Work operation.Config
}

func (s *site) start(edit ...func(*config)) *engine {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg := config{Work: operation.Config{Sole: true, Logger: log}, Config: lifecycle.Config{
		KV: s.kv, Catalog: s.catalog, Renderers: map[string]render.Renderer{"list": listRenderer{}},
		Open:   func(context.Context, string, string) (lifecycle.Cluster, error) { return s.cluster, nil },
		NewID:  func() string { return fmt.Sprintf("id%04d", s.ids.Add(1)) },
		Places: 4,
	}}
	for _, e := range edit {
		e(&cfg)
	}
	cfg.Work.KV, cfg.Work.NewID = cfg.KV, cfg.NewID
	if cfg.Networks == nil {
		cfg.Networks = fakeNetworks{cfg.KV}
	}
	if cfg.Workloads == nil {
		cfg.Workloads = fakeWorkloads{reservations: s.volumes, kv: cfg.KV}
	}
	if cfg.Volumes == nil {
		cfg.Volumes = fakeVolumes{reservations: s.volumes, kv: cfg.KV}
	}
	work, err := operation.New(cfg.Work)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Workers = work
	e, err := lifecycle.New(cfg.Config)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := work.Join(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- work.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	}
	s.t.Cleanup(stop)
	return &engine{Engine: e, work: work, stop: stop}
}

// end follows an operation to its end.
func (e *engine) end(t *testing.T, op nf.Operation) nf.Operation {
	t.Helper()
	for now, err := range e.Follow(t.Context(), op.ID) {
		if err != nil {
			t.Fatal(err)
		}
		op = now
	}
	if !op.State.Final() {
		t.Fatalf("operation %s was left %s", op.ID, op.State)
	}
	wantSteps(t, op)
	return op
}

// wantSteps checks that no step of an operation was recorded twice.
func wantSteps(t *testing.T, op nf.Operation) {
	t.Helper()
	seen := map[nf.StepID]bool{}
	for _, step := range op.Steps {
		if seen[step.StepID] {
			t.Errorf("operation %s has two steps %+v", op.ID, step.StepID)
		}
		seen[step.StepID] = true
	}
}

// up instantiates a package and waits for the end of the operation.
func (e *engine) up(t *testing.T, pkg string, opts ...func(*nf.InstantiateRequest)) nf.Operation {
	t.Helper()
	req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: pkg}}
	for _, o := range opts {
		o(&req)
	}
	op, err := e.Instantiate(t.Context(), req)
	if err != nil {
		t.Fatalf("cannot instantiate %s: %v", pkg, err)
	}
	return e.end(t, op)
}

// The kinds keep, shared and again are what they say, an owned one is of the kind shared
// and the instance's own, and those of hookKinds are hooks.
//
// listRenderer renders the packages of these tests, whose id is their content:
// stages separated by "/", object names by ",": "db/web,svc". "Kind.name" is an
// object of another kind than ConfigMap. The parameters' namespaces say where
// objects are, by name; lookup names a Secret whose data.key each object repeats.
type listRenderer struct{}

func (listRenderer) Fit(render.Files) render.Fit { return render.DefaultFit }

func (listRenderer) Check(context.Context, render.Files) (render.Summary, error) {
	return render.Summary{}, nil
}

func (listRenderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	var out render.Output
	found, err := lookUp(ctx, in)
	if err != nil {
		return out, err
	}
	if why, wrong := in.Inputs.Parameters["wrong"].(string); wrong {
		return out, nf.E(nf.Invalid, "render", "package", nf.Violations{{File: "list", Line: 1, Message: why}})
	}
	if _, ok := in.Inputs.Parameters["secret"]; ok {
		out.Sensitive = []string{"secret"}
	}
	if in.Inputs.Parameters["defaults"] == true {
		out.Secrets = []string{"default-pass", "unused"}
	}
	out.Networks, out.Volumes = declaredNetworks(in), declaredVolumes(in)
	out.Profiles = declaredProfiles
	out.Notes, _ = in.Inputs.Parameters["notes"].(string)
	if region, declares := in.Inputs.Parameters["edge_region"].(string); declares {
		out.Clusters = []nf.DeclaredCluster{{WorkloadCluster: nf.WorkloadCluster{Cluster: "edge", Region: region}, At: nf.Place{Field: "workload_clusters[0]", File: "list", Lines: func(string) int { return 7 }}}}
	}
	previous := []string{}
	for i, stage := range strings.Split(string(in.Files["list"]), "/") {
		g := render.Group{Name: fmt.Sprintf("s%d", i), After: previous, Wait: render.WaitReady, Timeout: time.Minute}
		for n, name := range strings.Split(stage, ",") {
			size, _ := in.Inputs.Parameters["size"].(string)
			size += found
			kind, bare, other := strings.Cut(name, ".")
			if !other {
				kind, bare = "ConfigMap", name
			}
			g.Objects = append(g.Objects, render.Object{File: "list", Line: n + 1, Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": bare}, "data": map[string]any{"size": size},
			}}})
			if number, given := in.Inputs.Parameters["replicas"]; given {
				g.Objects[n].Object["data"].(map[string]any)["replicas"] = number
			}
			places, _ := in.Inputs.Parameters["namespaces"].(map[string]any)
			if place, placed := places[bare].(string); placed {
				g.Objects[n].SetNamespace(place)
			}
			if bare == "big" {
				g.Objects[n].Object["spec"] = map[string]any{"accessModes": []any{"ReadWriteMany"}}
			}
			if kind == "twin" { // of the kind again, in another group
				g.Objects[n].Object["apiVersion"], g.Objects[n].Object["kind"], kind = "example.org/v1", "again", "again"
			}
			if kind == "again" {
				policy, given := in.Inputs.Parameters["recreate"].(string)
				if !given {
					policy = string(render.RecreateIfNeeded)
				}
				g.Objects[n].SetAnnotations(map[string]string{render.RecreateAnnotation: policy})
			}
			if kind == "set" {
				g.Objects[n].Object["apiVersion"], g.Objects[n].Object["kind"] = "apps/v1", "StatefulSet"
			}
			if of, is := machineKinds[kind]; is {
				g.Objects[n].Object["apiVersion"], g.Objects[n].Object["kind"] = of[0], of[1]
			}
			if kind == "job" {
				g.Objects[n].Object["apiVersion"], g.Objects[n].Object["kind"] = "batch/v1", "Job"
				g.Objects[n].Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{}}}
			}
			if kind == "pods" {
				g.Objects[n].Object["apiVersion"], g.Objects[n].Object["kind"] = "apps/v1", "Deployment"
				g.Objects[n].Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{}}}
			}
			if kind == "owned" {
				g.Objects[n].SetKind("shared")
			}
			g.Objects[n].Shared, g.Objects[n].Keep = kind == "shared", kind == "keep"
		}
		g.Objects = slices.DeleteFunc(g.Objects, func(o render.Object) bool {
			events, is := hookKinds[o.GetKind()]
			if is {
				o.SetKind("Job")
				out.Hooks = append(out.Hooks, render.Hook{Object: o, Events: events, Discard: discards(o.GetName())})
			}
			return is
		})
		g.Prelude = i == 0 && g.Objects != nil && strings.HasPrefix(stage, "shared.")
		out.Groups = append(out.Groups, g)
		previous = []string{g.Name}
	}
	return out, nil
}

// declaredProfiles are the compute profiles of every package.
var declaredProfiles = map[string]nf.ComputeProfile{
	"large": {Node: map[string]string{"size": "large"}}, "small": {Node: map[string]string{"size": "small"}},
}

// declaredNetworks returns the attachments that the parameter networks declares, as a
// package does: "network/interface network/interface". After a "+", it creates a network.
func declaredNetworks(in render.Input) (out []nf.Connection) {
	declared, _ := in.Inputs.Parameters["networks"].(string)
	for i, entry := range strings.Fields(declared) {
		network, name, _ := strings.Cut(entry, "/")
		network, creates := strings.CutSuffix(network, "+")
		a := nf.Attachment{Network: network, Interface: name}
		if creates {
			a.Create = &nf.Creation{Driver: "multus", Spec: []byte(`{"of":"package"}`)}
		}
		out = append(out, nf.Connection{
			Attachment: a, At: nf.Place{Field: fmt.Sprintf("networks[%d]", i), File: "list", Lines: func(string) int { return 7 }},
		})
	}
	return out
}

// declaredVolumes returns the uses of volumes that the parameter volumes declares, as a
// package does: "volume/claim volume/claim".
func declaredVolumes(in render.Input) (out []nf.Binding) {
	declared, _ := in.Inputs.Parameters["volumes"].(string)
	for i, entry := range strings.Fields(declared) {
		volume, claim, _ := strings.Cut(entry, "/")
		out = append(out, nf.Binding{
			VolumeUse: nf.VolumeUse{Volume: volume, Claim: claim}, At: nf.Place{Field: fmt.Sprintf("volumes[%d]", i), File: "list", Lines: func(string) int { return 9 }},
		})
	}
	return out
}

// lookUp returns data.key of each Secret that the parameter lookup asks for, as
// "namespace/name", or "/" for all that there are.
func lookUp(ctx context.Context, in render.Input) (string, error) {
	asked, is := in.Inputs.Parameters["lookup"].(string)
	if !is {
		return "", nil
	}
	namespace, name, _ := strings.Cut(asked, "/")
	found, err := in.Region.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Secret", Namespace: namespace, Name: name})
	if err != nil {
		return "", err
	}
	items, list := found["items"].([]any)
	if !list {
		items = []any{found}
	}
	text := ""
	for _, item := range items {
		object, _ := item.(map[string]any)
		value, _, _ := unstructured.NestedString(object, "data", "key")
		text += value
	}
	return text, nil
}

// hookKinds are the kinds of these tests' objects that are hooks.
var hookKinds = map[string][]nf.HookEvent{
	"early": {nf.PreInstall, nf.PreUpgrade, nf.PreRollback},
	"late":  {nf.PostInstall, nf.PostUpgrade, nf.PostRollback},
	"bye":   {nf.PreDelete},
	"gone":  {nf.PostDelete},
	"probe": {nf.TestRun},
}

// machineKinds are kinds of Cluster API.
var machineKinds = map[string][2]string{
	"cluster":  {"cluster.x-k8s.io/v1beta2", "Cluster"},
	"machines": {"cluster.x-k8s.io/v1beta2", "MachineDeployment"},
	"template": {"infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate"},
}

// discards says when a hook goes: by the end of its name.
func discards(name string) []render.Discard {
	switch {
	case strings.HasSuffix(name, "once"):
		return []render.Discard{render.DiscardBefore, render.DiscardSuccess, render.DiscardFailure}
	case strings.HasSuffix(name, "stays"):
		return []render.Discard{render.DiscardFailure}
	}
	return nil
}

func isCatalogHold(key string) bool {
	return strings.HasPrefix(key, "holds/regions/") || strings.HasPrefix(key, "holds/packages/")
}

// records returns the keys that the store holds in addition to those of the
// operations and of the holds in the catalog.
func (s *site) records() []string {
	s.t.Helper()
	synctest.Wait() // an operation's entry in the list of work goes after its end is reported
	out := []string{}
	for entry, err := range s.kv.List(s.t.Context(), "", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.HasPrefix(entry.Key, "operationsof/") || strings.HasPrefix(entry.Key, "operationsin/") {
			if _, err := s.kv.Get(s.t.Context(), "operations/"+path.Base(entry.Key)); err == nil {
				continue // the operation's own
			}
		}
		if !isCatalogHold(entry.Key) && !strings.HasPrefix(entry.Key, "operations/") && !strings.HasPrefix(entry.Key, "changes/") && !strings.HasPrefix(entry.Key, "replicas/") {
			out = append(out, entry.Key)
		}
	}
	return out
}
