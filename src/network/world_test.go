package network_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is a store with the dependencies of Networks: the region "edge", whose objects
// are in memory.
type world struct {
	kv     store.KV
	ledger *operation.Ledger // of the replica that was started last

	mu      sync.Mutex
	held    map[string]bool   // holders of the region
	objects map[string]string // owners of the objects, by Ref.Key
	nodes   int               // of the region
	refused string            // end of the names of objects that the region refuses; empty: none
	stuck   string            // message of objects that are not deleted; empty: they are
	serves  bool              // the region serves wires
	away    bool              // the region does not answer
	plugins map[string]bool   // that the region declares
	gate    chan struct{}     // Apply returns after it is closed; nil: at once
}

func newWorld() *world {
	return &world{kv: memory.New(), held: map[string]bool{}, objects: map[string]string{}}
}

// config configures Networks and their workers, which have the same store.
type config struct {
	shared.Config
	Work operation.Config
}

// start runs a replica until the test ends or the returned function is called.
func (w *world) start(t *testing.T, edit ...func(*config)) (s *shared.Resources, stop func()) {
	t.Helper()
	cfg := config{Config: shared.Config{KV: w.kv, Regions: w, Open: w.open(w)}}
	for _, f := range edit {
		f(&cfg)
	}
	cfg.Work.KV, cfg.Work.NewID = cfg.KV, rand.Text
	work, err := operation.New(cfg.Work)
	must(t, err)
	cfg.Workers, w.ledger = work, work.Ledger()
	s, err = network.New(cfg.Config, network.Drivers{"plain": plain{}})
	must(t, err)
	if is, ok := cfg.Users.(*instances); ok {
		is.start(t, cfg.Config)
	}
	return s, operationtest.Run(t, work)
}

func (w *world) open(c shared.Cluster) func(context.Context, string) (shared.Cluster, error) {
	return func(_ context.Context, region string) (shared.Cluster, error) {
		if region != "edge" {
			return nil, nf.E(nf.NotFound, "open", "cloud region "+region, nil)
		}
		return c, nil
	}
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	if id != "edge" {
		return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return nf.Region{ID: id, Plugins: w.plugins, Interfaces: map[string]string{"oam": "eth1"}}, nil
}

func (w *world) Hold(_ context.Context, h nf.Holding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[h.Holder.Subject.String()] = true
	return nil
}

func (w *world) Release(_ context.Context, h nf.Holding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, h.Holder.Subject.String())
	return nil
}

func (w *world) unreachable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "cloud region edge", Reason: nf.ReasonTCP, Err: errors.New("no route")}
	}
	return nil
}

// setAway sets whether the region answers.
func (w *world) setAway(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

func (w *world) Preflight(_ context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, obj := range objects {
		if v := append(bounds.Outside(nf.RefOf(obj)), bounds.Denied(nf.RefOf(obj))...); len(v) > 0 {
			return 0, nf.E(nf.Forbidden, "apply", keyOf(obj), v)
		}
		if by := w.objects[keyOf(obj)]; by != "" && by != owner.String() {
			return 0, nf.E(nf.Conflict, "apply", keyOf(obj), errors.New("it belongs to "+by))
		}
	}
	return 0, nil
}

func (w *world) Lookup(context.Context, nf.Ref) (map[string]any, error) {
	return map[string]any{"items": make([]any, w.nodes)}, w.unreachable()
}

func (w *world) Served(_ context.Context, kinds []nf.Ref) ([]nf.Ref, error) {
	if !w.serves {
		kinds = nil
	}
	return kinds, w.unreachable()
}

func (w *world) EnsureNamespace(context.Context, string, string) (nf.Namespace, error) {
	return nf.Namespace{Created: true}, w.unreachable()
}

func (w *world) Apply(_ context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	if err := w.unreachable(); err != nil {
		return nil, err
	}
	if w.gate != nil {
		<-w.gate
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []nf.Change
	for _, obj := range objects {
		if w.refused != "" && strings.HasSuffix(obj.GetName(), w.refused) {
			return out, nf.E(nf.Failed, "apply", obj.GetName(), errors.New("no such card"))
		}
		if got := nf.OwnerOf(obj.GetLabels()); got != owner {
			return nil, fmt.Errorf("the object is labelled for %s", got)
		}
		w.objects[keyOf(obj)] = owner.String()
		out = append(out, nf.Change{Ref: nf.RefOf(obj), Action: nf.Created})
	}
	return out, nil
}

func (w *world) Delete(_ context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	if err := w.unreachable(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []nf.Change
	for _, ref := range refs {
		action := nf.Unchanged
		if w.objects[ref.Key()] == owner.String() {
			action = nf.Deleted
			delete(w.objects, ref.Key())
		}
		out = append(out, nf.Change{Ref: ref, Action: action})
	}
	return out, nil
}

func (w *world) Watch(ctx context.Context, _ nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		for _, target := range targets {
			w.mu.Lock()
			_, there := w.objects[target.Key()]
			w.mu.Unlock()
			h := nf.Health{Ref: target.Ref, Status: nf.Absent}
			if there {
				h.Status = nf.Current
			}
			if w.stuck != "" {
				h.Status, h.Message = nf.StatusDeleting, w.stuck
			}
			if !yield(h, nil) {
				return
			}
		}
		if w.stuck != "" {
			<-ctx.Done()
		}
	}
}

// applied returns the keys of the objects in the region.
func (w *world) applied() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.objects))
}

func keyOf(obj *unstructured.Unstructured) string { return nf.RefOf(obj).Key() }

// plain is a driver whose networks have one object for each wire of the spec:
// {"wires": ["a", "b"]}.
type plain struct{}

type plainSpec struct {
	Wires  []string `json:"wires"`
	Local  bool     `json:"local,omitempty"`
	Wired  bool     `json:"wired,omitempty"`  // the region serves wires
	Device string   `json:"device,omitempty"` // extended resource that each attachment takes
}

func (plain) Kinds() []nf.Ref { return []nf.Ref{wire} }

func (plain) Layout(n nf.Network) (nf.Layout, error) { return nf.Layout{Physical: n.Name}, nil }

// namespaces are those of wires that are not in the namespace of networks; "-": none.
var namespaces = map[string]string{"operated": "operator", "global": "-"}

// wire is the kind of the objects. A region need not serve it.
var wire = nf.Ref{Group: "test", Version: "v1", Kind: "Wire"}

func (plain) Normalize(raw json.RawMessage, region nf.NetworkRegion) (json.RawMessage, error) {
	var s plainSpec
	if err := json.Unmarshal(raw, &s); err != nil || len(s.Wires) == 0 {
		return nil, nf.E(nf.Invalid, "check", "network", nf.Violations{{Field: "spec.wires", Message: "are missing"}})
	}
	if region.Interfaces["oam"] != "eth1" {
		return nil, errors.New("the names of the region's interfaces are missing")
	}
	slices.Sort(s.Wires)
	s.Wired = region.Serves(wire)
	return json.Marshal(s)
}

func (plain) Frozen(before, after json.RawMessage, attached bool) nf.Violations {
	var was, is plainSpec
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &is)); err != nil {
		return nf.Violations{{Field: "spec", Message: err.Error()}}
	}
	if !attached || was.Local == is.Local {
		return nil
	}
	return nf.Violations{{Field: "spec.local", Message: "cannot change while pods are attached"}}
}

func (plain) Objects(n nf.Network, namespace string) ([]*unstructured.Unstructured, error) {
	var s plainSpec
	if err := json.Unmarshal(n.Spec, &s); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, name := range s.Wires {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("test/v1")
		obj.SetKind("Wire")
		obj.SetNamespace(strings.TrimPrefix(cmp.Or(namespaces[name], namespace), "-"))
		obj.SetName(n.Name + "-" + name)
		out = append(out, obj)
	}
	return out, nil
}

func (plain) NodeLocal(spec json.RawMessage) bool {
	var s plainSpec
	return json.Unmarshal(spec, &s) == nil && s.Local
}

// Plugins says that each wire is the plugin of its name.
func (plain) Plugins(spec json.RawMessage) map[string]string {
	var s plainSpec
	_ = json.Unmarshal(spec, &s)
	out := map[string]string{}
	for i, name := range s.Wires {
		out[fmt.Sprintf("spec.wires[%d]", i)] = name
	}
	return out
}

// Resources implements network.ResourceUser.
func (plain) Resources(spec json.RawMessage) map[string]string {
	var s plainSpec
	if json.Unmarshal(spec, &s) != nil || s.Device == "" {
		return nil
	}
	return map[string]string{"spec.device": s.Device}
}

func (plain) Connect(n nf.Network, namespace string, a nf.Attachment, _ int) (nf.Connection, error) {
	return nf.Connection{Attachment: a, Selection: map[string]any{"name": n.Name, "namespace": namespace}}, nil
}

// request returns a request for the network "oam".
func request(edit ...func(*nf.SharedRequest)) nf.SharedRequest {
	req := nf.SharedRequest{Resource: nf.Network{Name: "oam", Region: "edge", Driver: "plain", Spec: json.RawMessage(`{"wires":["a"]}`)}, Holder: "ann"}
	for _, f := range edit {
		f(&req)
	}
	return req
}

const oam = "edge.oam"

// create creates a network and waits until it exists.
func (w *world) create(t *testing.T, s *shared.Resources, req nf.SharedRequest) {
	t.Helper()
	op, err := s.Create(t.Context(), req)
	must(t, err)
	w.end(t, op)
}

// end waits until an operation ends, and returns it.
func (w *world) end(t *testing.T, op nf.Operation) nf.Operation {
	t.Helper()
	if op.ID == "" {
		return op
	}
	for now, err := range w.ledger.Follow(t.Context(), op.ID) {
		must(t, err)
		op = now
	}
	synctest.Wait()
	return op
}

// instance returns a VNF instance as a holder.
func instance(id string) nf.Holder {
	return nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Scope: nf.Scope{Project: "default", Region: "edge"}}
}

// count returns the number of holders of the network.
func count(t *testing.T, s *shared.Resources) int {
	t.Helper()
	n := 0
	for _, err := range s.Holders(t.Context(), oam) {
		must(t, err)
		n++
	}
	return n
}

// state returns the state of the network; "" if it does not exist.
func state(t *testing.T, s *shared.Resources) nf.SharedState {
	t.Helper()
	n, err := s.Get(t.Context(), oam)
	must(t, nf.IgnoreNotFound(err))
	return n.State
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored returns the keys of the store by table, except those of replicas.
func (w *world) stored(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for e, err := range w.kv.List(t.Context(), "", "") {
		must(t, err)
		table, _, _ := strings.Cut(e.Key, "/")
		if table != "replicas" {
			out[table]++
		}
	}
	return out
}
