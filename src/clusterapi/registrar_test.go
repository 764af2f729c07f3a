package clusterapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// world is everything outside a registrar: regions, the cluster and the region that has
// its Cluster, and what was handed over. It dies at a call on request. What the real ones
// do is tested with real API servers.
type world struct {
	mu      sync.Mutex // protects all fields while a registrar runs
	regions map[string]nf.Region
	parent  map[string]map[string]any // objects by "Kind name"
	cluster map[string]string         // owners of objects by "Kind name"
	sent    map[int]outbox.Request
	dead    map[string]outbox.Delivery
	users   []nf.Subject
	away    bool // the cluster does not answer
	reads   int  // of the Secret

	calls []string // that change something, in order
	dies  int      // the number of the call that fails, from 1; 0: none
	late  bool     // it fails after its effect
}

var errDead = errors.New("the process is dead")

func newWorld() *world {
	w := &world{regions: map[string]nf.Region{}, parent: map[string]map[string]any{}, cluster: map[string]string{}, sent: map[int]outbox.Request{}, dead: map[string]outbox.Delivery{}}
	w.parent["Cluster edge"] = map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "status": map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}}}
	w.rotate("admin-1")
	return w
}

func (w *world) rotate(text string) {
	w.parent["Secret edge-kubeconfig"] = map[string]any{"data": map[string]any{"value": base64.StdEncoding.EncodeToString([]byte(text))}}
}

// change makes a call that changes something, unless the process dies before or after it.
func (w *world) change(call string, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if len(w.calls) == w.dies && !w.late {
		return errDead
	}
	err := do()
	if len(w.calls) == w.dies {
		return errDead
	}
	return err
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, is := w.regions[id]
	if !is {
		return r, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return r, nil
}

func (w *world) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Collect(maps.Values(w.regions))
	return func(yield func(nf.Region, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (w *world) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	return r, w.change("register", func() error {
		if _, is := w.regions[r.ID]; is {
			return nf.E(nf.Exists, "register", "cloud region "+r.ID, nil)
		}
		w.regions[r.ID] = r
		return nil
	})
}

func (w *world) UpdateRegion(_ context.Context, id string, edit func(*nf.Region) error) (r nf.Region, err error) {
	err = w.change("update", func() error {
		r = w.regions[id]
		if err := edit(&r); err != nil {
			return err
		}
		w.regions[id] = r
		return nil
	})
	return r, err
}

func (w *world) RemoveRegion(_ context.Context, id string) error {
	return w.change("remove", func() error {
		if len(w.users) > 0 {
			return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: id, Reason: nf.ReasonHeld}
		}
		delete(w.regions, id)
		return nil
	})
}

func (w *world) Users(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for _, u := range w.users {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (w *world) Put(_ context.Context, r outbox.Request) (outbox.Delivery, error) {
	return outbox.Delivery{}, w.change("put", func() error {
		if _, is := w.sent[r.Number]; is {
			return nf.E(nf.Exists, "put", "kubeconfig", nil)
		}
		w.sent[r.Number] = r
		return nil
	})
}

// parentOf reads the region with the Cluster.
type parentOf struct{ w *world }
func (w *world) DeadLetters(context.Context) ([]outbox.Delivery, error) {
	return slices.Collect(maps.Values(w.dead)), nil
}

func (w *world) DeadLetter(_ context.Context, id string) (outbox.Delivery, error) {
	d, is := w.dead[id]
	if !is {
		return d, nf.E(nf.NotFound, "get", "dead letter "+id, nil)
	}
	return d, nil
}

func (w *world) Resend(_ context.Context, d outbox.Delivery) (outbox.Delivery, error) {
	delete(w.dead, d.ID)
	return d, nil
}

func (w *world) Discard(_ context.Context, id string) error {
	delete(w.dead, id)
	return nil
}


func (p parentOf) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if ref.Kind == "Secret" {
		p.w.reads++
	}
	object := p.w.parent[ref.Kind+" "+ref.Name]
	if version, is := object["apiVersion"]; is && version != ref.APIVersion() {
		return nil, nil
	}
	return object, nil
}

// clusterOf is the cluster as an administrator sees it.
type clusterOf struct{ w *world }

func (c clusterOf) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	if _, is := c.w.cluster[ref.Kind+" "+ref.Name]; !is {
		return nil, nil
	}
	return map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte("token"))}}, nil
}

func (c clusterOf) Apply(_ context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return nil, c.w.change("apply "+objects[0].GetKind(), func() error {
		for _, obj := range objects {
			if nf.OwnerOf(obj.GetLabels()) != owner {
				return fmt.Errorf("%s has no owner", obj.GetName())
			}
			c.w.cluster[obj.GetKind()+" "+obj.GetName()] = owner.String()
		}
		return nil
	})
}

func (c clusterOf) Delete(_ context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return nil, c.w.change("delete", func() error {
		for _, ref := range refs {
			if key := ref.Kind + " " + ref.Name; c.w.cluster[key] == owner.String() {
				delete(c.w.cluster, key)
			}
		}
		return nil
	})
}

func (w *world) registrar(t *testing.T) *clusterapi.Registrar {
	t.Helper()
	r, err := clusterapi.New(clusterapi.Config{
		Regions: w, Outbox: w,
		Parse: func(kubeconfig nf.Secret) (nf.Access, error) {
			return nf.Access{Server: "https://internal", Certificate: kubeconfig, Key: kubeconfig, Kubeconfig: kubeconfig}, nil
		},
		Open: func(context.Context, string, string) (clusterapi.Reader, error) { return parentOf{w}, nil },
		Visit: func(_ nf.Access, use func(clusterapi.Workload) error) error {
			if w.away {
				return nf.E(nf.Unreachable, "reach", "the cluster", nil)
			}
			return use(clusterOf{w})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func held(context.Context) error { return nil }

func parent(edit ...func(*nf.WorkloadCluster)) nf.Parent {
	p := nf.Parent{Region: "east", Project: "default", Instance: "vnf-1", Workload: nf.WorkloadCluster{Cluster: "edge", Namespace: "ns", Region: "edge-1", HandOver: "https://receiver"}}
	for _, e := range edit {
		e(&p.Workload)
	}
	return p
}

// TestRegister registers the region of a cluster.
func TestRegister(t *testing.T) {
	cases := map[string]struct {
		reason string
		world  func(*world)
		parent nf.Parent
		fails  nf.Kind // 0: it does not
		server string
		token  string // empty: the administrator's certificate
	}{
		"Account":     {reason: "the region has a service account of its own", parent: parent(), server: "https://internal", token: "token"},
		"Secret":      {reason: "or the credentials of the Secret, if the request says so", parent: parent(func(w *nf.WorkloadCluster) { w.Credentials = nf.SecretCredentials }), server: "https://internal"},
		"Server":      {reason: "the address may be an internal one", parent: parent(func(w *nf.WorkloadCluster) { w.Server = "https://outside" }), server: "https://outside", token: "token"},
		"NoCluster":   {reason: "it waits for the Cluster", world: func(w *world) { delete(w.parent, "Cluster edge") }, parent: parent(), fails: nf.Unreachable},
		"Early":       {reason: "it waits for the control plane", world: func(w *world) { delete(w.parent["Cluster edge"], "status") }, parent: parent(), fails: nf.Unreachable},
		"NoSecret":    {reason: "it waits for the Secret", world: func(w *world) { delete(w.parent, "Secret edge-kubeconfig") }, parent: parent(), fails: nf.Unreachable},
		"EmptySecret": {reason: "it waits for the kubeconfig", world: func(w *world) { w.parent["Secret edge-kubeconfig"] = map[string]any{} }, parent: parent(), fails: nf.Unreachable},
		"Silent":      {reason: "it waits for the API server", world: func(w *world) { w.away = true }, parent: parent(), fails: nf.Unreachable},
		"Taken":       {reason: "the region of another request stays", world: func(w *world) { w.regions["edge-1"] = nf.Region{ID: "edge-1"} }, parent: parent(), fails: nf.Exists},
		"Older": {
			reason: "where only v1beta1 is served, a condition tells", parent: parent(), server: "https://internal", token: "token",
			world: func(w *world) {
				w.parent["Cluster edge"] = map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta1", "status": map[string]any{"conditions": []any{map[string]any{"type": "ControlPlaneInitialized", "status": "True"}}}}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if tc.world != nil {
				tc.world(w)
			}
			err := w.registrar(t).Register(t.Context(), held, tc.parent)
			if tc.fails != 0 {
				if nf.KindOf(err) != tc.fails || len(w.calls) > 0 {
					t.Errorf("%s: error %v, calls %v", tc.reason, err, w.calls)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := w.regions["edge-1"]
			if got.Access.Server != tc.server || string(got.Access.Token) != tc.token || (tc.token == "") != (len(got.Access.Certificate) > 0) || len(got.Access.Kubeconfig) > 0 {
				t.Errorf("%s: the region has the server %s and a token of %d bytes", tc.reason, got.Access.Server, len(got.Access.Token))
			}
			if got.Origin != nf.OriginCluster || !got.Parent.Is(tc.parent) || len(w.sent) != 1 {
				t.Errorf("the region is %s, and %d kubeconfigs were handed over", got.Origin, len(w.sent))
			}
			if strings.Contains(fmt.Sprintf("%v %+v", got.Parent, got.Parent), "admin-1") {
				t.Error("the parent quotes the kubeconfig")
			}
		})
	}
}

// TestDeaths has a process die before and after each call, and another one repeat its
// work: the result is that of an undisturbed process.
func TestDeaths(t *testing.T) {
	verbs := map[string]struct {
		begin func(*testing.T, *world)
		do    func(context.Context, *clusterapi.Registrar) error
		calls int
	}{
		"register": {func(*testing.T, *world) {}, func(ctx context.Context, r *clusterapi.Registrar) error { return r.Register(ctx, held, parent()) }, 6},
		"rotate": {func(t *testing.T, w *world) {
			if err := w.registrar(t).Register(t.Context(), held, parent()); err != nil {
				t.Fatal(err)
			}
			w.rotate("admin-2")
		}, func(ctx context.Context, r *clusterapi.Registrar) error { return r.Register(ctx, held, parent()) }, 4},
		"deregister": {func(t *testing.T, w *world) {
			if err := w.registrar(t).Register(t.Context(), held, parent()); err != nil {
				t.Fatal(err)
			}
		}, func(ctx context.Context, r *clusterapi.Registrar) error { return r.Deregister(ctx, held, parent()) }, 2},
	}
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			play := func(n int, late bool) *world {
				w := newWorld()
				verb.begin(t, w)
				w.calls, w.dies, w.late = nil, n, late
				err := verb.do(t.Context(), w.registrar(t))
				if n > 0 && name != "deregister" && !errors.Is(err, errDead) {
					t.Errorf("death at call %d: %v", n, err)
				}
				w.dies = 0
				if err := verb.do(t.Context(), w.registrar(t)); err != nil {
					t.Errorf("after a death at call %d: %v", n, err)
				}
				return w
			}
			whole := play(0, false)
			calls := slices.Clone(whole.calls)
			if len(calls) < verb.calls {
				t.Fatalf("only the calls %v", calls)
			}
			for n := 1; n <= verb.calls; n++ {
				for _, late := range []bool{false, true} {
					w := play(n, late)
					if diff := cmp.Diff(whole.regions, w.regions, cmp.Comparer(func(a, b nf.Secret) bool { return string(a) == string(b) })); diff != "" {
						t.Errorf("death at call %d, after it: %v (-want +got):\n%s", n, late, diff)
					}
					if diff := cmp.Diff(whole.cluster, w.cluster); diff != "" {
						t.Errorf("death at call %d, after it: %v: objects in the cluster (-want +got):\n%s", n, late, diff)
					}
					if len(w.sent) != len(whole.sent) {
						t.Errorf("death at call %d: %d kubeconfigs were handed over, want %d", n, len(w.sent), len(whole.sent))
					}
				}
			}
		})
	}
}

// TestDeregisterKeepsWhatIsUsed does not remove a region that is in use, or that another
// request has registered.
func TestDeregisterKeepsWhatIsUsed(t *testing.T) {
	w := newWorld()
	r := w.registrar(t)
	if err := r.Register(t.Context(), held, parent()); err != nil {
		t.Fatal(err)
	}
	w.users = []nf.Subject{{Kind: nf.InstanceSubject, ID: "vnf-2"}}
	if err := r.Deregister(t.Context(), held, parent()); nf.ReasonOf(err) != nf.ReasonHeld || len(w.cluster) == 0 {
		t.Errorf("a region in use: %v", err)
	}
	if users, err := r.Users(t.Context(), parent()); err != nil || len(users) != 1 {
		t.Errorf("users: %v, %v", users, err)
	}
	other := parent()
	other.Instance = "vnf-3"
	if err := r.Deregister(t.Context(), held, other); err != nil || len(w.regions) != 1 {
		t.Errorf("the region of another instance: %v", err)
	}
}

// TestAccountHasTheRightsOfSites compares the rights with those of regions on sites.
func TestAccountHasTheRightsOfSites(t *testing.T) {
	text, err := os.ReadFile("../../kud/roles/region/defaults/main.yml")
	if err != nil {
		t.Fatal(err)
	}
	var role struct {
		Rules []any `json:"region_rules"`
	}
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	account, err := os.ReadFile("account.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []struct {
			Kind  string `json:"kind"`
			Rules []any  `json:"rules"`
		} `json:"items"`
	}
	if err := json.Unmarshal(account, &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		if diff := cmp.Diff(role.Rules, item.Rules); item.Kind == "ClusterRole" && diff != "" {
			t.Errorf("rules (-region role of kud +account.json):\n%s", diff)
		}
	}
}
