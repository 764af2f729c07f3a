package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// roleWorld is a service with two regions, two projects, and an instance of each
// project in each region.
type roleWorld struct {
	*testService

	kubeconfig string
	archive    []byte
	instances  map[string]string // by project and region
	ended      map[string]string // an operation of each that has succeeded
	running    map[string]string // one that runs
	uploads    int
}

// TestWhoMayDoWhat makes every call as every identity, on what is in every project and
// every region, over HTTP. The instances are busy and the regions and packages
// held, so what is allowed is refused for another reason and changes nothing.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newRoleWorld(t)
	tried := 0
	for _, c := range accesstest.Matrix() {
		got, ok := w.call(c)
		if !ok {
			continue // it has no separate request
		}
		tried++
		if outcome := outcomeOf(got); outcome != c.Want {
			t.Errorf("%s; it was %s: %d %s", c, outcome, got.status, got.body)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d of the calls were made", tried)
	}
	w.listsShowWhatOneMaySee(t)
}

func outcomeOf(a answer) accesstest.Outcome {
	switch a.status {
	case http.StatusUnauthorized:
		return accesstest.Unauthenticated
	case http.StatusForbidden:
		return accesstest.Forbidden
	case http.StatusNotFound:
		return accesstest.Hidden
	}
	return accesstest.Allowed
}

func (w *roleWorld) as(who, method, path string, body any, headers ...string) answer {
	w.t.Helper()
	if token := accesstest.Token(who); token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	return w.send(w.t.Context(), method, path, body, headers...)
}

// call makes the request of a case.
func (w *roleWorld) call(c accesstest.Case) (answer, bool) {
	key := c.Project + c.Region
	region, pkg, instance := "/v1/cloud_regions/"+c.Region, "/v1/packages/pkg-"+c.Project, "/v1/vnf_instances/"+w.instances[key]
	ended, running := "/v1/operations/"+w.ended[key], "/v1/operations/"+w.running[key]
	create := map[string]any{"cloud_region_id": c.Region, "csar_id": "pkg-" + c.Project, "project": c.Project} // without its image
	do := func(method, path string, body any) (answer, bool) { return w.as(c.Who, method, path, body), true }
	switch c.Call.Name {
	case "Region":
		return do("GET", region, nil)
	case "UpdateRegion":
		return do("PATCH", region, map[string]any{"description": "by " + c.Who})
	case "RemoveRegion":
		return do("DELETE", region, nil)
	case "Register":
		return do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": c.Region, "kubeconfig": w.kubeconfig})
	case "Enlist":
		return do("POST", "/v1/connectivity-info", map[string]any{"cloud-region": c.Region, "cloud-owner": "acme", "kubeconfig": w.kubeconfig})
	case "Package":
		return do("GET", pkg, nil)
	case "Content":
		return do("GET", pkg+"/content", nil)
	case "UpdatePackage":
		return do("PATCH", pkg, map[string]any{"user_data": map[string]any{"by": c.Who}})
	case "RemovePackage":
		return do("DELETE", pkg, nil)
	case "CreatePackage":
		w.uploads++
		return do("POST", "/v1/packages", map[string]any{"csar_id": fmt.Sprintf("new-%d", w.uploads), "project": c.Project})
	case "Upload":
		w.uploads++
		return do("PUT", fmt.Sprintf("/v1/packages/new-%d?project=%s", w.uploads, c.Project), w.archive)
	case "Instance":
		return do("GET", instance, nil)
	case "Revisions":
		return do("GET", instance+"/revisions", nil)
	case "Revision":
		return do("GET", instance+"/revisions/1", nil)
	case "Upgrade":
		return do("PATCH", instance, map[string]any{"parameters": map[string]any{"image": goodImage}})
	case "PreviewUpgrade":
		return do("PATCH", instance+"?dry_run=true", map[string]any{"parameters": map[string]any{"image": goodImage}})
	case "Rollback":
		return do("POST", instance+"/rollback", map[string]any{"revision": 1})
	case "PreviewRollback":
		return do("POST", instance+"/rollback?dry_run=true", map[string]any{"revision": 1})
	case "Configure":
		return do("PUT", instance+"/amendments/more", map[string]any{"csar_id": "pkg-" + c.Project})
	case "PreviewConfigure":
		return do("PUT", instance+"/amendments/more?dry_run=true", map[string]any{"csar_id": "pkg-" + c.Project})
	case "Test":
		return do("POST", instance+"/tests", nil)
	case "PreviewTest":
		return do("POST", instance+"/tests?dry_run=true", nil)
	case "Act": // an object that the instance does not have
		return do("POST", instance+"/restart", map[string]any{"workloads": []string{"Deployment/none"}})
	case "PreviewAct":
		return do("POST", instance+"/restart?dry_run=true", map[string]any{"workloads": []string{"Deployment/none"}})
	case "Adopt": // a package that has no releases
		return do("POST", "/v1/vnf_instances/adopt", map[string]any{"cloud_region_id": c.Region, "csar_id": "pkg-" + c.Project, "project": c.Project, "release": "none"})
	case "PreviewAdopt":
		return do("POST", "/v1/vnf_instances/adopt?dry_run=true", map[string]any{"cloud_region_id": c.Region, "csar_id": "pkg-" + c.Project, "project": c.Project, "release": "none"})
	case "Terminate":
		return do("DELETE", instance, nil)
	case "PreviewTerminate":
		return do("DELETE", instance+"?dry_run=true", nil)
	case "Operation":
		return do("GET", ended, nil)
	case "Follow":
		return do("GET", ended+"/events", nil)
	case "Retry":
		return do("POST", running+"/retry", nil)
	case "Undo":
		return do("POST", running+"/undo", nil)
	case "PreviewRetry":
		return do("POST", running+"/retry?dry_run=true", nil)
	case "PreviewUndo":
		return do("POST", running+"/undo?dry_run=true", nil)
	case "Cancel":
		return do("POST", ended+"/cancel", nil)
	case "Administer":
		return do("GET", "/v1/keys", nil)
	case "Instantiate":
		return do("POST", "/v1/vnf_instances", create)
	case "PreviewInstantiate":
		return do("POST", "/v1/vnf_instances?dry_run=true", create)
	}
	return answer{}, false
}

func newRoleWorld(t *testing.T) *roleWorld {
	t.Helper()
	w := &roleWorld{
		testService: startBareService(t, func(c *Config) { c.AccessFile = accesstest.File(t) }),
		kubeconfig:  base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
		instances:   map[string]string{}, ended: map[string]string{}, running: map[string]string{},
	}
	files := map[string]string{
		"metadata.yaml": "variables:\n  image: {type: string, required: true}\n  replicas: {type: integer, default: 1}\nresources:\n- deployment: [web.yaml]\n",
		"web.yaml":      deployment("web", "$image"),
	}
	w.archive = rendertest.Zip(files)
	const admin = "admin-all"
	for _, region := range []string{accesstest.East, accesstest.West} {
		w.want(http.StatusCreated, w.as(admin, "POST", "/v1/cloud_regions", map[string]any{
			"cloud_region_id": region, "kubeconfig": w.kubeconfig, "tenants": map[string]any{"*": map[string]any{"namespaces": []string{"default"}}},
		}))
	}
	for _, project := range []string{accesstest.ProjectA, accesstest.ProjectB} {
		w.want(http.StatusCreated, w.as(admin, "PUT", "/v1/packages/pkg-"+project+"?project="+project, w.archive))
		for _, region := range []string{accesstest.East, accesstest.West} {
			w.instantiate(admin, project, region, clustertest.Namespace(t))
		}
	}
	return w
}

// instantiate makes an instance, and leaves it busy with a change that does not end.
func (w *roleWorld) instantiate(admin, project, region, namespace string) {
	w.t.Helper()
	key := project + region
	made := w.want(http.StatusCreated, w.as(admin, "POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": region, "csar_id": "pkg-" + project, "project": project, "namespace": namespace,
		"parameters": map[string]any{"image": goodImage},
	}))
	w.instances[key], w.ended[key] = made.text(w.t, "vnf_id"), made.text(w.t, "operation_id")
	w.want(http.StatusOK, w.as(admin, "GET", "/v1/operations/"+w.ended[key]+"/events", nil))
	changed := w.want(http.StatusAccepted, w.as(admin, "PATCH", "/v1/vnf_instances/"+w.instances[key],
		map[string]any{"parameters": map[string]any{"image": "sandbox.invalid/never-ready:1"}, "timeout": "20m"}, "Prefer", "respond-async"))
	w.running[key] = changed.text(w.t, "operation_id")
}

// listsShowWhatOneMaySee looks for everything of the west in the responses for a
// viewer of the east.
func (w *roleWorld) listsShowWhatOneMaySee(t *testing.T) {
	t.Helper()
	const viewer = "viewer-a-east"
	own, others := accesstest.ProjectA+accesstest.East, []string{}
	for key := range w.instances {
		if key != own {
			others = append(others, w.instances[key], w.ended[key], w.running[key])
		}
	}
	for _, path := range []string{"/v1/vnf_instances", "/v1/operations", "/v1/cloud_regions", "/v1/packages", "/v1/cloud_regions/" + accesstest.East, "/v1/packages/pkg-a"} {
		got := w.want(http.StatusOK, w.as(viewer, "GET", path, nil))
		if path == "/v1/vnf_instances" && !strings.Contains(string(got.body), w.instances[own]) {
			t.Errorf("%s does not show the viewer what is his: %s", path, got.body)
		}
		for _, hidden := range append(others, "pkg-b", `"`+accesstest.West+`"`) {
			if bytes.Contains(got.body, []byte(hidden)) {
				t.Errorf("%s shows a viewer of the east %s: %s", path, hidden, got.body)
			}
		}
	}
	w.want(http.StatusForbidden, w.as(viewer, "GET", "/v1/keys", nil))
	w.want(http.StatusOK, w.as("admin-all", "GET", "/v1/audit?limit=10", nil))
}

// TestForeignHostsAreRefused asks an open service on loopback as a page does
// whose name was made to lead there.
func TestForeignHostsAreRefused(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, s.url+"/v1/cloud_regions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "attacker.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request for another host: %d", resp.StatusCode)
	}
}
