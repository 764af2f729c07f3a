package main

import (
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestInstallOurselves lets the service instantiate its own Helm chart: the chart
// is a package like any other.
func TestInstallOurselves(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.want(http.StatusCreated, s.do("PUT", "/v1/packages/k8splugin", rendertest.Zip(ownChart(t))))
	ns := clustertest.Namespace(t)
	before := clustertest.Objects(t, ns)
	values := map[string]any{
		"image": map[string]any{"repository": "sandbox.invalid/k8splugin"},
		"keys":  map[string]any{"generate": true}, "access": map[string]any{"insecureNoAuth": true},
		"store": map[string]any{"persistence": map[string]any{"enabled": false}},
	}
	refused := s.want(http.StatusBadRequest, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "k8splugin", "namespace": ns, "release": "site"}))
	if !strings.Contains(string(refused.body), "keys.existingSecret") {
		t.Errorf("what the chart itself says of its values is not told: %s", refused.body)
	}
	made := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "k8splugin", "namespace": ns, "release": "site", "parameters": values,
	}))
	vnf := made.header.Get("Location")
	h := s.held(made, ns)
	h.is("brought up", vnf, map[string]int64{"StatefulSet/site-k8splugin": 1}, "ConfigMap/site-k8splugin", "NetworkPolicy/site-k8splugin", "Service/site-k8splugin", "ServiceAccount/site-k8splugin")

	changed := s.want(http.StatusOK, s.do("PATCH", vnf, map[string]any{"parameters": map[string]any{
		"settings": map[string]any{"log-level": "debug"}, "networkPolicy": map[string]any{"enabled": false},
		"service": map[string]any{"type": "NodePort"},
	}}))
	h = s.held(changed, ns)
	h.is("changed", vnf, map[string]int64{"StatefulSet/site-k8splugin": 2}, "ConfigMap/site-k8splugin", "Service/site-k8splugin", "ServiceAccount/site-k8splugin")
	if got, _, _ := unstructured.NestedString(h.get("v1", "ConfigMap").Object, "data", "config.yaml"); !strings.Contains(got, "debug") {
		t.Errorf("the settings are %q", got)
	}
	if got, _, _ := unstructured.NestedString(h.get("v1", "Service").Object, "spec", "type"); got != "NodePort" {
		t.Errorf("the Service is a %s", got)
	}
	s.want(http.StatusNoContent, s.do("DELETE", vnf, nil))
	if diff := cmp.Diff(before, clustertest.Objects(t, ns)); diff != "" {
		t.Errorf("what is left of it (-before +after)\n%s", diff)
	}
}

// ownChart reads the chart of the service.
func ownChart(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(chartFolder)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		files["k8splugin/"+path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// held is what an instance of our own chart contains.
type held struct {
	*testService
	ns string
}

// held waits for the operation that a response names.
func (s *testService) held(a answer, ns string) held {
	s.t.Helper()
	if op := s.operation(a.text(s.t, "operation_id")); op.text(s.t, "state") != "succeeded" {
		s.t.Fatalf("the operation is %s", op.body)
	}
	return held{s, ns}
}

func (h held) get(apiVersion, kind string) *unstructured.Unstructured {
	h.t.Helper()
	got := clustertest.Get(h.t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": h.ns, "name": "site-k8splugin"},
	}})
	if got == nil {
		h.t.Fatalf("there is no %s", kind)
	}
	return got
}

// is compares the instance's objects with those that are wanted: workloads by
// their generations, and others. All must be healthy.
func (h held) is(when, vnf string, workloads map[string]int64, others ...string) {
	h.t.Helper()
	in := h.want(http.StatusOK, h.do("GET", vnf, nil))
	if in.field(h.t, "healthy") != true || in.text(h.t, "state") != "ready" {
		h.t.Errorf("%s: the instance is %s", when, in.body)
	}
	var got []string
	for _, o := range in.field(h.t, "objects").([]any) {
		object := o.(map[string]any)
		got = append(got, object["kind"].(string)+"/"+object["name"].(string))
	}
	want := slices.Clone(others)
	for name, generation := range workloads {
		want = append(want, name)
		kind, _, _ := strings.Cut(name, "/")
		if got := h.get("apps/v1", kind).GetGeneration(); got != generation {
			h.t.Errorf("%s: %s is of generation %d, want %d", when, name, got, generation)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("%s: the objects (-want +got)\n%s", when, diff)
	}
}
