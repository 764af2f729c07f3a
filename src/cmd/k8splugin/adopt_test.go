package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// page is a chart that does not render the same twice.
func page() map[string]string {
	return map[string]string{
		"page/Chart.yaml":  "apiVersion: v2\nname: page\nversion: 1.0.0\n",
		"page/values.yaml": "greeting: hello\nimage: " + goodImage + "\n",
		"page/templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  greeting: {{ .Values.greeting | quote }}
  {{- with .Values.debug }}
  debug: {{ . | quote }}
  {{- end }}
`,
		"page/templates/secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\ndata: {password: {{ randAlphaNum 20 | b64enc }}}\n",
		"page/templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}\n",
		"page/templates/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 2
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: main
        image: {{ .Values.image }}
        env:
        - {name: GREETING, value: {{ .Values.greeting | quote }}}
        {{- with .Values.debug }}
        - {name: DEBUG, value: {{ . | quote }}}
        {{- end }}
`,
		"page/templates/hooks.yaml": job("warm", "post-install,post-upgrade") + "---\n" + job("try", "test"),
	}
}

// job is a hook that Helm leaves where it was when it has run.
func job(name, events string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-%s", annotations: {helm.sh/hook: %q}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: %q}]}}}
`, name, events, goodImage)
}

// adoption is a release and what is made of it.
type adoption struct {
	*testService
	*releases
}

// kinds are those of the release's objects, which all have its name.
func kinds() []string { return []string{"ConfigMap", "Deployment", "Secret", "Service"} }

// state is what must not change: each object as it is, but for whose it is, and
// the pods.
func (a adoption) state() map[string]any {
	a.releases.t.Helper()
	out := map[string]any{"pods": a.pods("page")}
	for _, kind := range append(kinds(), "Job") {
		name := "page"
		if kind == "Job" {
			name = "page-warm"
		}
		o := a.get(kind, name)
		out[kind+" generation"] = o.GetGeneration() // the rest is compared as it is written
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		labels := o.GetLabels()
		delete(labels, nf.OwnerLabel)
		o.SetLabels(labels)
		unstructured.RemoveNestedField(o.Object, "status")
		out[kind] = o.Object
	}
	record := a.get("Secret", recordName("page", 1))
	out["record"] = record.GetResourceVersion()
	return out
}

// done waits for the operation that a response names.
func (a adoption) done(got answer) {
	a.releases.t.Helper()
	op := a.operation(got.text(a.releases.t, "operation_id"))
	if op.text(a.releases.t, "state") != "succeeded" {
		a.releases.t.Fatalf("the operation is %s", op.body)
	}
}

// adopt asks for the release, with other fields where they are given.
func (a adoption) adopt(edit map[string]any) answer {
	a.releases.t.Helper()
	body := map[string]any{"cloud_region_id": "sandbox", "csar_id": "page", "namespace": a.ns, "release": "page"}
	maps.Copy(body, edit)
	return a.do("POST", "/v1/vnf_instances/adopt", body)
}

func newAdoption(t *testing.T, s *testService, serverSide bool) adoption {
	t.Helper()
	a := adoption{s.with(t), newReleases(t)}
	a.install("page", page(), "greeting: good morning\ndebug: loud\n", serverSide)
	return a
}

// TestAdoptRelease makes instances of releases, which goes unnoticed by what
// runs, and takes them through the rest of their lives.
func TestAdoptRelease(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("page", page())
	for name, serverSide := range map[string]bool{"ServerSide": true, "ClientSide": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newAdoption(t, s, serverSide).live(t)
		})
	}
}

func (a adoption) live(t *testing.T) {
	before := a.state()
	there := clustertest.Objects(t, a.ns)
	made := a.want(http.StatusCreated, a.adopt(nil))
	vnf := made.header.Get("Location")
	if got := string(made.body); !strings.Contains(got, `"greeting":"good morning"`) || !strings.Contains(got, `"release":"page"`) {
		t.Errorf("the answer does not say what was released: %s", got)
	}
	a.done(made)
	if diff := cmp.Diff(before, a.state()); diff != "" {
		t.Fatalf("adoption changed what runs (-before +after)\n%s", diff)
	}
	for _, kind := range kinds() {
		if got := a.get(kind, "page").GetLabels()[nf.OwnerLabel]; "/v1/vnf_instances/"+got != vnf {
			t.Errorf("the %s belongs to %q", kind, got)
		}
	}
	if got := a.want(http.StatusOK, a.do("GET", vnf, nil)); got.field(t, "healthy") != true || got.field(t, "state") != "ready" {
		t.Errorf("the instance is %s", got.body)
	}
	a.want(http.StatusConflict, a.adopt(nil)) // it already has an owner
	if got := a.want(http.StatusOK, a.do("POST", vnf+"/tests", nil)); got.field(t, "passed") != true {
		t.Errorf("its tests: %s", got.body)
	}

	a.done(a.want(http.StatusOK, a.do("PATCH", vnf, map[string]any{"parameters": map[string]any{"greeting": "hi", "debug": nil}})))
	a.says(map[string]any{"greeting": "hi"}, []any{map[string]any{"name": "GREETING", "value": "hi"}})
	if diff := cmp.Diff(before["record"], a.state()["record"]); diff != "" {
		t.Errorf("Helm's record was touched: %s", diff)
	}
	a.done(a.want(http.StatusOK, a.do("POST", vnf+"/rollback", map[string]any{"revision": 1})))
	a.says(map[string]any{"greeting": "good morning", "debug": "loud"}, []any{map[string]any{"name": "GREETING", "value": "good morning"}, map[string]any{"name": "DEBUG", "value": "loud"}})
	was, _ := before["Secret"].(map[string]any)
	if diff := cmp.Diff(was["data"], a.get("Secret", "page").Object["data"]); diff != "" {
		t.Errorf("what was random is another than was released (-want +got)\n%s", diff)
	}

	a.want(http.StatusNoContent, a.do("DELETE", vnf, nil))
	var left []string
	for _, key := range clustertest.Objects(t, a.ns) {
		if slices.Contains(there, key) && strings.Contains(key, "/page") {
			left = append(left, key)
		}
	}
	if len(left) > 0 {
		t.Errorf("these outlive the instance: %q", left)
	}
	if diff := cmp.Diff(before["record"], a.get("Secret", recordName("page", 1)).GetResourceVersion()); diff != "" {
		t.Errorf("Helm's record was touched: %s", diff)
	}
}

// TestAdoptAndRemove removes what it has adopted and never changed: everything
// that was released goes, and what a hook has left.
func TestAdoptAndRemove(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("page", page())
	a := adoption{s, newReleases(t)}
	before := clustertest.Objects(t, a.ns)
	a.install("page", page(), "{}\n", true)
	made := a.want(http.StatusCreated, a.adopt(nil))
	a.done(made)
	a.want(http.StatusNoContent, a.do("DELETE", made.header.Get("Location"), nil))
	after := slices.DeleteFunc(clustertest.Objects(t, a.ns), func(key string) bool {
		return !strings.Contains(key, "/page") || slices.Contains(before, key)
	})
	if len(after) > 0 {
		t.Errorf("these are left: %q", after)
	}
	a.get("Secret", recordName("page", 1)) // the operator's to remove
}

// says compares what depends on values with what is there.
func (a adoption) says(data map[string]any, env []any) {
	a.releases.t.Helper()
	if diff := cmp.Diff(data, a.get("ConfigMap", "page").Object["data"]); diff != "" {
		a.releases.t.Errorf("the ConfigMap (-want +got)\n%s", diff)
	}
	containers, _, err := unstructured.NestedSlice(a.get("Deployment", "page").Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		a.releases.t.Fatalf("the Deployment has the containers %v", containers)
	}
	main, _ := containers[0].(map[string]any)
	if diff := cmp.Diff(env, main["env"]); diff != "" {
		a.releases.t.Errorf("the Deployment (-want +got)\n%s", diff)
	}
}

// TestAdoptRefuses asks for what cannot be adopted, and touches nothing.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("page", page())
	other := page()
	other["page/Chart.yaml"] = "apiVersion: v2\nname: leaf\nversion: 1.0.0\n"
	s.upload("leaf", other)
	s.want(http.StatusCreated, s.do("PUT", "/v1/packages/plain", rendertest.Zip(map[string]string{"metadata.yaml": "resources:\n- deployment: [web.yaml]\n", "web.yaml": deployment("web", goodImage)})))
	a := newAdoption(t, s, true)
	before := a.state()
	cases := map[string]struct {
		reason string
		edit   map[string]any
		status int
		says   string
	}{
		"NoRelease":  {"there is no such release", map[string]any{"release": "leaf"}, http.StatusNotFound, "release leaf"},
		"NoPackage":  {"nor such a package", map[string]any{"csar_id": "none"}, http.StatusNotFound, "none"},
		"NoRegion":   {"nor such a region", map[string]any{"cloud_region_id": "none"}, http.StatusNotFound, "none"},
		"OtherChart": {"it is of another chart", map[string]any{"csar_id": "leaf"}, http.StatusConflict, "leaf"},
		"NoChart":    {"manifests have no releases", map[string]any{"csar_id": "plain"}, http.StatusUnprocessableEntity, "manifest"},
	}
	for name, tc := range cases {
		got := a.adopt(tc.edit)
		if got.status != tc.status || !strings.Contains(string(got.body), tc.says) {
			t.Errorf("%s: %s: %d %s", name, tc.reason, got.status, got.body)
		}
	}
	a.upgrading("page")
	got := a.want(http.StatusConflict, a.adopt(nil))
	if !strings.Contains(got.text(t, "detail"), "pending-upgrade") {
		t.Errorf("it does not say why: %s", got.body)
	}
	if diff := cmp.Diff(before, a.state()); diff != "" {
		t.Errorf("a refusal changed what runs (-before +after)\n%s", diff)
	}
	var list struct {
		Instances []json.RawMessage `json:"vnf_instances"`
	}
	if err := json.Unmarshal(a.do("GET", "/v1/vnf_instances", nil).body, &list); err != nil || len(list.Instances) > 0 {
		t.Errorf("a refusal left %s (%v)", list.Instances, err)
	}
}
