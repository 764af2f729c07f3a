package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// driftedInstance is the part of an instance that is about drift.
type driftedInstance struct {
	State         nf.DriftState `json:"drift_state"`
	LastOperation string        `json:"operation_id"`
	Objects       []struct {
		Kind, Name string
		Drift      *struct {
			Missing bool
			Fields  []struct{ Path, Manager string }
		}
	}
}

// TestDrift has another client change and delete objects of an instance, first with the
// policy warn, and then with correct.
func TestDrift(t *testing.T) {
	t.Parallel()
	s, region := startService(t), newReleases(t)
	s.upload("drift", map[string]string{
		"metadata.yaml": "name: drift\nresources:\n- configmap: config.yaml\n- deployment: web.yaml\n",
		"config.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {greeting: hello}\n",
		"web.yaml":      scalable("web"),
	})
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "drift", "namespace": region.ns,
		"drift": map[string]any{"mode": "warn", "ignore": []any{map[string]any{"object": "ConfigMap/config", "path": "data.ignored"}}},
	}))
	s.operation(created.text(t, "operation_id"))
	one := "/v1/vnf_instances/" + created.text(t, "vnf_id")
	until := func(what string, ok func(driftedInstance) bool) (in driftedInstance) {
		t.Helper()
		deadline := time.After(2 * time.Minute)
		for {
			a := s.want(http.StatusOK, s.do("GET", one, nil))
			in = driftedInstance{}
			if err := json.Unmarshal(a.body, &in); err != nil {
				t.Fatal(err)
			}
			if ok(in) {
				return in
			}
			select {
			case <-deadline:
				t.Fatalf("%s: %s", what, a.body)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	is := func(want nf.DriftState) func(driftedInstance) bool {
		return func(in driftedInstance) bool { return in.State == want }
	}
	edit := func(kind, name, patch string) {
		t.Helper()
		if _, err := region.api(kind).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	image := func() string {
		t.Helper()
		u, err := region.api("Deployment").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is, _ := nf.At(u.Object, "/spec/template/spec/containers/0/image")
		text, _ := is.(string)
		return text
	}
	const other = `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}`

	until("nothing has changed", is(nf.DriftNone))
	edit("Deployment", "web", `{"spec":{"template":{"spec":{"initContainers":[{"name":"proxy","image":"proxy:1","restartPolicy":"Always"}]}}}}`)
	edit("Deployment", "web", other)
	in := until("an edit is shown", is(nf.Drifted))
	for _, o := range in.Objects {
		if o.Name == "web" && (o.Drift == nil || len(o.Drift.Fields) != 1 || o.Drift.Fields[0].Path != "spec.template.spec.containers[name=c].image" || o.Drift.Fields[0].Manager != "kubectl-edit") {
			t.Errorf("drift of web: %+v", o.Drift)
		}
	}
	if image() != "other" {
		t.Error("the policy warn changes nothing")
	}
	s.operation(s.want(http.StatusOK, s.do("PATCH", one, map[string]any{"drift": map[string]any{"mode": "correct"}})).text(t, "operation_id"))
	until("the update has applied the objects", is(nf.DriftNone))

	edit("Deployment", "web", other)
	until("the edit is corrected", func(in driftedInstance) bool { return in.State == nf.DriftNone && image() != "other" })
	last := s.want(http.StatusOK, s.do("GET", "/v1/operations/"+until("it is an operation", is(nf.DriftNone)).LastOperation, nil))
	if last.text(t, "verb") != string(nf.Correct) || last.text(t, "state") != string(nf.Succeeded) {
		t.Errorf("the last operation: %s", last.body)
	}
	if err := region.api("ConfigMap").Delete(t.Context(), "config", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("a deleted object is created again", func(in driftedInstance) bool {
		_, err := region.api("ConfigMap").Get(t.Context(), "config", metav1.GetOptions{})
		return err == nil && in.State == nf.DriftNone
	})
	began := time.Now()
	for range 2 { // the third correction comes 30 seconds after the first
		edit("Deployment", "web", other)
		until("it is corrected again", func(in driftedInstance) bool { return in.State == nf.DriftNone && image() != "other" })
	}
	if took := time.Since(began); took < nf.CorrectionPause {
		t.Errorf("a client that changes the object again was answered within %v", took)
	}
}
