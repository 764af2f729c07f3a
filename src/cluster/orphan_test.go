package cluster

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestOrphan(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	mine, web := configMap(t, vnf, ns, "mine", "1"), workloadOf(t, ns, "Deployment", "web", scheduled, "replicas: 2,")
	theirs, nobodys := configMap(t, "vnf-2", ns, "theirs", "1"), unlabelled(configMap(t, "x", ns, "nobodys", "1"))
	made := mustApply(t, c, vnf, mine, web)
	mustApply(t, c, "vnf-2", theirs)
	foreignApply(t, c, "kubectl", nobodys)
	await(t.Context(), t, c, vnf, made, nf.Current)
	pods := func() map[string]string {
		out := map[string]string{}
		for _, p := range list(t, c, nf.Ref{Version: "v1", Kind: "Pod", Namespace: ns}) {
			out[string(p.GetUID())] = p.GetLabels()[nf.OwnerLabel]
		}
		return out
	}
	before, spec := pods(), get(t, c, nf.RefOf(web)).Object["spec"]
	missing := nf.RefOf(configMap(t, vnf, ns, "missing", "1"))
	gizmo := nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Namespace: ns, Name: "gizmo"}
	all := append(refs(theirs, mine, nobodys, web), missing, gizmo)

	for _, reason := range []string{"only what exists and is the owner's is left", "repeating it changes nothing"} {
		changes, err := c.Orphan(t.Context(), instance(vnf), all)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, reason, map[string]nf.Action{
			"theirs": nf.Kept, "mine": nf.Orphaned, "nobodys": nf.Kept, "web": nf.Orphaned, "missing": nf.Unchanged, "gizmo": nf.Unchanged,
		}, actions(changes))
		if changes[1].UID != made[0].UID || changes[1].Ref != nf.RefOf(mine) || changes[0].Said().String() != "belongs to VNF instance vnf-2" {
			t.Errorf("%s: the changes are %+v", reason, changes)
		}
	}
	for _, u := range []*unstructured.Unstructured{mine, web} {
		live := get(t, c, nf.RefOf(u))
		if _, labelled := live.GetLabels()[nf.OwnerLabel]; labelled {
			t.Errorf("%v bears the owner's label still", nf.RefOf(u))
		}
		for _, f := range live.GetManagedFields() {
			if f.Manager == manager(instance(vnf)) || f.Manager == "before-first-apply" {
				t.Errorf("%v has the field manager %s", nf.RefOf(u), f.Manager)
			}
		}
	}
	diff(t, "the pod template is as it was, with its labels", spec, get(t, c, nf.RefOf(web)).Object["spec"])
	diff(t, "no pod is restarted", before, pods())
	diff(t, "the content stays", mine.Object["data"], get(t, c, nf.RefOf(mine)).Object["data"])

	deleted, err := c.Delete(t.Context(), instance(vnf), refs(mine))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "it is not the owner's any more", map[string]nf.Action{"mine": nf.Kept}, actions(deleted))
	_, err = c.Preflight(t.Context(), instance("vnf-2"), inside(ns), []*unstructured.Unstructured{configMap(t, "vnf-2", ns, "mine", "1")})
	wantKind(t, err, nf.Conflict)
	wasLeft := nf.Textf("was left in place by %s", nf.Mention("vnf-1"))
	diff(t, "nor anybody else's", nf.Violations{{Object: nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: "mine"}, Message: wasLeft.Message, Mentions: wasLeft.Mentions}}, nf.ViolationsOf(err))
}

// TestOrphanIsFree lets another owner adopt an object that was left.
func TestOrphanIsFree(t *testing.T) {
	c, ns := sandbox(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, c, "vnf-1", u)
	if _, err := c.Orphan(t.Context(), instance("vnf-1"), refs(u)); err != nil {
		t.Fatal(err)
	}
	theirs := configMap(t, "vnf-2", ns, "a", "2")
	ks, err := c.client.apis.kinds(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := ks.exact(u.GroupVersionKind())
	a := application{client: c.client, target: target{nf.RefOf(u), k, true}, object: theirs}
	build, err := a.request("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if err := build().Do(t.Context()).Error(); err != nil {
		t.Errorf("whoever applies it, without force, is in conflict with nobody: %v", err)
	}
	changes, err := c.Orphan(t.Context(), instance("vnf-1"), refs(u))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "what somebody has taken over is theirs", map[string]nf.Action{"a": nf.Kept}, actions(changes))
}

func TestOrphanThroughFaults(t *testing.T) {
	patches := func(q clustertest.Request) bool { return q.Method == "PATCH" }
	cases := map[string]struct {
		reason string
		spoil  func(t *testing.T, direct *Cluster, u *unstructured.Unstructured) clustertest.Fault
		want   nf.Action
	}{
		"lost": {
			"what was done is not done again",
			func(*testing.T, *Cluster, *unstructured.Unstructured) clustertest.Fault { return clustertest.Lose }, nf.Orphaned,
		},
		"changed": {
			"somebody changes the object in between",
			func(t *testing.T, direct *Cluster, u *unstructured.Unstructured) clustertest.Fault {
				return func(w http.ResponseWriter, q *http.Request, next http.Handler) {
					foreignApply(t, direct, "someone", drifted(u, "3"))
					next.ServeHTTP(w, q)
				}
			}, nf.Orphaned,
		},
		"made anew": {
			"somebody else's object takes its place in between",
			func(t *testing.T, direct *Cluster, u *unstructured.Unstructured) clustertest.Fault {
				return func(w http.ResponseWriter, q *http.Request, next http.Handler) {
					deleteForeign(t, direct, u)
					foreignApply(t, direct, "kubectl", unlabelled(u.DeepCopy()))
					next.ServeHTTP(w, q)
				}
			}, nf.Kept,
		},
		"deleted": {
			"somebody deletes it in between",
			func(t *testing.T, direct *Cluster, u *unstructured.Unstructured) clustertest.Fault {
				return func(w http.ResponseWriter, q *http.Request, next http.Handler) {
					deleteForeign(t, direct, u)
					next.ServeHTTP(w, q)
				}
			}, nf.Unchanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, r, ns := recorded(t)
			u := configMap(t, "vnf-1", ns, "a", "1")
			mustApply(t, c, "vnf-1", u)
			r.Fail(clustertest.Times(1, patches), tc.spoil(t, openAt(t, clustertest.Kubeconfig(t)), u))
			changes, err := c.Orphan(t.Context(), instance("vnf-1"), refs(u))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			diff(t, tc.reason, map[string]nf.Action{"a": tc.want}, actions(changes))
		})
	}
}

func TestOrphanOfUnwritableObject(t *testing.T) {
	c, r, ns := recorded(t)
	u := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, c, "vnf-1", u)
	heal := r.Fail(func(q clustertest.Request) bool { return q.Method == "PATCH" }, clustertest.Status(403))
	_, err := c.Orphan(t.Context(), instance("vnf-1"), refs(u))
	wantKind(t, err, nf.Failed)
	heal()
	r.Fail(func(q clustertest.Request) bool { return q.Method == "PATCH" }, clustertest.Status(409))
	_, err = c.Orphan(t.Context(), instance("vnf-1"), refs(u))
	wantKind(t, err, nf.Conflict)
}

// TestOrphanIsTakenBack lets the owner adopt again the object that it left in place.
func TestOrphanIsTakenBack(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	was := configMap(t, vnf, ns, "a", "1")
	mustApply(t, c, vnf, was)
	if _, err := c.Orphan(t.Context(), instance(vnf), refs(was)); err != nil {
		t.Fatal(err)
	}
	is := configMap(t, vnf, ns, "a", "2")
	if _, err := c.Preflight(t.Context(), instance(vnf), inside(ns), []*unstructured.Unstructured{is}); err != nil {
		t.Fatal(err)
	}
	changes := mustApply(t, c, vnf, is)
	diff(t, "it is changed, not made", map[string]nf.Action{"a": nf.Configured}, actions(changes))
	live := get(t, c, nf.RefOf(is))
	if live.GetLabels()[nf.OwnerLabel] != vnf {
		t.Errorf("its labels are %v", live.GetLabels())
	}
	diff(t, "it has its owner's content", is.Object["data"], live.Object["data"])
	deleted, err := c.Delete(t.Context(), instance(vnf), refs(is))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "and goes with him", map[string]nf.Action{"a": nf.Deleted}, actions(deleted))
}

// TestOrphanOfJob leaves a Job, to which the API server gives the labels of its template
// if it has none.
func TestOrphanOfJob(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	job := objects(t, vnf, ns, "{apiVersion: batch/v1, kind: Job, metadata: {name: run}, spec: {template: {metadata: {labels: {"+nf.OwnerLabel+": "+vnf+
		"}}, spec: {restartPolicy: Never, containers: [{name: main, image: nowhere/main}]}}}}")[0]
	mustApply(t, c, vnf, job)
	if _, err := c.Orphan(t.Context(), instance(vnf), refs(job)); err != nil {
		t.Fatal(err)
	}
	if owner := nf.OwnerOf(get(t, c, nf.RefOf(job)).GetLabels()); owner.ID != "" {
		t.Errorf("it still belongs to %s", owner)
	}
}
