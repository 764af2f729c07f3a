package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestTenantsCharts brings charts up that are as the well-known ones which have
// objects of two namespaces and cluster-scoped kinds: refused with the grant that
// is missing, one after another, and then as they are.
func TestTenantsCharts(t *testing.T) {
	t.Parallel()
	s := startBareService(t, func(c *Config) {
		c.AccessFile = accesstest.File(t)
	})
	rbac := []string{"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"}
	cases := map[string]struct {
		reason     string
		namespaces []string // of the request; the other charts open theirs
		kinds      []string // that have to be granted
	}{
		"metrics-server":        {reason: "a role in kube-system, and cluster-wide ones", kinds: rbac},
		"kube-prometheus-stack": {reason: "Services in kube-system, a definition that comes first, a hook", kinds: append(rbac, "CustomResourceDefinition.apiextensions.k8s.io")},
		"cert-manager": {reason: "the request opens what the chart does not", namespaces: []string{"kube-system"},
			kinds: append(rbac, "*.apiextensions.k8s.io", "ValidatingWebhookConfiguration.*")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tenantChart{testService: s.with(t), name: name, ns: clustertest.Namespace(t)}
			w.region = w.ns // what is granted is for this test alone
			w.put()
			if len(tc.namespaces) > 0 {
				w.refused(http.StatusBadRequest, "metadata.namespace", "namespaces")
				w.namespaces = tc.namespaces
			}
			w.refused(http.StatusForbidden, "namespaces", `tenants: {a: {namespaces: [\"kube-system\"]}}`)
			w.grant(map[string]any{"namespaces": []string{"kube-system"}})
			w.refused(http.StatusForbidden, "templates/", `tenants: {a: {cluster_kinds: [\"ClusterRole.rbac.authorization.k8s.io\"]}}`)
			w.grant(map[string]any{"cluster_kinds": tc.kinds})
			w.live(tc.reason)
		})
	}
}

// TestServiceAccountOfAProject checks that the cluster is asked as the service
// account that the region names for the project, which here may do nothing.
func TestServiceAccountOfAProject(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   []func(*Config)
		status int
		want   string
	}{
		"access rules":    {"the cluster refuses what the account may not do", []func(*Config){func(c *Config) { c.AccessFile = accesstest.File(t) }}, http.StatusFailedDependency, "system:serviceaccount:kube-system:nobody"},
		"no access rules": {"what regions let projects use counts for nothing", nil, http.StatusCreated, `"vnf_id"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startBareService(t, tc.edit...)
			w := tenantChart{testService: s, name: "metrics-server", ns: clustertest.Namespace(t)}
			w.region = w.ns
			w.put()
			w.grant(map[string]any{"namespaces": []string{"kube-system"}, "cluster_kinds": []string{"*"}, "service_account": "kube-system/nobody"})
			if got := w.want(tc.status, w.create()); !strings.Contains(string(got.body), tc.want) {
				t.Errorf("%s: %s", tc.reason, got.body)
			}
		})
	}
}

// tenantChart is a chart of project a in a region that is for it alone.
type tenantChart struct {
	*testService

	name, ns, region string
	namespaces       []string
}

func (w *tenantChart) as(who, method, path string, body any) answer {
	w.t.Helper()
	return w.send(w.t.Context(), method, path, body, "Authorization", "Bearer "+accesstest.Token(who))
}

// put registers the region and uploads the chart. Definitions outlive it, so that
// its kinds get a group that is this test's alone.
func (w *tenantChart) put() {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "tenants", w.name+".txtar"))
	if err != nil {
		w.t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range txtar.Parse(content).Files {
		files[f.Name] = strings.ReplaceAll(string(f.Data), "monitoring.test", w.ns+".monitoring.test")
	}
	w.want(http.StatusCreated, w.as("admin-all", "POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": w.region, "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(w.t)),
	}))
	w.want(http.StatusCreated, w.as("operator-all", "PUT", "/v1/packages/"+w.name+"?project=a", rendertest.Zip(files)))
}

func (w *tenantChart) grant(entry map[string]any) {
	w.t.Helper()
	w.want(http.StatusOK, w.as("admin-all", "PATCH", "/v1/cloud_regions/"+w.region, map[string]any{"tenants": map[string]any{"a": entry}}))
}

func (w *tenantChart) create() answer {
	w.t.Helper()
	body := map[string]any{"cloud_region_id": w.region, "csar_id": w.name, "project": "a", "namespace": w.ns, "vnf_instance_name": "rel"}
	if w.namespaces != nil {
		body["namespaces"] = w.namespaces
	}
	return w.as("operator-all", "POST", "/v1/vnf_instances", body)
}

// refused asks for the instance, and wants an error that names a field or a file
// and the rule. Nothing may have been touched.
func (w *tenantChart) refused(status int, parts ...string) {
	w.t.Helper()
	got := w.want(status, w.create())
	for _, part := range parts {
		if !strings.Contains(string(got.body), part) {
			w.t.Errorf("the refusal does not say %s: %s", part, got.body)
		}
	}
	if left := w.objects(); len(left) > 0 {
		w.t.Errorf("refused, and yet there are %v", left)
	}
}

// objects returns the objects of the region that are the test's.
func (w *tenantChart) objects() []string {
	w.t.Helper()
	return slices.DeleteFunc(clustertest.Objects(w.t, w.ns, "kube-system"), func(key string) bool { return !strings.Contains(key, w.ns) })
}

// live brings the chart up and removes it.
func (w *tenantChart) live(reason string) {
	w.t.Helper()
	up := w.want(http.StatusCreated, w.create())
	op := w.as("operator-all", "GET", "/v1/operations/"+up.text(w.t, "operation_id")+"/events", nil)
	w.want(http.StatusOK, op)
	path := "/v1/vnf_instances/" + up.text(w.t, "vnf_id")
	ready := w.want(http.StatusOK, w.as("operator-all", "GET", path, nil))
	if state, healthy := ready.text(w.t, "state"), ready.field(w.t, "healthy"); state != "ready" || healthy != true {
		w.t.Fatalf("%s: it is %s, healthy %v: %s", reason, state, healthy, ready.body)
	}
	places := map[string]bool{}
	objects, _ := ready.field(w.t, "objects").([]any)
	for _, o := range objects {
		object, _ := o.(map[string]any)
		namespace, _ := object["namespace"].(string)
		places[namespace] = true
	}
	for _, place := range []string{w.ns, "kube-system", ""} {
		if !places[place] {
			w.t.Errorf("%s: there is no object in namespace %q: %s", reason, place, ready.body)
		}
	}
	gone := w.as("operator-all", "DELETE", path, nil)
	w.want(http.StatusNoContent, gone)
	left := slices.DeleteFunc(w.objects(), func(key string) bool { return strings.HasPrefix(key, "customresourcedefinitions.") })
	if len(left) > 0 {
		w.t.Errorf("%s: it has left %v", reason, left)
	}
}
