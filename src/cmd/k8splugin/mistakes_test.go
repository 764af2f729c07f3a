package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

const mistakeWeb = `# web
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports:
  - port: 80
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        # the image
        image: ` + goodImage + `
`

// TestMistakesInPackages makes the mistakes that only the kinds of a region show, in
// every request that could carry them out.
func TestMistakesInPackages(t *testing.T) {
	t.Parallel()
	s := startService(t)
	ns, live := clustertest.Namespace(t), clustertest.Namespace(t)
	files := func(edit ...string) map[string]string {
		return map[string]string{
			"metadata.yaml": "resources:\n- configmap: [settings.yaml]\n- manifest: [web.yaml]\n",
			"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: \"" + strings.Join(edit, "") + "\"}\n",
			"web.yaml":      strings.NewReplacer(edit...).Replace(mistakeWeb),
		}
	}
	s.upload("good", files())
	up := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "good", "namespace": live}))
	s.operation(up.text(t, "operation_id"))
	instance := "/v1/vnf_instances/" + up.text(t, "vnf_id")
	requests := map[string]struct {
		namespace, method, path string
	}{
		"Create":  {ns, "POST", "/v1/vnf_instances"},
		"Dry run": {ns, "POST", "/v1/vnf_instances?dry_run=true"},
		"Upgrade": {live, "PATCH", instance},
	}
	cases := map[string]struct {
		reason  string
		edit    []string
		object  string // its kind, and its name behind the namespace
		line    int
		field   string
		message string
	}{
		"Field":    {"a misspelt field", []string{"image:", "imagee:"}, "Deployment web", 26, "spec.template.spec.containers[0].imagee", `unknown field "imagee" (did you mean "image"?)`},
		"Replicas": {"a negative number", []string{"replicas: 1", "replicas: -1"}, "Deployment web", 18, "spec.replicas", "must be at least 0, got -1"},
		"Name":     {"a name that no Deployment can have", []string{"name: web\n  labels", "name: Web_1\n  labels"}, "Deployment Web_1", 14, "metadata.name", ""},
		"Label":    {"a label that has no such value", []string{"name: web\nspec:\n  replicas", "name: a b\nspec:\n  replicas"}, "Deployment web", 16, "metadata.labels[app.kubernetes.io/name]", ""},
	}
	for name, tc := range cases {
		id := strings.ToLower(name)
		s.upload(id, files(tc.edit...))
		for title, r := range requests {
			t.Run(name+"/"+title, func(t *testing.T) {
				s := s.with(t)
				before := touched{s.records(), clustertest.Objects(t, ns, live), generations(t, live)}
				body := map[string]any{"csar_id": id}
				if r.method == "POST" {
					body = map[string]any{"cloud_region_id": "sandbox", "csar_id": id, "namespace": r.namespace}
				}
				got := s.want(http.StatusBadRequest, s.do(r.method, r.path, body))
				var problem struct{ Errors []mistake }
				if err := json.Unmarshal(got.body, &problem); err != nil {
					t.Fatalf("%s: %v %s", tc.reason, err, got.body)
				}
				kind, object, _ := strings.Cut(tc.object, " ")
				want := mistake{kind + " " + r.namespace + "/" + object + ": " + tc.field, "web.yaml", tc.line, tc.message}
				for i := range problem.Errors {
					if tc.message == "" { // in the words of Kubernetes
						problem.Errors[i].Message = ""
					}
				}
				if !slices.Contains(problem.Errors, want) {
					t.Errorf("%s: no %+v in %s", tc.reason, want, got.body)
				}
				after := touched{s.records(), clustertest.Objects(t, ns, live), generations(t, live)}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s: it is refused, and yet something has changed (-before +after):\n%s", tc.reason, diff)
				}
			})
		}
	}
	s.want(http.StatusNoContent, s.do("DELETE", instance, nil))
}

// mistake is one of the errors of an answer.
type mistake struct {
	Field, File string
	Line        int
	Message     string
}

// touched is what a request that is refused leaves as it was.
type touched struct {
	Records     map[string]string
	Objects     []string
	Generations map[string]any
}

// generations returns what changes with an object's content, and not with its status.
func generations(t *testing.T, namespace string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for kind, field := range map[string]string{"apps/v1 Deployment web": "generation", "v1 ConfigMap settings": "resourceVersion"} {
		words := strings.Fields(kind)
		of := &unstructured.Unstructured{}
		of.SetAPIVersion(words[0])
		of.SetKind(words[1])
		of.SetNamespace(namespace)
		of.SetName(words[2])
		metadata, _ := clustertest.Get(t, of).Object["metadata"].(map[string]any)
		out[kind] = metadata[field]
	}
	return out
}
