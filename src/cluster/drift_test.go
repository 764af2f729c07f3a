package cluster

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// driftOf returns the drift of one object, without times.
func driftOf(t *testing.T, c *Cluster, u *unstructured.Unstructured, ignore ...nf.DriftIgnore) nf.Drift {
	t.Helper()
	got, err := c.Drift(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{u}, ignore)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range got[0].Fields {
		f := &got[0].Fields[i]
		if f.Via == "" && (f.Manager == "") != f.At.IsZero() { // the API server keeps no time for a subresource
			t.Errorf("%s: by %q at %v", f.Path, f.Manager, f.At)
		}
		f.At = time.Time{}
	}
	return got[0]
}

// corrected corrects one object, and returns the action.
func corrected(t *testing.T, c *Cluster, u *unstructured.Unstructured, ignore ...nf.DriftIgnore) nf.Action {
	t.Helper()
	changes, err := c.Correct(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{u}, ignore)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%v, %v", changes, err)
	}
	return changes[0].Action
}

// patched patches an object as another client, with the type of the patch.
func patched(t *testing.T, c *Cluster, ref nf.Ref, manager string, kind types.PatchType, patch string) {
	t.Helper()
	targets, err := c.client.apis.resolveAll(t.Context(), []nf.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	r := c.client.request(http.MethodPatch, targets[0]).SetHeader("Content-Type", string(kind)).Param("fieldManager", manager).Body([]byte(patch))
	if kind == types.ApplyYAMLPatchType {
		r.Param("force", "true")
	}
	if err := r.Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

const (
	merge     = types.MergePatchType
	strategic = types.StrategicMergePatchType
	jsonPatch = types.JSONPatchType
)

// TestDrift changes a Deployment of two replicas as other clients do.
func TestDrift(t *testing.T) {
	const web = `spec.template.spec.containers[name=`
	type edit struct {
		kind  types.PatchType
		patch string
	}
	image := nf.DriftField{Path: web + "c].image", Found: "other", Manager: "kubectl-edit"}
	cases := map[string]struct {
		reason string
		edits  []edit
		ignore []nf.DriftIgnore
		want   []nf.DriftField // without the applied value
		action nf.Action
		then   []nf.DriftField // after a correction
	}{
		"Nothing":   {reason: "defaults and what controllers write are no drift", action: nf.Unchanged},
		"Added":     {reason: "nor is a field that another client adds", edits: []edit{{merge, `{"metadata":{"labels":{"team":"a"}},"spec":{"paused":true}}`}}, action: nf.Unchanged},
		"Sidecar":   {reason: "nor an injected container", edits: []edit{{jsonPatch, `[{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"proxy","image":"p"}}]`}}, action: nf.Unchanged},
		"Changed":   {reason: "a changed field is", edits: []edit{{strategic, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}`}}, want: []nf.DriftField{image}, action: nf.Configured},
		"Elsewhere": {reason: "in whatever order the list is", edits: []edit{{jsonPatch, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"other"},{"op":"add","path":"/spec/template/spec/containers/0","value":{"name":"proxy","image":"p"}}]`}}, want: []nf.DriftField{image}, action: nf.Configured},
		"Removed":   {reason: "a removed field has no manager", edits: []edit{{merge, `{"metadata":{"annotations":{"a.b/c":null}}}`}}, want: []nf.DriftField{{Path: "metadata.annotations[a.b/c]"}}, action: nf.Configured},
		"Taken":     {reason: "a field that another client owns alone, with the same value", edits: []edit{{merge, `{"spec":{"replicas":3}}`}, {merge, `{"spec":{"replicas":2}}`}}, want: []nf.DriftField{{Path: "spec.replicas", Taken: true, Manager: "kubectl-edit"}}, action: nf.Configured},
		"Ignored": {reason: "an ignored field stays, and the others are corrected", edits: []edit{
			{strategic, `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","image":"other"}]}}}}`},
		}, ignore: []nf.DriftIgnore{{Object: "Deployment/web", Path: "spec.replicas"}}, want: []nf.DriftField{image}, action: nf.Configured},
		"Ignored only": {reason: "if nothing else has changed, nothing is applied", edits: []edit{{merge, `{"spec":{"replicas":3}}`}},
			ignore: []nf.DriftIgnore{{Path: "spec.*"}}, action: nf.Unchanged},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ns := sandbox(t)
			u := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,")
			u.SetAnnotations(map[string]string{"a.b/c": "x", "a.b/d": "x"})
			mustApply(t, c, "vnf-1", u)
			for _, e := range tc.edits {
				patched(t, c, nf.RefOf(u), "kubectl-edit", e.kind, e.patch)
			}
			got := driftOf(t, c, u, tc.ignore...)
			for i := range got.Fields {
				if !got.Fields[i].Taken && got.Fields[i].Applied == nil {
					t.Errorf("%s: no applied value", got.Fields[i].Path)
				}
				got.Fields[i].Applied = nil
			}
			diff(t, tc.reason, tc.want, got.Fields)
			if got.Missing || got.Message != "" || got.Any() != (len(tc.want) > 0) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			replicas := replicasOf(t, c, u)
			if action := corrected(t, c, u, tc.ignore...); action != tc.action {
				t.Errorf("%s: the correction has %s it", tc.reason, action)
			}
			if again := driftOf(t, c, u, tc.ignore...); again.Any() {
				t.Errorf("%s: after the correction: %+v", tc.reason, again)
			}
			if now := replicasOf(t, c, u); now != replicas {
				t.Errorf("%s: replicas were %v, and are %v", tc.reason, replicas, now)
			}
			if names := containersOf(t, c, u); strings.Contains("Sidecar Elsewhere", name) && !slices.Contains(names, "proxy") {
				t.Errorf("%s: containers %v", tc.reason, names)
			}
		})
	}
}

func containersOf(t *testing.T, c *Cluster, u *unstructured.Unstructured) (names []string) {
	t.Helper()
	list, _, _ := unstructured.NestedSlice(get(t, c, nf.RefOf(u)).Object, "spec", "template", "spec", "containers")
	for _, item := range list {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	return names
}

// TestDriftOfObjects is about objects that do not exist, or are no longer the owner's.
func TestDriftOfObjects(t *testing.T) {
	c, ns := sandbox(t)
	secret := objects(t, "vnf-1", ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: old}\n")[0]
	lost := objects(t, "vnf-1", ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}\ndata: {a: b}\n")[0]
	gone := objects(t, "vnf-1", ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\ndata: {a: b}\n")[0]
	mustApply(t, c, "vnf-1", secret, lost, gone)
	patched(t, c, nf.RefOf(secret), "them", merge, `{"stringData":{"password":"new"}}`)
	patched(t, c, nf.RefOf(lost), "them", merge, `{"metadata":{"labels":{"`+nf.OwnerLabel+`":"vnf-2"}}}`)
	if _, err := c.Delete(t.Context(), instance("vnf-1"), []nf.Ref{nf.RefOf(gone)}); err != nil {
		t.Fatal(err)
	}

	if got := driftOf(t, c, gone); !got.Missing {
		t.Errorf("a deleted object: %+v", got)
	}
	if got := driftOf(t, c, lost); !strings.Contains(got.Message, "belongs to VNF instance (one that you may not see)") || len(got.Fields) > 0 {
		t.Errorf("an object of another owner: %+v", got)
	}
	got := driftOf(t, c, secret)
	for _, f := range got.Fields {
		if f.Applied != nil && f.Applied != nf.Masked || f.Found != nil && f.Found != nf.Masked {
			t.Errorf("a value of a Secret is shown: %+v", f)
		}
	}
	all := []*unstructured.Unstructured{secret, lost, gone}
	changes, err := c.Correct(t.Context(), instance("vnf-1"), all, nil)
	if err != nil || len(changes) != 3 || changes[1].Action != nf.Unchanged || len(changes[1].Mentions) != 1 || changes[2].Action != nf.Created {
		t.Errorf("corrected: %+v, %v", changes, err)
	}
	if owner := get(t, c, nf.RefOf(lost)).GetLabels()[nf.OwnerLabel]; owner != "vnf-2" {
		t.Errorf("an object of another owner was taken: %s", owner)
	}
}

// TestDriftOfReplicas is about a number that an autoscaler sets.
func TestDriftOfReplicas(t *testing.T) {
	c, ns := sandbox(t)
	web := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,")
	mustApply(t, c, "vnf-1", web)
	scale := "/apis/apps/v1/namespaces/" + ns + "/deployments/web/scale"
	asClient(t, c, scale, "kubectl", `{"spec":{"replicas":4}}`)
	want := []nf.DriftField{{Path: "spec.replicas", Applied: int64(2), Found: int64(4), Manager: "kubectl", Via: "scale"}}
	diff(t, "a number that a client has set", want, driftOf(t, c, web).Fields)

	hpa := objects(t, "vnf-1", ns, `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 9, minReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`)[0]
	mustApply(t, c, "vnf-9", hpa)
	if got := driftOf(t, c, web); got.Any() {
		t.Errorf("a number that an autoscaler may have set: %+v", got)
	}
	patched(t, c, nf.RefOf(web), "them", merge, `{"spec":{"minReadySeconds":7,"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`)
	if action := corrected(t, c, web); action != nf.Configured && action != nf.Unchanged || replicasOf(t, c, web) != int64(4) {
		t.Errorf("%s, %v replicas", action, replicasOf(t, c, web))
	}
}

// TestDriftEnds stops with its context.
func TestDriftEnds(t *testing.T) {
	c, ns := sandbox(t)
	u := objects(t, "vnf-1", ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Drift(ctx, instance("vnf-1"), u, nil); err == nil {
		t.Error("no error")
	}
}
