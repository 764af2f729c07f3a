package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// web is a package of three stages whose last Deployment has the given image.
func web(image string) map[string]string {
	return map[string]string{
		"metadata.yaml": "resources:\n- configmap: [settings.yaml]\n- deployment: [db.yaml]\n  service: [db-service.yaml]\n- deployment: [web.yaml]\n",
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {who: $vnf_name}\n",
		"db.yaml":       deployment("db", "example.invalid/db:1"),
		"db-service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec:\n  selector: {app: db}\n" +
			"  ports: [{port: 5432}]\n",
		"web.yaml": deployment("web", image),
	}
}

func deployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: ${replicas:-1}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: %[2]q}]}
`, name, image)
}

const goodImage = "example.invalid/web:1"

func TestLateFailureIsUndoneCompletely(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	recorder := clustertest.NewRecorder(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(recorder.Kubeconfig()),
	}))
	s.upload("web", web("sandbox.invalid/no-such-image:1"))
	ns := clustertest.Namespace(t)
	before := clustertest.Objects(t, ns)
	keys := s.keys()

	got := s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns})
	// The last stage was applied, so the client has its 201; the pull fails later.
	s.want(http.StatusCreated, got)
	op := s.operation(got.text(t, "operation_id"))
	if state, message := op.text(t, "state"), op.text(t, "failure.message"); state != "failed" ||
		!strings.Contains(message, "ImagePull") || !strings.Contains(message, "web.yaml:1") {
		t.Errorf("operation: %s: %s", state, message)
	}
	if diff := cmp.Diff(before, clustertest.Objects(t, ns)); diff != "" {
		t.Errorf("the undo left something (-before +after):\n%s", diff)
	}
	left := slices.DeleteFunc(s.keys(), func(key string) bool {
		return ofOperation(key) || slices.Contains(keys, key)
	})
	if len(left) > 0 {
		t.Errorf("records left behind: %v", left)
	}
	s.want(http.StatusNotFound, s.do("GET", "/v1/vnf_instances/"+got.text(t, "vnf_id"), nil))

	path := regexp.MustCompile(`^(PATCH|DELETE) .*/namespaces/` + ns + `/(configmaps|services|deployments)/([a-z]+)`)
	var order []string
	for _, request := range recorder.Requests() {
		if m := path.FindStringSubmatch(request.String()); m != nil && request.Query.Get("dryRun") == "" { // of a slow server, whose schemas are not there in time
			order = append(order, m[1]+" "+m[2]+"/"+m[3])
		}
	}
	slices.Sort(order[1:3]) // one stage: side by side
	slices.Sort(order[5:7])
	want := []string{
		"PATCH configmaps/settings", "PATCH deployments/db", "PATCH services/db", "PATCH deployments/web",
		"DELETE deployments/web", "DELETE deployments/db", "DELETE services/db", "DELETE configmaps/settings",
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of the requests (-want +got):\n%s", diff)
	}
}

func TestLateFailureIsKeptForInspection(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("web", web("sandbox.invalid/no-such-image:1"))
	ns := clustertest.Namespace(t)
	got := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns, "on_failure": "keep",
	}))
	id := got.text(t, "vnf_id")
	s.operation(got.text(t, "operation_id"))
	in := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id, nil))
	if state, message := in.text(t, "state"), in.text(t, "message"); state != "failed" || !strings.Contains(message, "ImagePull") {
		t.Errorf("instance: %s: %s", state, message)
	}
	statuses := map[string]string{}
	for _, o := range in.field(t, "objects").([]any) {
		object := o.(map[string]any)
		statuses[object["kind"].(string)+"/"+object["name"].(string)] = object["status"].(string)
	}
	want := map[string]string{"ConfigMap/settings": "Current", "Deployment/db": "Current", "Service/db": "Current", "Deployment/web": "Failed"}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	s.replace("web", web(goodImage))
	s.want(http.StatusOK, s.do("PATCH", "/v1/vnf_instances/"+id, map[string]any{"csar_id": "web"}))
	mended := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id, nil))
	s.operation(mended.text(t, "operation_id"))
	if mended = s.do("GET", "/v1/vnf_instances/"+id, nil); mended.text(t, "state") != "ready" {
		t.Errorf("the mended instance: %s", mended.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
}

func TestTenInstancesAtOnce(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("web", web(goodImage))
	var namespaces []string
	for range 10 {
		namespaces = append(namespaces, clustertest.Namespace(t))
	}
	before := clustertest.Objects(t, namespaces...)
	ids := make([]string, len(namespaces))
	var group errgroup.Group
	for i, ns := range namespaces {
		group.Go(func() error {
			got := s.do("POST", "/v1/vnf_instances", map[string]any{
				"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns, "vnf_instance_name": "web", "parameters": map[string]any{"replicas": 2},
			})
			if got.status != http.StatusCreated {
				return fmt.Errorf("namespace %s: status %d: %s", ns, got.status, got.body)
			}
			ids[i] = got.text(t, "vnf_id")
			if op := s.operation(got.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
				return fmt.Errorf("namespace %s: %s", ns, op.body)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if in := s.do("GET", "/v1/vnf_instances/"+id, nil); in.text(t, "state") != "ready" || in.field(t, "healthy") != true {
			t.Errorf("instance %s: %s", id, in.body)
		}
	}
	if len(clustertest.Objects(t, namespaces...)) < len(before)+10*4 {
		t.Error("the comparison does not see the objects")
	}
	s.want(http.StatusConflict, s.do("DELETE", "/v1/cloud_regions/sandbox", nil))
	s.want(http.StatusConflict, s.do("DELETE", "/v1/packages/web", nil))
	for _, id := range ids {
		group.Go(func() error {
			if got := s.do("DELETE", "/v1/vnf_instances/"+id, nil); got.status != http.StatusNoContent {
				return fmt.Errorf("delete %s: status %d: %s", id, got.status, got.body)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, clustertest.Objects(t, namespaces...)); diff != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", diff)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/packages/web", nil))
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/cloud_regions/sandbox", nil))
	for _, key := range s.keys() {
		if !ofOperation(key) {
			t.Errorf("record left behind: %s", key)
		}
	}
}

// ofOperation reports whether a record belongs to an operation, which is kept
// after its end.
func ofOperation(key string) bool {
	return slices.ContainsFunc([]string{"operations/", "operationsof/", "operationsin/", "changes/"}, func(table string) bool { return strings.HasPrefix(key, table) })
}

func TestBadInputIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("web", web(goodImage))
	s.upload("strict", map[string]string{
		"metadata.yaml": "variables:\n  size: {type: integer, required: true}\nresources:\n- configmap: [a.yaml]\n",
		"a.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  size: \"$size\"\n",
	})
	s.upload("alien", map[string]string{
		"metadata.yaml": "resources:\n- generic: [a.yaml]\n", "a.yaml": "apiVersion: example.org/v1\nkind: Spaceship\nmetadata: {name: a}\n",
	})
	ns, taken := clustertest.Namespace(t), clustertest.Namespace(t)
	first := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": taken}))
	s.operation(first.text(t, "operation_id"))
	closed := closedPort(t)

	instance := func(edit map[string]any) func() answer {
		return func() answer {
			body := map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns}
			maps.Copy(body, edit)
			return s.do("POST", "/v1/vnf_instances", body)
		}
	}
	cases := map[string]struct {
		reason string
		do     func() answer
		status int
		want   []string // parts of the answer
	}{
		"BrokenArchive":   {reason: "a zip that ends too early", do: func() answer { return s.do("POST", "/v1/packages", []byte("PK\x03\x04 and no more")) }, status: 400, want: []string{"archive"}},
		"BadYAML":         {reason: "YAML that does not parse", do: s.uploading(map[string]string{"metadata.yaml": "resources:\n- configmap: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: [\n"}), status: 400, want: []string{`"file":"a.yaml"`, `"line":`}},
		"UnknownKind":     {reason: "a kind that the region does not serve", do: instance(map[string]any{"csar_id": "alien"}), status: 422, want: []string{"Spaceship", `"file":"a.yaml"`, `"line":1`}},
		"MissingVariable": {reason: "a required variable that is not given", do: instance(map[string]any{"csar_id": "strict"}), status: 400, want: []string{`"field":"parameters.size"`, "a.yaml", `"line":6`}},
		"WrongType":       {reason: "a value of another type than declared", do: instance(map[string]any{"csar_id": "strict", "parameters": map[string]any{"size": "big"}}), status: 400, want: []string{`"field":"parameters.size"`, "integer"}},
		"UnknownRegion":   {reason: "a region that is not registered", do: instance(map[string]any{"cloud_region_id": "nowhere"}), status: 404, want: []string{`"field":"cloud_region_id"`, "nowhere"}},
		"UnreachableRegion": {reason: "a region that does not answer", do: func() answer {
			return s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "dark", "kubeconfig": kubeconfigOf(closed)})
		}, status: 502, want: []string{`"reason":"tcp"`}},
		"NameClash":        {reason: "objects of another instance", do: instance(map[string]any{"namespace": taken}), status: 409, want: []string{first.text(t, "vnf_id"), `"field":"Deployment ` + taken + `/db"`, `"file":"db.yaml"`}},
		"OversizedBody":    {reason: "an archive above the limit", do: func() answer { return s.do("POST", "/v1/packages", make([]byte, 1<<20+1)) }, status: 413, want: []string{"large"}},
		"UnknownJSONField": {reason: "a misspelt field", do: instance(map[string]any{"vnf_instance_nam": "x"}), status: 400, want: []string{"vnf_instance_nam"}},
	}
	records, objects := s.records(), clustertest.Objects(t, ns, taken)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.do()
			if got.status != tc.status || got.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: status %d (%s), want %d: %s", tc.reason, got.status, got.header.Get("Content-Type"), tc.status, got.body)
			}
			for _, part := range tc.want {
				if !strings.Contains(string(got.body), part) {
					t.Errorf("%s: no %s in %s", tc.reason, part, got.body)
				}
			}
			if diff := cmp.Diff(records, s.records()); diff != "" {
				t.Errorf("%s: the store has changed (-before +after):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(objects, clustertest.Objects(t, ns, taken)); diff != "" {
				t.Errorf("%s: the cluster has changed (-before +after):\n%s", tc.reason, diff)
			}
		})
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+first.text(t, "vnf_id"), nil))
}

func TestClientThatGoesAwayChangesNothing(t *testing.T) {
	t.Parallel()
	s := startService(t)
	files := web(goodImage)
	files["db.yaml"] = deployment("db", "sandbox.invalid/never-ready:1") // so that the request has to wait
	s.upload("web", files)
	ns := clustertest.Namespace(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan answer, 1)
	go func() {
		gone <- s.send(ctx, "POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "web", "namespace": ns, "on_failure": "keep"})
	}()
	clustertest.WaitForDeployment(t, ns, "db")
	leave()
	if got := <-gone; got.status != 0 {
		t.Fatalf("the client was answered: %d %s", got.status, got.body)
	}
	list := s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances?namespace="+ns, nil))
	in := list.field(t, "vnf_instances").([]any)[0].(map[string]any)
	id, op := in["vnf_id"].(string), in["operation_id"].(string)
	running := s.want(http.StatusOK, s.do("GET", "/v1/operations/"+op, nil))
	if state := running.text(t, "state"); state != "running" {
		t.Fatalf("the operation ended with its client: %s", running.body)
	}
	busy := s.want(http.StatusConflict, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	if !strings.Contains(string(busy.body), op) {
		t.Errorf("the refusal does not name the operation: %s", busy.body)
	}
	clustertest.Unblock(t, ns, "db", goodImage)
	if ended := s.operation(op); ended.text(t, "state") != "succeeded" {
		t.Errorf("the operation's end: %s", ended.body)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
}

// replace replaces a package.
func (s *testService) replace(id string, files map[string]string) {
	s.t.Helper()
	s.want(http.StatusOK, s.do("PUT", "/v1/packages/"+id, archive(files)))
}

func (s *testService) uploading(files map[string]string) func() answer {
	return func() answer { return s.do("POST", "/v1/packages", archive(files)) }
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kubeconfigOf returns a kubeconfig, in base64, for an address.
func kubeconfigOf(address string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s"}}]
users: [{name: u, user: {token: secret-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, address))
}
