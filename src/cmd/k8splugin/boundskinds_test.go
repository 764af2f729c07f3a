package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// kindsWorld is a service with access rules, and a region without grants.
type kindsWorld struct {
	*testService

	ns string
}

func newKindsWorld(t *testing.T, edit ...func(*Config)) kindsWorld {
	t.Helper()
	w := kindsWorld{startBareService(t, edit...), clustertest.Namespace(t)}
	w.want(http.StatusCreated, w.as("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "east", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	return w
}

func (w kindsWorld) as(method, path string, body any) answer {
	w.t.Helper()
	return w.send(w.t.Context(), method, path, body, "Authorization", "Bearer "+accesstest.Token("admin-all"))
}

// TestEveryKindIsBounded asks for an object of every kind that an API server
// serves: of those without a namespace, and of the others in a namespace that is
// not the instance's.
func TestEveryKindIsBounded(t *testing.T) {
	t.Parallel()
	w := newKindsWorld(t, func(c *Config) { c.AccessFile = accesstest.File(t) })
	wide, placed := &strings.Builder{}, &strings.Builder{}
	count := map[bool]int{}
	for _, k := range clustertest.Kinds(t) {
		if !k.Creatable || k.Kind == "Namespace" { // an instance may have its own
			continue
		}
		count[k.Namespaced]++
		if k.Namespaced {
			fmt.Fprintf(placed, "---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: kube-system}\n", k.APIVersion, k.Kind, w.ns)
		} else {
			fmt.Fprintf(wide, "---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", k.APIVersion, k.Kind, w.ns)
		}
	}
	if count[true] < 20 || count[false] < 15 {
		t.Fatalf("the sandbox serves %v kinds", count)
	}
	cases := map[string]struct {
		reason     string
		objects    fmt.Stringer
		namespaces []string
		status     int
		field      string
		violations int
	}{
		"Cluster-scoped": {"no cluster-scoped kind is granted", wide, nil, http.StatusForbidden, w.ns, count[false]},
		"Not opened":     {"no kind may be in a namespace that is not opened", placed, nil, http.StatusBadRequest, "metadata.namespace", count[true]},
		"Opened":         {"nor in one that is opened and not granted", placed, []string{"kube-system"}, http.StatusForbidden, "namespaces", 1},
	}
	for name, tc := range cases {
		id := strings.ReplaceAll(strings.ToLower(name), " ", "-")
		w.want(http.StatusCreated, w.as("PUT", "/v1/packages/"+id, rendertest.Zip(map[string]string{
			"metadata.yaml": "resources:\n- manifest: all.yaml\n", "all.yaml": tc.objects.String(),
		})))
		got := w.as("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "east", "csar_id": id, "namespace": w.ns, "namespaces": append([]string{}, tc.namespaces...)})
		var problem struct{ Errors []nf.Violation }
		if err := json.Unmarshal(got.body, &problem); err != nil {
			t.Fatal(err)
		}
		if got.status != tc.status || len(problem.Errors) != tc.violations {
			t.Errorf("%s: %s: %d with %d errors, want %d with %d: %s", name, tc.reason, got.status, len(problem.Errors), tc.status, tc.violations, got.body)
		}
		for _, v := range problem.Errors {
			if !strings.HasSuffix(v.Field, tc.field) {
				t.Errorf("%s: an error names the field %q, want %q", name, v.Field, tc.field)
			}
		}
	}
}

// TestLookupsOfEveryKind has a chart look for every kind that an API server
// serves. A project that is granted nothing finds nothing of others; without access
// rules the same chart finds what there is.
func TestLookupsOfEveryKind(t *testing.T) {
	t.Parallel()
	// Other tests serve many kinds: all their definitions together are too large for a chart.
	kinds := slices.DeleteFunc(clustertest.Kinds(t), func(k clustertest.Kind) bool { return k.Kind == "CustomResourceDefinition" })
	values, err := json.Marshal(map[string]any{"kinds": kinds})
	if err != nil {
		t.Fatal(err)
	}
	chart := rendertest.Zip(map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: spy\nversion: 1.0.0\n", "values.yaml": string(values),
		"templates/found.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: found}\ndata:\n" +
			`{{- range $kind := .Values.kinds }}
{{- range $namespace := ternary (list "" "kube-system" "default") (list "") $kind.Namespaced }}
{{- with (lookup $kind.APIVersion $kind.Kind $namespace "").items }}
  {{ printf "%s.%s.%s" ($kind.APIVersion | replace "/" "_") $kind.Kind $namespace }}: "{{ len . }}"
{{- end }}{{- end }}{{- end }}
`})
	find := func(t *testing.T, edit ...func(*Config)) map[string]string {
		t.Helper()
		w := newKindsWorld(t, edit...)
		w.want(http.StatusCreated, w.as("PUT", "/v1/packages/spy", chart))
		w.want(http.StatusCreated, w.as("POST", "/v1/vnf_instances", map[string]any{
			"cloud_region_id": "east", "csar_id": "spy", "namespace": w.ns, "wait": "applied",
			"project": w.ns, // other tests have namespaces of the usual ones
		}))
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		made.SetNamespace(w.ns)
		made.SetName("found")
		found, _, err := unstructured.NestedStringMap(clustertest.Get(t, made).Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := find(t); len(found) < 10 {
		t.Errorf("without access rules the chart finds only %v", found)
	}
	if found := find(t, func(c *Config) { c.AccessFile = accesstest.File(t) }); len(found) > 0 {
		t.Errorf("the chart finds what is others': %v", found)
	}
}
