package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

func TestManifests(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	planned := func(content object) render.Planned {
		return render.Planned{Object: &unstructured.Unstructured{Object: content}, File: "a.yaml", Line: 3}
	}
	secret := planned(object{"apiVersion": "v1", "kind": "Secret", "data": object{"port": "eA=="}, "stringData": object{"user": "ann"}, "type": "Opaque"})
	settings := planned(object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"url": "https://ann:hunter2@db", "size": int64(3)}})
	job := planned(object{"apiVersion": "batch/v1", "kind": "Job"})
	job.Events = []nf.HookEvent{nf.PreInstall}
	plan := render.Plan{Stages: []render.Stage{{Name: "secret", Objects: []render.Planned{secret}}, {Name: "configMap", Objects: []render.Planned{settings}}}, Hooks: []render.Planned{job}}
	want := []nf.Manifest{
		{Stage: "secret", File: "a.yaml", Line: 3, Object: object{
			"apiVersion": "v1", "kind": "Secret", "data": object{"port": nf.Masked}, "stringData": object{"user": nf.Masked}, "type": "Opaque",
		}},
		{Stage: "configMap", File: "a.yaml", Line: 3, Object: object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"url": nf.Masked, "size": int64(3)}}},
		{File: "a.yaml", Line: 3, Events: []nf.HookEvent{nf.PreInstall}, Object: object{"apiVersion": "batch/v1", "kind": "Job"}},
	}
	if diff := cmp.Diff(want, plan.Manifests(render.Masked(nf.NewRedactor([]string{"hunter2"})))); diff != "" {
		t.Errorf("in the order of the plan, without secrets (-want +got):\n%s", diff)
	}
	if got := secret.Object.Object["stringData"].(object)["user"]; got != "ann" {
		t.Errorf("masking has changed the object of the plan: %v", got)
	}
}
