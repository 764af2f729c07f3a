package cluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestPreflightKeepsWithinTheBounds(t *testing.T) {
	c, ns := sandbox(t)
	const (
		own     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
		further = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`
		role    = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: preflight-bounds}}`
		volume  = `{apiVersion: v1, kind: PersistentVolume, metadata: {name: preflight-bounds}}`
		space   = `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system-2}}`
	)
	granted := nf.Tenancy{Region: "east", Project: "a", ClusterKinds: []string{"ClusterRole.rbac.authorization.k8s.io"}}
	cases := map[string]struct {
		reason  string
		bounds  nf.Bounds
		objects string
		want    nf.Kind // Internal: none
		fields  []string
	}{
		"not opened": {
			reason: "a namespace that nothing opens is a mistake", bounds: nf.Bounds{Namespace: ns, Tenancy: granted}, objects: further,
			want: nf.Invalid, fields: []string{"ConfigMap a: metadata.namespace"},
		},
		"opened": {
			reason: "one that is opened is as good as the instance's own", bounds: nf.Bounds{Namespace: ns, Further: []string{"kube-system"}, Tenancy: granted},
			objects: own + "\n---\n" + further,
		},
		"a namespace itself": {
			reason: "others may live there", bounds: nf.Bounds{Namespace: ns, Tenancy: nf.Tenancy{Whole: true}}, objects: space,
			want: nf.Invalid, fields: []string{"Namespace kube-system-2"},
		},
		"an opened namespace itself": {
			reason: "it is the instance's to make, whatever kinds it is granted", objects: space,
			bounds: nf.Bounds{Namespace: ns, Further: []string{"kube-system-2"}, Tenancy: granted},
		},
		"kinds": {
			reason: "a cluster-scoped kind takes a grant", bounds: nf.Bounds{Namespace: ns, Tenancy: granted}, objects: own + "\n---\n" + role + "\n---\n" + volume,
			want: nf.Forbidden, fields: []string{"PersistentVolume preflight-bounds"},
		},
		"a kind to come": {
			reason: "a kind of a definition among the objects takes one, too", bounds: nf.Bounds{Namespace: ns, Tenancy: granted},
			objects: definition("bounds.test", "Cluster"),
			want:    nf.Forbidden, fields: []string{"CustomResourceDefinition gizmos.bounds.test", "Gizmo g"},
		},
		"nobody's": {
			reason: "the kind of a shared object is checked, too", bounds: nf.Bounds{Namespace: ns, Tenancy: granted}, objects: volume,
			want: nf.Forbidden, fields: []string{"PersistentVolume preflight-bounds"},
		},
		"whole": {
			reason: "without tenants every kind is granted", bounds: inside(ns), objects: role + "\n---\n" + volume,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := objects(t, "vnf-1", "", tc.objects)
			if name == "nobody's" {
				wanted = []*unstructured.Unstructured{unlabelled(wanted[0])}
			}
			_, err := c.Preflight(t.Context(), instance("vnf-1"), tc.bounds, wanted)
			_, adopting := c.PreflightAdopt(t.Context(), instance("vnf-1"), tc.bounds, nf.AdoptionSelector{}, wanted)
			for verb, err := range map[string]error{
				"preflight": err,
				"adopt":     adopting,
			} {
				if tc.fields == nil {
					if err != nil {
						t.Errorf("%s: %s: %v", verb, tc.reason, err)
					}
					continue
				}
				wantKind(t, err, tc.want)
				if want := map[nf.Kind]string{nf.Forbidden: nf.ReasonTenant}[tc.want]; nf.ReasonOf(err) != want {
					t.Errorf("%s: reason is %q, want %q", verb, nf.ReasonOf(err), want)
				}
				var fields []string
				for _, v := range nf.ViolationsOf(err) {
					fields = append(fields, fieldIn(v))
				}
				diff(t, verb+": "+tc.reason, tc.fields, fields)
			}
		})
	}
}

func TestScope(t *testing.T) {
	c := openAt(t, clustertest.Kubeconfig(t))
	for ref, want := range map[nf.Ref][2]bool{
		{Version: "v1", Kind: "Secret"}:                {true, true},
		{Version: "v1", Kind: "Node"}:                  {false, true},
		{Version: "v1", Kind: "Gizmo"}:                 {false, false},
		{Version: "v9", Kind: "Secret"}:                {false, false},
		{Version: "v1", Kind: "ConfigMap"}:             {true, true},
		{Group: "apps", Version: "v1", Kind: "Secret"}: {false, false},
	} {
		namespaced, served, err := c.Scope(t.Context(), ref)
		if got := [2]bool{namespaced, served}; got != want || err != nil {
			t.Errorf("%s: namespaced, served = %v, %v; want %v", ref.Kind, got, err, want)
		}
	}
}

// asProject returns the cluster as used by a service account that may do all with
// ConfigMaps in one namespace, and nothing else.
func asProject(t *testing.T, c *Cluster, ns string) *Cluster {
	t.Helper()
	mustApply(t, c, "admin", objects(t, "admin", ns, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: project}
rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: project}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: project}
subjects: [{kind: ServiceAccount, name: project, namespace: `+ns+`}]
`)...)
	as, list := c.As(ns+"/project"), nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns}
	_, err := as.Lookup(t.Context(), list)
	for ; nf.ReasonOf(err) == nf.ReasonForbidden; _, err = as.Lookup(t.Context(), list) {
		<-time.After(10 * time.Millisecond) // the API server applies a new grant a moment later
	}
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// TestActsAsServiceAccount has the API server itself keep a project to what its
// service account may.
func TestActsAsServiceAccount(t *testing.T) {
	c, ns := sandbox(t)
	_, other := sandbox(t)
	const vnf = "vnf-1"
	as := asProject(t, c, ns)
	mine := configMap(t, vnf, ns, "mine", "1")
	if _, err := as.Preflight(t.Context(), instance(vnf), inside(ns), []*unstructured.Unstructured{mine}); err != nil {
		t.Fatalf("it reads what the service account may read: %v", err)
	}
	made := mustApply(t, as, vnf, mine)
	await(t.Context(), t, as, vnf, made, nf.Current)

	for reason, u := range map[string]*unstructured.Unstructured{
		"another kind":      objects(t, vnf, ns, `{apiVersion: v1, kind: Secret, metadata: {name: mine}}`)[0],
		"another namespace": configMap(t, vnf, other, "mine", "1"),
	} {
		_, err := as.Apply(t.Context(), instance(vnf), []*unstructured.Unstructured{u})
		wantKind(t, err, nf.Failed)
		if nf.ReasonOf(err) != "forbidden" {
			t.Errorf("%s: reason is %q, want forbidden: %v", reason, nf.ReasonOf(err), err)
		}
		mustApply(t, c, vnf, u) // which the service itself may
	}
	if _, err := as.Lookup(t.Context(), nf.Ref{Version: "v1", Kind: "Secret", Namespace: ns, Name: "mine"}); nf.ReasonOf(err) != "forbidden" {
		t.Errorf("a template reads no more than the service account may: %v", err)
	}

	// The service manages namespaces with its own identity, so service accounts
	// need no rights on them.
	next := clustertest.Namespace(t)
	if is, err := as.EnsureNamespace(t.Context(), next, "a"); err != nil || is.Project != "a" {
		t.Errorf("EnsureNamespace: %+v, %v", is, err)
	}
	if _, err := as.Namespaces(t.Context(), []string{next, ns}); err != nil {
		t.Errorf("Namespaces: %v", err)
	}
	if kept, err := as.RemoveNamespace(t.Context(), next); err != nil || len(kept) > 0 {
		t.Errorf("RemoveNamespace: %v, %v", kept, err)
	}
	if _, err := as.Delete(t.Context(), instance(vnf), refs(mine)); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if c.As("") != c {
		t.Error("without a service account the service acts as itself")
	}
}

// TestLookupKeepsToItsKind looks for names that lead elsewhere when they are
// joined to a path.
func TestLookupKeepsToItsKind(t *testing.T) {
	t.Parallel()
	c, _ := sandbox(t)
	cases := map[string]struct {
		reason string
		ref    nf.Ref
	}{
		"Name":        {"a name that leads to another kind in another namespace", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "../../kube-system/configmaps/kube-root-ca.crt"}},
		"Namespace":   {"a namespace that leads to another", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "x/../kube-system", Name: "kube-root-ca.crt"}},
		"List":        {"a list of another namespace", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "x/../kube-system"}},
		"Up":          {"a name that is a way up", nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: ".."}},
		"Subresource": {"a name that goes on", nf.Ref{Version: "v1", Kind: "Namespace", Name: "default/status"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := c.Lookup(t.Context(), tc.ref)
			if nf.KindOf(err) != nf.Invalid || found != nil {
				t.Errorf("%s: %v, %v", tc.reason, found["kind"], err)
			}
		})
	}
	if live, err := c.Namespaces(t.Context(), []string{"x/../kube-system"}); len(live) > 0 || err != nil {
		t.Errorf("a namespace that leads to another: %v, %v", live, err)
	}
}
