package onap_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

func TestCreateInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	asked := w.last().(nf.InstantiateRequest)
	want := nf.InstantiateRequest{
		ID: "id1", Project: nf.DefaultProject, Region: "east", Namespace: "edge",
		Spec: nf.Spec{
			Package: asked.Package, Release: "fw-edge",
			Inputs: nf.Inputs{
				Overrides:   map[string]string{"a.b": "x", "image.tag": "1", "k8s-rb-instance-id": "id1"},
				KubeVersion: "1.31.0", ObjectLabels: map[string]string{"tier": "gold"},
			},
			Annotations: map[string]string{
				"onap/request":              strings.NewReplacer(": ", ":", ", ", ",").Replace(fwRequest),
				"onap/profile":              `{"extra":[{"group":"example.org","version":"v1","kind":"Gizmo"}]}`,
				"onap/generation":           "id2",
				"hook-timeout/pre-install":  "1m0s",
				"hook-timeout/post-install": "10m0s",
				"hook-timeout/pre-upgrade":  "1m0s",
				"hook-timeout/post-upgrade": "10m0s",
				"hook-timeout/pre-delete":   "1m0s",
				"hook-timeout/post-delete":  "10m0s",
			},
			AAI: nf.AAI{Writer: nf.AAIAdapter},
		},
		Options: nf.Options{OnFailure: nf.Undo, NoWait: true, Timeout: 21 * time.Minute},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("the engine is asked for (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(asked.Package, "rb-") {
		t.Errorf("the package is %q", asked.Package)
	}
	if has, err := w.bundles.Has(t.Context(), asked.Package); err != nil || !has {
		t.Errorf("the package is there: %t, %v", has, err)
	}
}

// TestCreateInstanceWhoseHookFails has the response of an instance that is applied, also if its
// first hook has failed before the response.
func TestCreateInstanceWhoseHookFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.failure, w.late = &nf.Failure{Kind: nf.Failed, Step: "x", Message: "exit 1"}, true
	if got := w.ask(t, "POST /v1/instance", fwRequest); got.status != 201 {
		t.Errorf("the response is %d %s", got.status, got.body)
	}
	var full struct {
		Status string `json:"status"`
	}
	into(t, w.ask(t, "GET /v1/instance/id1?full=true", ""), &full)
	if full.Status != "POST-INSTALL-FAILED" {
		t.Errorf("the status is %s", full.Status)
	}
}

func TestCreateInstanceTolerates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	body := `{"rb-name": "fw", "rb-version": "1", "profile-name": "default", "cloud-region": "east", "release-name": "mine", "vnf": 7,
		"labels": null, "override-values": {"a": "1", "b": null, "k8s-rb-instance-post-install-timeout": " 5 ", "k8s-rb-instance-pre-delete-timeout": "-1"}}`
	w.want(t, "null is as good as absent, and nobody minds an unknown field", "POST /v1/instance", body, 201, `{
		"id": "id1", "namespace": "default", "release-name": "mine", "request": {
			"rb-name": "fw", "rb-version": "1", "profile-name": "default", "cloud-region": "east", "release-name": "mine", "labels": null,
			"override-values": {"a": "1", "k8s-rb-instance-post-install-timeout": " 5 ", "k8s-rb-instance-pre-delete-timeout": "-1"}},
		"resources": [{"GVK": {"Group": "", "Version": "v1", "Kind": "ConfigMap"}, "Name": "web"}, {"GVK": {"Group": "apps", "Version": "v1", "Kind": "Deployment"}, "Name": "web"}]}`)
	asked := w.last().(nf.InstantiateRequest)
	if asked.Annotations["hook-timeout/post-install"] != "5s" || asked.Annotations["hook-timeout/pre-delete"] != "0s" || asked.Release != "mine" {
		t.Errorf("the engine is asked for %+v", asked.Annotations)
	}
	if _, there := asked.Inputs.Overrides["b"]; there {
		t.Error("an override that was null is one")
	}
}

func TestCreateInstanceRefuses(t *testing.T) {
	t.Parallel()
	with := func(old, text string) string { return strings.Replace(fwRequest, old, text, 1) }
	cases := map[string]struct {
		reason  string
		arrange func(*world)
		body    string
		status  int
		strict  int
		want    string
	}{
		"Empty":       {reason: "there must be a body", body: "", status: 400, strict: 400, want: "Body empty"},
		"NotJSON":     {reason: "of JSON", body: "{", status: 422, strict: 422, want: "the document is not JSON: line 1, column 2: it ends too early"},
		"NoRegion":    {reason: "with a region", body: with(`"east"`, `""`), status: 422, strict: 422, want: "CreateVnfRequest bad request: Invalid/Missing CloudRegion in POST request"},
		"NoBundle":    {reason: "a bundle", body: with(`"rb-version": "1"`, `"rb-version": ""`), status: 422, strict: 422, want: "CreateVnfRequest bad request: Invalid/Missing resource bundle parameters in POST request"},
		"NoProfile":   {reason: "and a profile", body: with(`"edge"`, `""`), status: 422, strict: 422, want: "CreateVnfRequest bad request: Invalid/Missing profile name in POST request"},
		"Number":      {reason: "a value is a text", body: with(`"x"`, `5`), status: 422, strict: 422, want: "override-values.a.b: a string is needed, not a number"},
		"BadTimeout":  {reason: "a timeout is a number, and its override is not forgotten", body: with(`"a.b"`, `"k8s-rb-instance-pre-install-timeout"`), status: 422, strict: 422, want: "k8s-rb-instance-pre-install-timeout is not a number of seconds up to 86400"},
		"LongTimeout": {reason: "and one of this world", body: with(`"a.b": "x"`, `"k8s-rb-instance-pre-install-timeout": "86401"`), status: 422, strict: 422, want: "k8s-rb-instance-pre-install-timeout is not a number of seconds up to 86400"},
		"NoSuchProfile": {
			reason: "a profile must be there", body: with(`"edge"`, `"core"`), status: 500, strict: 404, want: "Unable to find Profile to create instance",
		},
		"NoSuchBundle": {reason: "and a definition", body: with(`"fw"`, `"lb"`), status: 500, strict: 404, want: "Unable to find Profile to create instance"},
		"NoSuchRegion": {
			reason: "and a region", body: with(`"east"`, `"north"`), status: 500, strict: 404,
			want: "Getting CloudRegion Information: Error finding master table: mongo: no documents in result",
		},
		"BadChart": {
			reason: "an error in the chart is reported", body: fwRequest, status: 500, strict: 400,
			arrange: func(w *world) {
				w.fail["Instantiate"] = nf.E(nf.Invalid, "render", "chart fw", errors.New("replicas is missing"))
			},
			want: "Error resolving helm charts: cannot render chart fw: replicas is missing",
		},
		"BadRelease": {
			reason: "a release is a label", body: with(`"release-name": ""`, `"release-name": "Not_One"`), status: 500, strict: 400,
			want: `Error resolving helm charts: cannot instantiate package rb-`,
		},
		"Taken": {
			reason: "and what is there already", body: fwRequest, status: 500, strict: 409,
			arrange: func(w *world) {
				w.fail["Instantiate"] = nf.E(nf.Conflict, "apply", "objects", errors.New("web is another's"))
			},
			want: "Create Kubernetes Resources: cannot apply objects: web is another's",
		},
		"Failed": {
			reason: "a later failure is reported, too", body: fwRequest, status: 500, strict: 424,
			arrange: func(w *world) { w.failure = &nf.Failure{Kind: nf.Failed, Step: "x", Message: "no room"} },
			want:    "Create Kubernetes Resources: cannot instantiate VNF instance id1: no room",
		},
		"Defect": {
			reason: "of a defect, only that", body: fwRequest, status: 500, strict: 500,
			arrange: func(w *world) { w.fail["Instantiate"] = errors.New("secret") },
			want:    "Create Kubernetes Resources: an unexpected failure; the log has its cause under the request's id",
		},
		"Forbidden": {
			reason: "ONAP knew nothing of permissions", body: fwRequest, status: 403, strict: 403,
			arrange: func(w *world) { w.rights[nf.CreateInstance] = true },
			want:    "cannot do instance:instantiate: forbidden",
		},
	}
	for name, tc := range cases {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, strict), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, strict)
				if tc.arrange != nil {
					tc.arrange(w)
				}
				status := tc.status
				if strict {
					status = tc.strict
				}
				got := w.ask(t, "POST /v1/instance", tc.body)
				if got.status != status || !strings.HasPrefix(got.body, tc.want) || !strings.HasSuffix(got.body, "\n") {
					t.Errorf("%s: %d %q", tc.reason, got.status, got.body)
				}
			})
		}
	}
}

func TestMissingInstances(t *testing.T) {
	t.Parallel()
	body := map[string]string{
		"POST /v1/instance/none/upgrade":                     fwRequest,
		"POST /v1/instance/none/config":                      `{"config-name": "c", "template-name": "ssh", "values": {}}`,
		"PUT /v1/instance/none/config/c":                     `{}`,
		"POST /v1/instance/none/config/c/rollback":           `{"config-version": "1"}`,
		"POST /v1/instance/none/config/c/tagit":              `{"tag-name": "x"}`,
		"GET /v1/instance/none":                              "",
		"GET /v1/instance/none?full=true":                    "",
		"GET /v1/instance/none/status":                       "",
		"GET /v1/instance/none/query?ApiVersion=v1&Kind=Pod": "",
		"DELETE /v1/instance/none":                           "",
		"GET /v1/instance/none/config":                       "",
		"GET /v1/instance/none/config/c":                     "",
		"GET /v1/instance/none/config/c/version":             "",
		"GET /v1/instance/none/config/c/version/1":           "",
		"GET /v1/instance/none/config/c/tag":                 "",
		"GET /v1/instance/none/config/c/tag/x":               "",
		"DELETE /v1/instance/none/config/c":                  "",
		"POST /v1/instance/none/config/c/delete":             "",
		"POST /v1/instance/none/healthcheck":                 "",
		"GET /v1/instance/none/healthcheck":                  "",
		"GET /v1/instance/none/healthcheck/h":                "",
		"DELETE /v1/instance/none/healthcheck/h":             "",
	}
	for _, strict := range []bool{false, true} {
		w, status := newWorld(t, strict), 500
		if strict {
			status = 404
		}
		// One that is going no longer exists, nor one that the native API made.
		w.instances["going"] = nf.Instance{ID: "going", State: nf.Terminating, Annotations: map[string]string{"onap/request": "{}"}}
		w.instances["native"] = nf.Instance{ID: "native", State: nf.Ready}
		for request, body := range body {
			for _, id := range []string{"none", "going", "native", "x..%5Cy", "%20", strings.Repeat("l", 600)} {
				got := w.ask(t, strings.Replace(request, "none", id, 1), body)
				if got.status != status || !strings.Contains(got.body, "Error finding master table: mongo: no documents in result\n") {
					t.Errorf("%s of %s, strict %t: %d %q", request, id, strict, got.status, got.body)
				}
			}
		}
	}
	newWorld(t, true).want(t, "the deletion of a workload follows the style", "DELETE /a/b/infra_workload/none", "", 404, "Error getting Instance: "+noInstance)
	w := newWorld(t, false)
	w.want(t, "the words that clients look for", "GET /v1/instance/none", "", 500, noInstance)
	w.want(t, "a workload is a 404 in both styles", "GET /a/b/infra_workload/none", "", 404, noInstance)
	w.want(t, "so is one that is asked to be refreshed", "POST /a/b/infra_workload/none", "{}", 404, noInstance)
}

func TestListInstances(t *testing.T) {
	t.Parallel()
	strict := newWorld(t, true)
	strict.want(t, "none is an empty list", "GET /v1/instance", "", 200, "[]")
	w := newWorld(t, false)
	w.want(t, "none is an error, as clients know it", "GET /v1/instance", "", 500, "Listing Instances: Did not find any objects with tag: instance")
	w.create(t)
	w.edit(func(e *engine) {
		e.instances["going"] = nf.Instance{ID: "going", State: nf.Terminating, Annotations: map[string]string{"onap/request": "{}"}, Inventory: inventory("x")}
		e.instances["early"] = nf.Instance{ID: "early", State: nf.Instantiating, Annotations: map[string]string{"onap/request": "{}"}}
		e.instances["native"] = nf.Instance{ID: "native", State: nf.Ready, Inventory: inventory("x")}
	})
	one := `[{"id": "id1", "request": ` + fwRequest + `, "release-name": "fw-edge", "namespace": "edge"}]`
	for filter, want := range map[string]string{
		"": one, "?rb-name=fw": one, "?rb-name=fw&rb-version=1&profile-name=edge": one, "?profile-name=edge": one, "?rb-name=": one,
		"?rb-name=nope": "[]", "?rb-name=fw&profile-name=default": "[]",
	} {
		w.want(t, "filters are all taken", "GET /v1/instance"+filter, "", 200, want)
	}
	w.fail["Instances"] = nf.E(nf.Unreachable, "list", "instances", errors.New("down"))
	w.want(t, "another error is another error", "GET /v1/instance", "", 500, "Listing Instances: cannot list instances: down")
}

// decodeStrictly reads an answer as the clients do that refuse unknown fields.
func decodeStrictly(t *testing.T, got said, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%v: %s", err, got.body)
	}
}

// TestStrictClients reads answers with the fields that those clients know which
// refuse any other.
func TestStrictClients(t *testing.T) {
	t.Parallel()
	type request struct {
		A string            `json:"rb-name"`
		B string            `json:"rb-version"`
		C string            `json:"profile-name"`
		D string            `json:"release-name"`
		E string            `json:"cloud-region"`
		F map[string]string `json:"labels"`
		G map[string]string `json:"override-values"`
	}
	type instance struct {
		ID        string  `json:"id"`
		Request   request `json:"request"`
		Namespace string  `json:"namespace"`
		Release   string  `json:"release-name"`
		Resources []struct {
			GVK  struct{ Group, Version, Kind string }
			Name string
		} `json:"resources"`
	}
	type query struct {
		Type   string          `json:"template_type"`
		ID     string          `json:"workload_id"`
		Status string          `json:"workload_status"`
		Reason json.RawMessage `json:"workload_status_reason"`
	}
	w := newWorld(t, false)
	w.create(t)
	decodeStrictly(t, w.ask(t, "GET /v1/instance", ""), &[]instance{})
	decodeStrictly(t, w.ask(t, "GET /v1/instance/id1", ""), &instance{})
	var status struct {
		Request request         `json:"request"`
		Ready   bool            `json:"ready"`
		Count   int             `json:"resourceCount"`
		Objects json.RawMessage `json:"resourcesStatus"`
	}
	decodeStrictly(t, w.ask(t, "GET /v1/instance/id1/status", ""), &status)
	var simple struct {
		ID     string `json:"healthcheck-id"`
		Status string `json:"status"`
	}
	decodeStrictly(t, w.ask(t, "POST /v1/instance/id1/healthcheck", ""), &simple)
	for _, path := range []string{"/infra_workload/id1", "/infra_workload?name=s", "/infra_workload?name=none"} {
		decodeStrictly(t, w.ask(t, "GET /a/b"+path, ""), &query{})
	}
	decodeStrictly(t, w.ask(t, "DELETE /a/b/infra_workload/id1", ""), &query{})
}

func TestFullInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.live.hooks = nil
	full := func(status, hooks, progress string) string {
		return `{"id": "id1", ` + fwShown + `, "status": "` + status + `", "hooks": ` + hooks + `, "hook-progress": "` + progress + `",
			"PreInstallTimeout": 60, "PostInstallTimeout": 600, "PreDeleteTimeout": 60, "PostDeleteTimeout": 600, "PreUpgradeTimeout": 60, "PostUpgradeTimeout": 600}`
	}
	w.want(t, "everything is told", "GET /v1/instance/id1?full=true", "", 200, full("DONE", "null", ""))
	hook := `{"name": "m", "kind": "Job", "path": "templates/m.yaml", "manifest": "kind: Job\n", "events": ["post-install"]}`
	w.live.hooks = []onap.PlannedHook{{Name: "m", Kind: "Job", Path: "templates/m.yaml", Object: map[string]any{"kind": "Job"}, Events: []nf.HookEvent{nf.PostInstall}}}
	w.want(t, "hooks, too", "GET /v1/instance/id1?full=true", "", 200, full("DONE", "["+hook+"]", "1/1"))
	w.edit(func(e *engine) { e.operations = map[string]nf.Operation{} })
	w.want(t, "an operation may be forgotten", "GET /v1/instance/id1?full=true", "", 200, full("DONE", "["+hook+"]", ""))
}

func TestDeleteInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.hold = true
	w.want(t, "it is accepted, not awaited", "DELETE /v1/instance/id1", "", 202, "")
	w.want(t, "and gone at once for whoever looks", "GET /v1/instance/id1", "", 500, noInstance)
	w.want(t, "twice is once too often", "DELETE /v1/instance/id1", "", 500, "Error getting Instance: "+noInstance)
}

// TestDeleteInstanceWithItsClaims deletes the volume claims of StatefulSets, too,
// which is an extension of ONAP's API.
func TestDeleteInstanceWithItsClaims(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  string
		status int
		want   []any // what is asked of the engine
	}{
		"Delete": {"they go if the request says so", "?claims=delete", 202, []any{nf.TerminateRequest{Claims: nf.ClaimsDelete}}},
		"Keep":   {"or stay, also if the instance says otherwise", "?claims=keep", 202, []any{nf.TerminateRequest{Claims: nf.ClaimsKeep}}},
		"Unsaid": {"the instance says what becomes of them", "", 202, []any{nf.TerminateRequest{}}},
		"Wrong":  {"a word that means nothing deletes nothing", "?claims=all", 400, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			w.create(t)
			w.asked = nil
			if got := w.ask(t, "DELETE /v1/instance/id1"+tc.query, ""); got.status != tc.status {
				t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
			}
			if diff := cmp.Diff(tc.want, w.asked); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
