package sol003_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// world is a store with the dependencies of a Manager: packages, two regions, and the
// simulated engine.
type world struct {
	kv     store.KV
	engine *engine

	mu      sync.Mutex
	regions map[string]nf.Region
	asked   []nf.GrantRequest
	answer  nf.Grant
	grant   error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{kv: memory.New(), engine: newEngine(), regions: map[string]nf.Region{
		"edge":  {ID: "edge", Type: nf.KubernetesRegion, VIM: &nf.VIM{Default: true}, DefaultNamespace: "apps", Access: nf.Access{Server: "https://edge:6443"}},
		"stack": {ID: "stack", Type: nf.OpenStackRegion},
		"west":  {ID: "west", Type: nf.KubernetesRegion, Access: nf.Access{Server: "https://west:6443"}},
	}}
	for id, vnfd := range map[string]string{"one": "vnfd-1", "two": "vnfd-2", "disabled": "vnfd-3", "empty": "", "foreign": "vnfd-4", "stack": ""} {
		p := nf.Package{ID: id, Digest: "sha256:0", Kind: "csar", Disabled: id == "disabled", VNFD: &nf.VNFD{
			ID: vnfd, Provider: "Example", Product: "Router", SoftwareVersion: "1.0", Version: "1.0", Artifacts: []nf.PackageArtifact{{Path: "Files/kubernetes/web.yaml"}},
		}}
		if vnfd == "" { // the one named stack stands for the region of this name, which is held
			p.Digest, p.VNFD = "", nil
		}
		if id == "foreign" {
			p.Project = "other"
		}
		must(t, w.packages(w.kv).Insert(t.Context(), id, p))
	}
	return w
}

func (w *world) packages(kv store.KV) store.HeldTable[nf.Package] {
	return store.NewHeldTable(kv, "packages/", "package", func(p *nf.Package) *string { return &p.Removing })
}

// packages are the packages as a process reaches them.
type packages struct{ store.HeldTable[nf.Package] }

func (p packages) Package(ctx context.Context, id string) (nf.Package, error) { return p.Get(ctx, id) }

func (p packages) PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error] {
	return p.After(ctx, from)
}

func (p packages) HoldOps(ctx context.Context, h nf.Holding) ([]store.Op, error) {
	return p.HeldTable.HoldOps(ctx, cmp.Or(h.Package, h.Region), h.Holder)
}

func (p packages) ReleaseOps(ctx context.Context, h nf.Holding) ([]store.Op, error) {
	return p.Holds().DropOps(ctx, cmp.Or(h.Package, h.Region), h.Holder)
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, found := w.regions[id]; found {
		return r, nil
	}
	return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
}

// RemoveRegion refuses the removal of the region "held".
func (w *world) RemoveRegion(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "held" {
		return nf.E(nf.Conflict, "remove", "cloud region "+id, nil)
	}
	delete(w.regions, id)
	return nil
}

func (w *world) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	return func(yield func(nf.Region, error) bool) {
		w.mu.Lock()
		regions := maps.Clone(w.regions)
		w.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(regions)) {
			if !yield(regions[id], nil) {
				return
			}
		}
	}
}

// Users implements sol003.Regions: a region is used by the instances in it.
func (w *world) Users(_ context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for _, id := range w.engine.in(of.Region) {
			if !yield(nf.Subject{Kind: nf.InstanceSubject, ID: id}, nil) {
				return
			}
		}
	}
}

// Topology implements sol003.Descriptors.
func (*world) Topology(context.Context, string) (tosca.Topology, error) {
	return tosca.Topology{Flavors: map[string]tosca.Flavor{"simple": {
		ID: "simple", VDUs: map[string]tosca.VDU{"VDU1": {Name: "web"}}, DefaultLevel: "small",
		Levels:  map[string]tosca.Level{"small": {Counts: map[string]int{"VDU1": 1}, Aspects: map[string]int{"front": 0}}, "large": {Counts: map[string]int{"VDU1": 3}, Aspects: map[string]int{"front": 2}}},
		Aspects: map[string]tosca.Aspect{"front": {MaxLevel: 2, Steps: []map[string]int{{"VDU1": 1}}}},
	}}}, nil
}

// Ask implements sol003.Granter.
func (w *world) Ask(_ context.Context, req nf.GrantRequest) (nf.Grant, nf.PendingGrant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, req)
	w.answer.ID = "grant-1"
	return w.answer, nf.PendingGrant{}, w.grant
}

// Await implements sol003.Granter. Nothing is decided later.
func (w *world) Await(context.Context, nf.GrantRequest, nf.PendingGrant) (nf.Grant, error) {
	return nf.Grant{}, nf.E(nf.Internal, "get", "the grant", nil)
}

// config configures a Manager and its workers.
type config struct {
	sol003.Config
	Work operation.Config
}

// start runs a replica until the test ends or the returned function is called.
func (w *world) start(t *testing.T, edit ...func(*config)) (m *sol003.Manager, stop func()) {
	t.Helper()
	cfg := config{Config: sol003.Config{KV: w.kv, Regions: w, Descriptors: w, Changes: w.engine, Repairs: w.engine, Instances: w.engine}}
	for _, f := range edit {
		f(&cfg)
	}
	cfg.Work.KV, cfg.Work.NewID = cfg.KV, rand.Text
	cfg.Packages = packages{w.packages(cfg.KV)}
	work, err := operation.New(cfg.Work)
	must(t, err)
	cfg.Workers = work
	m, err = sol003.New(cfg.Config)
	must(t, err)
	return m, operationtest.Run(t, work)
}

// create creates a VNF of the first package.
func create(t *testing.T, m *sol003.Manager) string {
	t.Helper()
	v, err := m.Create(t.Context(), nf.VNF{Name: "router", VNFD: nf.VNFD{ID: "vnfd-1"}})
	must(t, err)
	return v.ID
}

var instantiate = nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: nf.VNFRequest{Extra: map[string]any{"namespace": "apps", "lcm-kubernetes-def-files": []any{"Files/kubernetes/web.yaml"}}}}

// ended waits until an occurrence is in a state that no attempt leaves.
func ended(t *testing.T, m *sol003.Manager, id string) nf.Occurrence {
	t.Helper()
	for range 1000 {
		o, err := m.Occurrence(t.Context(), id)
		must(t, err)
		if !o.State.Running() {
			synctest.Wait() // the VNF is written after its occurrence
			return o
		}
		<-time.After(time.Second)
	}
	t.Fatalf("occurrence %s does not end", id)
	return nf.Occurrence{}
}

// do makes a request and waits until its occurrence is in the state.
func do(t *testing.T, m *sol003.Manager, want nf.OccurrenceState, request func() (nf.Occurrence, error)) nf.Occurrence {
	t.Helper()
	o, err := request()
	must(t, err)
	if o = ended(t, m, o.ID); o.State != want {
		t.Fatalf("%s ended %s, want %s: %+v", o.Operation, o.State, want, o.Failure)
	}
	return o
}

func get(t *testing.T, m *sol003.Manager, id string) nf.VNF {
	t.Helper()
	v, err := m.VNF(t.Context(), id)
	must(t, err)
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// notices returns the kinds and states of the notices, in their order.
func notices(t *testing.T, m *sol003.Manager) []string {
	t.Helper()
	var out []string
	for n, err := range m.NoticesFrom(t.Context(), nf.Cursor{}) {
		must(t, err)
		text := string(n.Kind)
		if n.Occurrence != nil {
			text = string(n.Occurrence.Operation) + " " + string(n.Occurrence.State)
		}
		out = append(out, text)
		must(t, m.DropNotice(t.Context(), n.ID))
	}
	return out
}

// records returns the records of the store, except leases.
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
