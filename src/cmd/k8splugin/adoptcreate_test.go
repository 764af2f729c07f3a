package main

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCreateAdopts creates an instance on the objects that another one has left: it
// fails first and gives all back, and then it owns them.
func TestCreateAdopts(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.upload("page", page())
	a := adoption{s, newReleases(t)}
	create := func(query string, edit map[string]any) answer {
		body := map[string]any{"cloud_region_id": "sandbox", "csar_id": "page", "namespace": a.ns, "release": "page", "parameters": map[string]any{"greeting": "hi"}}
		maps.Copy(body, edit)
		return a.do("POST", "/v1/vnf_instances"+query, body)
	}
	first := a.want(http.StatusCreated, create("", nil))
	a.done(first)
	a.want(http.StatusNoContent, a.do("DELETE", first.header.Get("Location")+"?orphan=true", nil))
	before := a.contents()
	a.want(http.StatusConflict, create("", nil))

	changed := map[string]any{"adopt": true, "parameters": map[string]any{"greeting": "ho"}}
	dry := a.want(http.StatusOK, create("?dry_run=true", changed))
	if got, want := strings.Count(string(dry.body), `"action":"adopted"`), len(kinds())+1; got != want { // and the Job of the hook
		t.Errorf("the dry run names %d objects that it would adopt, want %d: %s", got, want, dry.body)
	}
	if !strings.Contains(string(dry.body), "left in place by") {
		t.Errorf("it does not say where they come from: %s", dry.body)
	}
	broken := map[string]any{"adopt": true, "parameters": map[string]any{"greeting": "ho", "image": "sandbox.invalid/no-such-image:1"}}
	if got := create("", broken); got.status < 400 {
		failed := a.operation(got.text(t, "operation_id"))
		if failed.text(t, "state") != "failed" {
			t.Fatalf("the operation is %s", failed.body)
		}
	}
	if diff := cmp.Diff(before, a.contents()); diff != "" {
		t.Errorf("a creation that failed has changed what it had adopted (-before +after)\n%s", diff)
	}

	second := a.want(http.StatusCreated, create("", changed))
	a.done(second)
	vnf := second.header.Get("Location")
	for _, kind := range kinds() {
		if got := a.get(kind, "page").GetLabels()[nf.OwnerLabel]; "/v1/vnf_instances/"+got != vnf {
			t.Errorf("the %s belongs to %q", kind, got)
		}
	}
	if got := a.get("ConfigMap", "page").Object["data"]; !cmp.Equal(got, map[string]any{"greeting": "ho"}) {
		t.Errorf("the package's content is not applied: %v", got)
	}
	if got := a.want(http.StatusConflict, create("", map[string]any{"adopt": true})); !strings.Contains(string(got.body), "belongs to") {
		t.Errorf("the objects of another instance are no conflict: %s", got.body)
	}
	a.want(http.StatusNoContent, a.do("DELETE", vnf, nil))
}

// contents returns what the release's objects are, and that they have no owner.
func (a adoption) contents() map[string]any {
	a.releases.t.Helper()
	out := map[string]any{}
	for _, kind := range kinds() {
		o := a.get(kind, "page")
		spec := o.Object["spec"]
		if kind == "ConfigMap" || kind == "Secret" {
			spec = o.Object["data"]
		}
		out[kind] = []any{spec, o.GetLabels()}
	}
	return out
}
