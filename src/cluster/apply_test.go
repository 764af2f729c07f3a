package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestApply(t *testing.T) {
	c, ns := sandbox(t)
	a, b := configMap(t, "vnf-1", ns, "a", "1"), configMap(t, "vnf-1", ns, "b", "1")

	first := mustApply(t, c, "vnf-1", a, b)
	diff(t, "objects that are not there are created", map[string]nf.Action{"a": nf.Created, "b": nf.Created}, actions(first))
	if first[0].UID == "" || first[0].Ref != nf.RefOf(a) {
		t.Errorf("a change tells the object and its uid: %+v", first[0])
	}

	b2 := configMap(t, "vnf-1", ns, "b", "2")
	second := mustApply(t, c, "vnf-1", a, b2)
	diff(t, "only what differs is configured", map[string]nf.Action{"a": nf.Unchanged, "b": nf.Configured}, actions(second))
	diff(t, "the order is that of the objects", refs(a, b2), []nf.Ref{second[0].Ref, second[1].Ref})

	foreignApply(t, c, "someone", drifted(b2, "3"))
	third := mustApply(t, c, "vnf-1", a, b2)
	diff(t, "the owner's object that drifted is taken back", map[string]nf.Action{"a": nf.Unchanged, "b": nf.Configured}, actions(third))
	if v := get(t, c, nf.RefOf(b)).Object["data"].(map[string]any)["key"]; v != "2" {
		t.Errorf("b is %q after the drift was undone, want 2", v)
	}
}

func drifted(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
	out := u.DeepCopy()
	out.Object["data"] = map[string]any{"key": value}
	return out
}

func TestApplyRefuses(t *testing.T) {
	c, ns := sandbox(t)
	deployment := func(spec string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + spec + `}}`
	}
	template := `selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`
	cases := map[string]struct {
		reason  string
		object  string
		want    nf.Kind
		field   string
		message string
	}{
		"unknown field": {
			reason: "a field that the schema lacks must not be dropped in silence",
			object: deployment(template + `, replica: 1`), want: nf.Invalid, field: "Deployment web", message: ".spec.replica: ",
		},
		"wrong type": {
			reason: "a value of the wrong type is the object's fault",
			object: deployment(template + `, replicas: one`), want: nf.Invalid, field: "Deployment web", message: ".spec.replicas: ",
		},
		"invalid value": {
			reason: "the violation names the field as the API server does",
			object: deployment(template + `, replicas: -1`), want: nf.Invalid, field: "Deployment web: spec.replicas", message: "Invalid value: -1",
		},
		"unknown kind": {
			reason: "a kind that the region does not serve",
			object: `{apiVersion: example.org/v1, kind: Gizmo, metadata: {name: g}}`, want: nf.Unsupported, field: "Gizmo g", message: "example.org/v1",
		},
		"path as name": {
			reason: "a name must not lead to another object",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: ../secrets/s}}`, want: nf.Invalid, field: "ConfigMap ../secrets/s: metadata.name", message: "may not contain",
		},
		"no name": {
			reason: "an object without a name cannot be applied again",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: g-}}`, want: nf.Invalid, field: "ConfigMap : metadata.name", message: "is missing",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changes, err := c.Apply(t.Context(), instance("vnf-1"), objects(t, "vnf-1", ns, tc.object))
			v := nf.ViolationsOf(err)
			if nf.KindOf(err) != tc.want || len(v) == 0 || fieldIn(v[0]) != tc.field || !strings.Contains(v[0].Said().String(), tc.message) {
				t.Errorf("%s: kind %v, violations %v, error %v", tc.reason, nf.KindOf(err), v, err)
			}
			if len(changes) > 0 {
				t.Errorf("%s: nothing was done, yet changes are %v", tc.reason, changes)
			}
		})
	}
}

func TestApplyIntoNoNamespace(t *testing.T) {
	c := openAt(t, clustertest.Kubeconfig(t))
	_, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", clustertest.Namespace(t), "a", "1")})
	wantKind(t, err, nf.NotFound)
}

func TestApplyConflict(t *testing.T) {
	c, ns := sandbox(t)
	mine := configMap(t, "vnf-1", ns, "a", "1")
	cases := map[string]struct {
		reason  string
		theirs  *unstructured.Unstructured
		manager string
		who     string
		ids     []string // mentioned
	}{
		"another instance": {
			reason: "an object of another instance is not touched",
			theirs: configMap(t, "vnf-2", ns, "a", "2"), manager: manager(instance("vnf-2")), who: "belongs to VNF instance vnf-2", ids: []string{"vnf-2"},
		},
		"another instance without the label": {
			reason: "the field manager of an instance has its id",
			theirs: unlabelled(configMap(t, "x", ns, "a", "2")), manager: manager(instance("vnf-2")), who: "was made by VNF instance vnf-2", ids: []string{"vnf-2"},
		},
		"nobody's": {
			reason: "an object without an owner is not taken over",
			theirs: unlabelled(configMap(t, "x", ns, "a", "2")), manager: "kubectl", who: "was made by kubectl",
		},
		"the same content": {
			reason: "an object without an owner is not taken over even if no field of it differs",
			theirs: unlabelled(configMap(t, "x", ns, "a", "1")), manager: "kubectl", who: "was made by kubectl",
		},
	}
	for name, tc := range cases {
		both(t, name, c, func(t *testing.T, apply applyFunc) {
			foreignApply(t, c, tc.manager, tc.theirs)
			before := get(t, c, nf.RefOf(tc.theirs))
			changes, err := apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{mine})
			wantKind(t, err, nf.Conflict)
			if v := nf.ViolationsOf(err); len(v) == 0 || fieldIn(v[0]) != "ConfigMap a" || v[0].Said().String() != tc.who {
				t.Errorf("%s: violations are %v, want the first to say %q", tc.reason, v, tc.who)
			}
			for _, v := range nf.ViolationsOf(err) {
				if strings.Contains(v.Message, managerPrefix) || strings.Contains(v.Message, "vnf-2") {
					t.Errorf("%s: an instance is not in the mentions of a message: %+v", tc.reason, v)
				}
			}
			diff(t, tc.reason+": mentions", tc.ids, mentionedIn(nf.TextOf(err)))
			if len(changes) > 0 {
				t.Errorf("%s: changes are %v", tc.reason, changes)
			}
			after := get(t, c, nf.RefOf(tc.theirs))
			diff(t, tc.reason+": data", before.Object["data"], after.Object["data"])
			diff(t, tc.reason+": labels", before.GetLabels(), after.GetLabels())
			deleteForeign(t, c, after)
		})
	}
}

type applyFunc = func(context.Context, nf.Subject, []*unstructured.Unstructured) ([]nf.Change, error)

// both runs a test with Apply and with ApplyNew.
func both(t *testing.T, name string, c *Cluster, test func(*testing.T, applyFunc)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { test(t, c.Apply) })
	t.Run(name+", new", func(t *testing.T) { test(t, c.ApplyNew) })
}

// mentionedIn returns the ids of the instances that a text mentions, each once.
func mentionedIn(text nf.Text) []string {
	var ids []string
	for _, m := range text.Mentions {
		ids = append(ids, m.Instance)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func unlabelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(nil)
	return u
}

func deleteForeign(t *testing.T, c *Cluster, u *unstructured.Unstructured) {
	t.Helper()
	ks, err := c.client.apis.kinds(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(u.GroupVersionKind())
	if err := k.at(c.client.verb(http.MethodDelete), u.GetNamespace(), u.GetName()).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
}

// TestApplyOfUnlabelledObject applies an object of the owner whose label another
// client has removed: nothing of it may be lost.
func TestApplyOfUnlabelledObject(t *testing.T) {
	c, ns := sandbox(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, c, "vnf-1", u)
	err := c.client.verb(http.MethodPatch).SetHeader("Content-Type", string(types.MergePatchType)).AbsPath("/api/v1/namespaces", ns, "configmaps/a").
		Body([]byte(`{"metadata":{"labels":null}}`)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "it is ours still, for nobody else put anything into it",
		map[string]nf.Action{"a": nf.Configured}, actions(mustApply(t, c, "vnf-1", u)))
	live := get(t, c, nf.RefOf(u))
	diff(t, "it bears the label again", u.GetLabels(), live.GetLabels())
	diff(t, "its content is as it was", u.Object["data"], live.Object["data"])
}

func TestApplyOfDeletingObject(t *testing.T) {
	c, ns := sandbox(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	u.SetFinalizers([]string{"example.org/wait"})
	mustApply(t, c, "vnf-1", u)
	deleteForeign(t, c, u)
	_, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{u})
	wantKind(t, err, nf.Busy)
	u.SetFinalizers([]string{}) // let it go
	_, _ = c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{u})
}

// TestApplyAsksLittle is the promise on which the benchmark rests.
func TestApplyAsksLittle(t *testing.T) {
	c, r, ns := recorded(t)
	var us []*unstructured.Unstructured
	for i := range 20 {
		us = append(us, configMap(t, "vnf-1", ns, fmt.Sprintf("m%d", i), "1"))
	}
	if _, err := c.client.apis.kinds(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r.Reset()
	mustApply(t, c, "vnf-1", us...)
	count := map[string]int{}
	for _, q := range r.Requests() {
		count[q.Method]++
	}
	diff(t, "one list for the kind and one patch for each object", map[string]int{"GET": 1, "PATCH": 20}, count)
	var more []*unstructured.Unstructured
	for i := range 20 {
		more = append(more, configMap(t, "vnf-1", ns, fmt.Sprintf("n%d", i), "1"))
	}
	r.Reset()
	changes, err := c.ApplyNew(t.Context(), instance("vnf-1"), more)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		if change.Action != nf.Created || change.UID == "" {
			t.Errorf("a new object is created: %+v", change)
		}
	}
	clear(count)
	for _, q := range r.Requests() {
		count[q.Method]++
	}
	diff(t, "nothing is listed for new objects", map[string]int{"PATCH": 20}, count)
}

func TestApplyStopsAtTheFirstError(t *testing.T) {
	_, r, ns := recorded(t)
	c, err := New(PoolConfig{Parallel: 1, Hosts: outbound.Hosts{}.WithLoopback()}).Open("test", accessTo(t, r.Kubeconfig()))
	if err != nil {
		t.Fatal(err)
	}
	bad := configMap(t, "vnf-1", ns, "b", "1")
	bad.Object["wrong"] = true
	changes, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{
		configMap(t, "vnf-1", ns, "a", "1"), bad, configMap(t, "vnf-1", ns, "c", "1"),
	})
	wantKind(t, err, nf.Invalid)
	diff(t, "changes tell of what was done before the error", map[string]nf.Action{"a": nf.Created}, actions(changes))
	for _, q := range r.Requests() {
		if strings.HasSuffix(q.Path, "/configmaps/c") {
			t.Errorf("%v was sent after an object had failed", q)
		}
	}
}

func TestApplyThroughFaults(t *testing.T) {
	patches := func(q clustertest.Request) bool { return q.Method == "PATCH" }
	cases := map[string]struct {
		reason string
		spoil  clustertest.Fault
	}{
		"dropped": {reason: "a request that got lost is sent again", spoil: clustertest.Drop},
		"lost":    {reason: "an object whose response was lost belongs to this owner", spoil: clustertest.Lose},
		"throttled": {reason: "429 is obeyed",
			spoil: clustertest.Status(429, "Retry-After", "0")},
		"unavailable": {reason: "503 passes", spoil: clustertest.Status(503)},
	}
	for name, tc := range cases {
		c, r, _ := recorded(t)
		both(t, name, c, func(t *testing.T, apply applyFunc) {
			ns := newNamespace(t)
			defer r.Fail(clustertest.Times(2, patches), tc.spoil)()
			changes, err := apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{configMap(t, "vnf-1", ns, "a", "1")})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			diff(t, tc.reason, map[string]nf.Action{"a": nf.Created}, actions(changes))
		})
	}
}

func TestApplyOfAdoptedNamespace(t *testing.T) {
	c, ns := sandbox(t)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(ns)
	label(u, "vnf-1")
	diff(t, "a package may hold the namespace that was made for it",
		map[string]nf.Action{ns: nf.Configured}, actions(mustApply(t, c, "vnf-1", u)))
	other := u.DeepCopy()
	label(other, "vnf-2")
	_, err := c.Apply(t.Context(), instance("vnf-2"), []*unstructured.Unstructured{other})
	wantKind(t, err, nf.Conflict)
}
