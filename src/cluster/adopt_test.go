package cluster

import (
	"encoding/json"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestAdopt takes over what two ways of releasing a chart have made.
func TestAdopt(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	selector := nf.AdoptionSelector{Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": ns}}
	released := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = unlabelled(u)
		u.SetAnnotations(selector.Annotations)
		return u
	}
	web := released(workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,"))
	old := released(configMap(t, "x", ns, "old", "1"))
	foreignApply(t, c, "helm", web)
	foreignCreate(t, c, "helm", old)
	foreignApply(t, c, "kubectl", unlabelled(configMap(t, "x", ns, "theirs", "1")))
	theirs, missing := nf.RefOf(configMap(t, "x", ns, "theirs", "1")), nf.RefOf(configMap(t, "x", ns, "missing", "1"))
	was := get(t, c, nf.RefOf(web))
	pods := func() map[string]bool {
		out := map[string]bool{}
		for _, p := range list(t, c, nf.Ref{Version: "v1", Kind: "Pod", Namespace: ns}) {
			out[string(p.GetUID())] = true
		}
		return out
	}
	if _, err := c.Ensure(t.Context(), []*unstructured.Unstructured{web}); err != nil { // which waits for its pods
		t.Fatal(err)
	}
	before := pods()

	wanted := []*unstructured.Unstructured{configMap(t, vnf, ns, "old", "1"), configMap(t, vnf, ns, "missing", "1")}
	if _, err := c.PreflightAdopt(t.Context(), instance(vnf), inside(ns), selector, wanted); err != nil {
		t.Fatalf("what bears the claim is in nobody's way: %v", err)
	}
	_, err := c.Preflight(t.Context(), instance(vnf), inside(ns), wanted)
	wantKind(t, err, nf.Conflict)
	_, err = c.PreflightAdopt(t.Context(), instance(vnf), inside(ns), nf.AdoptionSelector{}, wanted)
	wantKind(t, err, nf.Conflict)
	for _, action := range []nf.Action{nf.Adopted, nf.Unchanged} {
		changes, err := c.Adopt(t.Context(), instance(vnf), selector, []nf.Ref{nf.RefOf(web), nf.RefOf(old), missing})
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "what is there becomes the owner's, once", map[string]nf.Action{"web": action, "old": action, "missing": nf.Unchanged}, actions(changes))
	}
	_, err = c.Adopt(t.Context(), instance(vnf), selector, []nf.Ref{theirs})
	wantKind(t, err, nf.Conflict)
	// The object still has the claim, but another owner cannot adopt it by that.
	_, err = c.PreflightAdopt(t.Context(), instance("vnf-2"), inside(ns), selector, wanted)
	wantKind(t, err, nf.Conflict)
	_, err = c.Adopt(t.Context(), instance("vnf-2"), selector, []nf.Ref{nf.RefOf(old)})
	wantKind(t, err, nf.Conflict)

	is := get(t, c, nf.RefOf(web))
	diff(t, "what it is stays", was.Object["spec"], is.Object["spec"])
	if is.GetGeneration() != was.GetGeneration() || is.GetLabels()[nf.OwnerLabel] != vnf {
		t.Errorf("its generation went from %d to %d, its labels are %v", was.GetGeneration(), is.GetGeneration(), is.GetLabels())
	}
	diff(t, "no pod is restarted", before, pods())

	// The owner of the fields can remove them again.
	next := objects(t, vnf, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: old}, data: {other: "2"}}`)[0]
	mustApply(t, c, vnf, next)
	live := get(t, c, nf.RefOf(next))
	diff(t, "a field that is not wanted any more goes", next.Object["data"], live.Object["data"])
	if len(live.GetAnnotations()) != 0 {
		t.Errorf("the release's marks stay: %v", live.GetAnnotations())
	}
}

// foreignCreate makes an object as clients do that do not apply.
func foreignCreate(t *testing.T, c *Cluster, manager string, u *unstructured.Unstructured) {
	t.Helper()
	body, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	ks, err := c.client.apis.kinds(t.Context(), gvksOf([]nf.Ref{nf.RefOf(u)}))
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(u.GroupVersionKind())
	if err := k.at(c.client.verb(http.MethodPost), u.GetNamespace(), "").Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	// And as they change them.
	patch := []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`)
	if err := k.at(c.client.verb(http.MethodPatch).SetHeader("Content-Type", string(types.MergePatchType)), u.GetNamespace(), u.GetName()).Param("fieldManager", manager).Body(patch).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// TestAdoptUnowned adopts the objects that no owner has, and gives one back.
func TestAdoptUnowned(t *testing.T) {
	c, ns := sandbox(t)
	left, free, theirs := configMap(t, "vnf-1", ns, "left", "1"), unlabelled(configMap(t, "x", ns, "free", "1")), configMap(t, "vnf-3", ns, "theirs", "1")
	mustApply(t, c, "vnf-1", left)
	if _, err := c.Orphan(t.Context(), instance("vnf-1"), refs(left)); err != nil {
		t.Fatal(err)
	}
	foreignApply(t, c, "kubectl", free)
	mustApply(t, c, "vnf-3", theirs)
	run := objects(t, "x", ns, "{apiVersion: v1, kind: Pod, metadata: {name: run}, spec: {containers: [{name: main, image: nowhere/main}]}}")[0]
	run = unlabelled(run)
	controlled := true
	run.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "run", UID: "1", Controller: &controlled}})
	former := get(t, c, nf.RefOf(free))
	selector := nf.AdoptionSelector{Unowned: true}
	wanted := []*unstructured.Unstructured{configMap(t, "vnf-2", ns, "left", "2"), configMap(t, "vnf-2", ns, "free", "2"), configMap(t, "vnf-2", ns, "missing", "2")}
	found, err := c.PreflightAdopt(t.Context(), instance("vnf-2"), inside(ns), selector, wanted)
	if err != nil {
		t.Fatal(err)
	}
	said := func(changes []nf.Change) map[string]string {
		out := map[string]string{}
		for _, c := range changes {
			out[c.Name] = string(c.Action) + ": " + c.Message
		}
		return out
	}
	origins := map[string]string{"left": "adopted: " + nf.Textf("was left in place by %s", nf.Mention("vnf-1")).Message, "free": "adopted: was made by kubectl"}
	diff(t, "each object that would be adopted is named with its origin", origins, said(found))
	compared, err := c.Diff(t.Context(), instance("vnf-2"), selector, wanted)
	if err != nil {
		t.Fatal(err)
	}
	origins["missing"] = "created: "
	diff(t, "a dry run says the same", origins, said(compared))
	_, err = c.PreflightAdopt(t.Context(), instance("vnf-2"), inside(ns), selector, []*unstructured.Unstructured{configMap(t, "vnf-2", ns, "theirs", "2")})
	wantKind(t, err, nf.Conflict)
	if isAdoptable(instance("vnf-2"), run, selector) || !isAdoptable(instance("vnf-2"), unlabelled(wanted[0].DeepCopy()), selector) {
		t.Error("an object with a controller is not free")
	}
	_, err = c.PreflightAdopt(t.Context(), instance("vnf-2"), inside(ns), selector, objects(t, "vnf-2", ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: left}, daata: {}}"))
	wantKind(t, err, nf.Invalid)

	taken, err := c.Adopt(t.Context(), instance("vnf-2"), selector, refs(wanted...))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "what is there becomes the owner's", map[string]nf.Action{"left": nf.Adopted, "free": nf.Adopted, "missing": nf.Unchanged}, actions(taken))
	diff(t, "and is applied, also against the fields of its former manager", map[string]nf.Action{"left": nf.Configured, "free": nf.Configured, "missing": nf.Created}, actions(mustApply(t, c, "vnf-2", wanted...)))
	_, err = c.Adopt(t.Context(), instance("vnf-4"), selector, refs(wanted...))
	wantKind(t, err, nf.Conflict)

	was := former.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(was.Object, "metadata", field)
	}
	was.SetLabels(map[string]string{nf.OwnerLabel: "vnf-2"})
	if _, err := c.Correct(t.Context(), instance("vnf-2"), []*unstructured.Unstructured{was}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Orphan(t.Context(), instance("vnf-2"), refs(free)); err != nil {
		t.Fatal(err)
	}
	is := get(t, c, nf.RefOf(free))
	diff(t, "its former content can be restored", former.Object["data"], is.Object["data"])
	diff(t, "and it has no owner", former.GetLabels(), is.GetLabels())
}
