package clusterapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

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
