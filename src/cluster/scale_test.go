package cluster

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// scalings asks for a number of replicas of one object.
func scalings(u *unstructured.Unstructured, n int64, path string) []nf.Scaling {
	return []nf.Scaling{{Ref: nf.RefOf(u), Replicas: &n, Path: path}}
}

// scaled scales one object, and waits until it is current.
func scaled(t *testing.T, c *Cluster, wanted []nf.Scaling) nf.Setting {
	t.Helper()
	settings, err := c.Scaling(t.Context(), instance("vnf-1"), wanted, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set(t.Context(), instance("vnf-1"), settings, true); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	changes, err := c.Set(t.Context(), instance("vnf-1"), settings, false)
	if err != nil {
		t.Fatal(err)
	}
	await(t.Context(), t, c, "vnf-1", changes, nf.Current)
	return settings[0]
}

func replicasOf(t *testing.T, c *Cluster, u *unstructured.Unstructured) any {
	t.Helper()
	is, _ := nf.At(get(t, c, nf.RefOf(u)).Object, "/spec/replicas")
	return is
}

// asClient patches an object, or its subresource, as another client would.
func asClient(t *testing.T, c *Cluster, path, manager, patch string) {
	t.Helper()
	err := c.client.verb(http.MethodPatch).SetHeader("Content-Type", string(types.MergePatchType)).AbsPath(path).
		Param("fieldManager", manager).Body([]byte(patch)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScaling(t *testing.T) {
	c, ns := sandbox(t)
	web, db := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 1,"), workloadOf(t, ns, "StatefulSet", "db", scheduled, "replicas: 1, serviceName: db,")
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", web, db), nf.Current)

	got := scaled(t, c, scalings(web, 3, ""))
	want := nf.Setting{Ref: nf.RefOf(web), Path: "/spec/replicas", Scale: true, Value: json.RawMessage("3"), Was: json.RawMessage("1")}
	diff(t, "the setting has both numbers", want, got)
	if is := replicasOf(t, c, web); is != int64(3) {
		t.Errorf("it has %v replicas, want 3", is)
	}
	changes, err := c.Set(t.Context(), instance("vnf-1"), []nf.Setting{got}, false)
	if err != nil || changes[0].Action != nf.Unchanged || changes[0].UID == "" {
		t.Errorf("again: %v, %v", changes, err)
	}
	back, _ := got.Reversed()
	if changes, err = c.Set(t.Context(), instance("vnf-1"), []nf.Setting{back}, true); err != nil || changes[0].Action != nf.Configured || replicasOf(t, c, web) != int64(3) {
		t.Errorf("a dry run: %v, %v; %v replicas", changes, err, replicasOf(t, c, web))
	}
	got = scaled(t, c, []nf.Scaling{{Ref: nf.RefOf(db), By: 1}})
	if string(got.Value) != "2" || replicasOf(t, c, db) != int64(2) {
		t.Errorf("by one more: %s, %v", got.Value, replicasOf(t, c, db))
	}

	changes = mustApply(t, c, "vnf-1", workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 3,"))
	if changes[0].Generation != get(t, c, nf.RefOf(web)).GetGeneration() || replicasOf(t, c, web) != int64(3) {
		t.Errorf("an apply with the number: %+v", changes[0])
	}
	if mustApply(t, c, "vnf-1", web); replicasOf(t, c, web) != int64(1) {
		t.Errorf("an apply with another number: %v", replicasOf(t, c, web))
	}
	gone := nf.RefOf(web)
	gone.Name = "gone"
	changes, err = c.Set(t.Context(), instance("vnf-1"), []nf.Setting{{Ref: gone, Path: "/spec/replicas", Scale: true, Value: json.RawMessage("1")}}, false)
	if err != nil || changes[0].Action != nf.Unchanged || changes[0].UID != "" {
		t.Errorf("of an object that does not exist: %v, %v", changes, err)
	}
}

// TestScalingCustom scales objects whose number is elsewhere.
func TestScalingCustom(t *testing.T) {
	c, ns := sandbox(t)
	group := ns + ".test"
	text := strings.Replace(definition(group, "Namespaced"), "storage: true,", "storage: true, subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}},", 1)
	text += "spec: {size: 1, sets: [{count: 1, name: a}, {count: 2, name: b}]}\n"
	us := objects(t, "vnf-1", "", text)
	us[1].SetNamespace(ns)
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", us[0]), nf.Current)
	defer deleteAtEnd(t, c, us[0])
	mustApply(t, c, "vnf-1", us[1])

	got := scaled(t, c, scalings(us[1], 4, ""))
	if got.Path != "/spec/size" || string(got.Was) != "1" {
		t.Errorf("by the definition: %+v", got)
	}
	scaled(t, c, scalings(us[1], 5, "/spec/sets/1/count"))
	spec := get(t, c, nf.RefOf(us[1])).Object["spec"]
	diff(t, "by paths", any(map[string]any{
		"size": int64(4), "sets": []any{map[string]any{"count": int64(1), "name": "a"}, map[string]any{"count": int64(5), "name": "b"}},
	}), spec)
	for path, want := range map[string]string{"/spec/none": "has no number at /spec/none", "/spec/sets/2/count": "has no number at", "/spec/sets/0/name": "has no number at"} {
		_, err := c.Scaling(t.Context(), instance("vnf-1"), scalings(us[1], 5, path), false)
		if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestScalingRefuses(t *testing.T) {
	c, ns := sandbox(t)
	deployment := func(name string) *unstructured.Unstructured {
		return workloadOf(t, ns, "Deployment", name, held, "replicas: 1,")
	}
	child := deployment("child")
	us := []*unstructured.Unstructured{
		deployment("auto"), deployment("clicked"), deployment("pool"), deployment("topology"), configMap(t, "vnf-1", ns, "owner", "1"),
		objects(t, "vnf-1", ns, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: hpa},
			spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: auto}}}`)[0],
	}
	us[2].SetAnnotations(map[string]string{"cluster.x-k8s.io/replicas-managed-by": "x"})
	us[3].SetLabels(map[string]string{nf.OwnerLabel: "vnf-1", "topology.cluster.x-k8s.io/owned": ""})
	mustApply(t, c, "vnf-1", us...)
	_ = unstructured.SetNestedSlice(child.Object, []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(get(t, c, nf.RefOf(us[4])).GetUID()), "controller": true,
	}}, "metadata", "ownerReferences")
	theirs := objects(t, "vnf-2", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}`)[0]
	mustApply(t, c, "vnf-1", child)
	mustApply(t, c, "vnf-2", theirs)
	asClient(t, c, "/apis/apps/v1/namespaces/"+ns+"/deployments/clicked/scale", "kubectl", `{"spec": {"replicas": 2}}`)
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		number int64
		kind   nf.Kind
		want   string
	}{
		"autoscaler": {"an autoscaler is named", us[0], 2, nf.Conflict, "Deployment " + ns + "/auto: is scaled by HorizontalPodAutoscaler hpa"},
		"client":     {"another client is named", us[1], 3, nf.Conflict, "was scaled by the client kubectl; set force"},
		"annotation": {"a pool of Cluster API is named", us[2], 2, nf.Conflict, "replicas-managed-by=x"},
		"topology":   {"so is a topology", us[3], 2, nf.Conflict, "spec.topology"},
		"controller": {"the object's controller is named", child, 2, nf.Conflict, "is controlled by ConfigMap owner"},
		"no scale":   {"an object without a number", us[4], 2, nf.Unsupported, "has no scale subresource; give the path"},
		"others'":    {"an object of another instance", theirs, 2, nf.Conflict, "belongs to VNF instance vnf-2"},
		"absent":     {"an object that was deleted", deployment("gone"), 2, nf.NotFound, "it does not exist in the region"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Scaling(t.Context(), instance("vnf-1"), scalings(tc.object, tc.number, ""), false)
			if nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v (%v)", tc.reason, err, nf.KindOf(err))
			}
		})
	}
	if _, err := c.Scaling(t.Context(), instance("vnf-1"), []nf.Scaling{{Ref: nf.RefOf(us[1]), By: -3}}, true); nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "has 2 replicas: -3 would be -1") {
		t.Errorf("below 0: %v", err)
	}
	forced, err := c.Scaling(t.Context(), instance("vnf-1"), scalings(us[1], 3, ""), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Set(t.Context(), instance("vnf-1"), forced, false); err != nil || replicasOf(t, c, us[1]) != int64(3) {
		t.Errorf("force: %v, %v", replicasOf(t, c, us[1]), err)
	}
}

// TestScalingDenied has the account lack a permission.
func TestScalingDenied(t *testing.T) {
	c, r, ns := recorded(t)
	web := workloadOf(t, ns, "Deployment", "web", held, "replicas: 1,")
	mustApply(t, c, "vnf-1", web)
	settings, err := c.Scaling(t.Context(), instance("vnf-1"), scalings(web, 2, ""), false)
	if err != nil {
		t.Fatal(err)
	}
	account := c.As(ns + "/without-rights")
	for what, call := range map[string]func() error{
		`cannot get resource "deployments"`: func() error {
			_, err := account.Scaling(t.Context(), instance("vnf-1"), scalings(web, 2, ""), false)
			return err
		},
		`cannot get resource "deployments" in`: func() error {
			_, err := account.Set(t.Context(), instance("vnf-1"), settings, true)
			return err
		},
	} {
		if err := call(); nf.KindOf(err) != nf.Failed || nf.ReasonOf(err) != nf.ReasonForbidden || !strings.Contains(err.Error(), what) {
			t.Errorf("the error names the permission %q: %v", what, err)
		}
	}
	r.Reset()
	if _, err := c.Set(t.Context(), instance("vnf-1"), settings, false); err != nil {
		t.Fatal(err)
	}
	var patched []string
	for _, req := range r.Requests() {
		if req.Method == http.MethodPatch {
			patched = append(patched, req.Path)
		}
	}
	diff(t, "the scale subresource is used", []string{"/apis/apps/v1/namespaces/" + ns + "/deployments/web/scale"}, patched)
}

// TestScalingListsOnce scales workloads of one namespace.
func TestScalingListsOnce(t *testing.T) {
	c, r, ns := recorded(t)
	web, db := workloadOf(t, ns, "Deployment", "web", held, "replicas: 1,"), workloadOf(t, ns, "Deployment", "db", held, "replicas: 1,")
	mustApply(t, c, "vnf-1", web, db)
	r.Reset()
	if _, err := c.Scaling(t.Context(), instance("vnf-1"), []nf.Scaling{{Ref: nf.RefOf(web), By: 1}, {Ref: nf.RefOf(db), By: 1}}, false); err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, req := range r.Requests() {
		if strings.HasSuffix(req.Path, "/horizontalpodautoscalers") {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("the autoscalers were listed %d times, want once", lists)
	}
}

func TestRestarting(t *testing.T) {
	c, ns := sandbox(t)
	web := workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,")
	manual := workloadOf(t, ns, "StatefulSet", "manual", held, "updateStrategy: {type: OnDelete}, serviceName: db,")
	paused := workloadOf(t, ns, "Deployment", "paused", held, "paused: true,")
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", web), nf.Current)
	mustApply(t, c, "vnf-1", manual, paused)
	before := podNames(t, c, web)

	settings, err := c.Restarting(t.Context(), instance("vnf-1"), refs(web), json.RawMessage(`"now"`))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "there was no restart before", []nf.Setting{{Ref: nf.RefOf(web), Path: nf.RestartPath, Value: json.RawMessage(`"now"`)}}, settings)
	changes, err := c.Set(t.Context(), instance("vnf-1"), settings, false)
	if err != nil || changes[0].Action != nf.Configured {
		t.Fatalf("%v, %v", changes, err)
	}
	await(t.Context(), t, c, "vnf-1", changes, nf.Current)
	for name := range podNames(t, c, web) {
		if before[name] {
			t.Errorf("pod %s was not replaced", name)
		}
	}
	generation := get(t, c, nf.RefOf(web)).GetGeneration()
	if mustApply(t, c, "vnf-1", web); get(t, c, nf.RefOf(web)).GetGeneration() != generation {
		t.Error("an apply without the annotation restarts the pods again")
	}
	back, _ := settings[0].Reversed()
	if changes, err = c.Set(t.Context(), instance("vnf-1"), []nf.Setting{back}, false); err != nil || changes[0].Action != nf.Configured {
		t.Fatalf("%v, %v", changes, err)
	}
	if _, found := nf.At(get(t, c, nf.RefOf(web)).Object, nf.RestartPath); found {
		t.Error("the annotation is still there after the undo")
	}
	for want, u := range map[string]*unstructured.Unstructured{
		"its update strategy is OnDelete": manual, "it is paused": paused, "only a Deployment": configMap(t, "vnf-1", ns, "c", "1"),
	} {
		if u.GetKind() == "ConfigMap" {
			mustApply(t, c, "vnf-1", u)
		}
		if _, err := c.Restarting(t.Context(), instance("vnf-1"), refs(u), json.RawMessage(`"now"`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", u.GetName(), err)
		}
	}
}

// podNames returns the names of the pods of an object.
func podNames(t *testing.T, c *Cluster, u *unstructured.Unstructured) map[string]bool {
	t.Helper()
	pods, err := c.Pods(t.Context(), instance("vnf-1"), refs(u))
	if err != nil || len(pods) == 0 {
		t.Fatalf("pods: %v, %v", pods, err)
	}
	out := map[string]bool{}
	for _, p := range pods {
		if p.Status != nf.StatusDeleting {
			out[p.Name] = true
		}
	}
	return out
}
