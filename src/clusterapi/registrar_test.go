package clusterapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
// work: the result is that of an undisturbed process, except that a kubeconfig may be handed
// over twice. The receiver does not answer, so that all requests are pending.
func TestDeaths(t *testing.T) {
	registered := func(t *testing.T, w *world) {
		t.Helper()
		if err := w.registrar(t).Register(t.Context(), held, parent()); err != nil {
			t.Fatal(err)
		}
	}
	register := func(p nf.Parent) func(context.Context, *clusterapi.Registrar) error {
		return func(ctx context.Context, r *clusterapi.Registrar) error { return r.Register(ctx, held, p) }
	}
	verbs := map[string]deaths{
		"register": {reason: "the region appears once", do: register(parent()), calls: 6},
		"rotate": {
			reason: "the region gets the credentials of the Secret", do: register(parent()), calls: 4,
			begin: func(t *testing.T, w *world) { registered(t, w); w.rotate("admin-2") },
		},
		"rotate after the death": {
			reason: "the credentials that the Secret gets in the meantime are handed over, too", calls: 3,
			do:        register(parent(func(w *nf.WorkloadCluster) { w.Credentials = nf.SecretCredentials })),
			meanwhile: func(w *world) { w.rotate("admin-2") },
		},
		"deregister": {
			reason: "the region and its account are removed", begin: registered, calls: 2, silent: true,
			do: func(ctx context.Context, r *clusterapi.Registrar) error { return r.Deregister(ctx, held, parent()) },
		},
	}
	for name, verb := range verbs {
		t.Run(name, verb.test)
	}
}

// deaths is one case of TestDeaths.
type deaths struct {
	reason    string
	begin     func(*testing.T, *world)
	do        func(context.Context, *clusterapi.Registrar) error
	meanwhile func(*world) // between the two processes
	calls     int
	silent    bool // do does not return the error of each call
}

func (d deaths) test(t *testing.T) {
	t.Helper()
	whole := d.play(t, 0, false)
	if len(whole.calls) < d.calls {
		t.Fatalf("only the calls %v", whole.calls)
	}
	for n := 1; n <= d.calls; n++ {
		for _, late := range []bool{false, true} {
			w := d.play(t, n, late)
			number := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Sent" }, cmp.Ignore())
			if diff := cmp.Diff(whole.regions, w.regions, number, cmp.Comparer(func(a, b nf.Secret) bool { return string(a) == string(b) })); diff != "" {
				t.Errorf("%s: death at call %d, after it: %v (-want +got):\n%s", d.reason, n, late, diff)
			}
			if diff := cmp.Diff(whole.cluster, w.cluster); diff != "" {
				t.Errorf("%s: death at call %d, after it: %v: objects in the cluster (-want +got):\n%s", d.reason, n, late, diff)
			}
			if len(w.sent) > len(whole.sent)+1 || string(w.last().Body) != string(whole.last().Body) {
				t.Errorf("%s: death at call %d, after it: %v: %d kubeconfigs were handed over, want at most %d, and the last one as in %s", d.reason, n, late, len(w.sent), len(whole.sent)+1, whole.last().Body)
			}
		}
	}
}

// play has a process die at a call, and another one repeat its work.
func (d deaths) play(t *testing.T, n int, late bool) *world {
	t.Helper()
	w := newWorld()
	if d.begin != nil {
		d.begin(t, w)
	}
	w.calls, w.dies, w.late = nil, n, late
	if err := d.do(t.Context(), w.registrar(t)); n > 0 && !d.silent && !errors.Is(err, errDead) {
		t.Errorf("death at call %d: %v", n, err)
	}
	w.dies = 0
	if d.meanwhile != nil {
		d.meanwhile(w)
	}
	if err := d.do(t.Context(), w.registrar(t)); err != nil {
		t.Errorf("after a death at call %d: %v", n, err)
	}
	return w
}

// TestAccountOfEarlierRelease registers a region again that an earlier release has registered:
// its account gets the rights of this release, once, and nothing is handed over again. If that
// fails, the region stays as it is.
func TestAccountOfEarlierRelease(t *testing.T) {
	applied := []string{"apply Namespace", "apply ServiceAccount", "apply Secret", "update"}
	cases := map[string]struct {
		reason      string
		credentials nf.RegionCredentials
		away        bool // the cluster does not answer
		want        []string
	}{
		"Account": {"the account is applied", nf.AccountCredentials, false, applied},
		"Secret":  {"there is none", nf.SecretCredentials, false, nil},
		"Away":    {"the region has an access that may work", nf.AccountCredentials, true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			r := w.registrar(t)
			p := parent(func(w *nf.WorkloadCluster) { w.Credentials = tc.credentials })
			if err := r.Register(t.Context(), held, p); err != nil {
				t.Fatal(err)
			}
			region := w.regions["edge-1"]
			former := *region.Parent
			former.Account = ""
			if plain := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("admin-1"))); former.Source != plain {
				t.Errorf("the digest of the kubeconfig is %s, want %s as before", former.Source, plain)
			}
			region.Parent = &former
			w.regions["edge-1"], w.calls, w.away = region, nil, tc.away
			for range 2 {
				if err := r.Register(t.Context(), held, p); err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
			}
			if d := cmp.Diff(tc.want, w.calls); d != "" || len(w.sent) != 1 {
				t.Errorf("%s: %d kubeconfigs were handed over; the calls are, -want +got:\n%s", tc.reason, len(w.sent), d)
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
