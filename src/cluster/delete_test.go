package cluster

import (
	"cmp"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestDelete(t *testing.T) {
	c, ns := sandbox(t)
	mine, theirs := configMap(t, "vnf-1", ns, "mine", "1"), configMap(t, "vnf-2", ns, "theirs", "1")
	nobodys := unlabelled(configMap(t, "x", ns, "nobodys", "1"))
	made := mustApply(t, c, "vnf-1", mine)
	mustApply(t, c, "vnf-2", theirs)
	foreignApply(t, c, "kubectl", nobodys)
	gizmo := nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Namespace: ns, Name: "gizmo"}
	missing := nf.RefOf(configMap(t, "vnf-1", ns, "missing", "1"))

	all := append(refs(theirs, mine, nobodys), missing, gizmo)
	changes, err := c.Delete(t.Context(), instance("vnf-1"), all)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "only what exists and is the owner's is deleted", map[string]nf.Action{
		"theirs": nf.Kept, "mine": nf.Deleted, "nobodys": nf.Kept, "missing": nf.Unchanged, "gizmo": nf.Unchanged,
	}, actions(changes))
	for i := range all {
		if changes[i].Ref != all[i] {
			t.Errorf("change %d is of %v, want %v: the order is that of the refs", i, changes[i].Ref, all[i])
		}
	}
	diff(t, "what is kept says why", []string{"belongs to VNF instance vnf-2", "was made by kubectl"}, []string{changes[0].Said().String(), changes[2].Said().String()})
	diff(t, "the instance is listed", [][]string{{"vnf-2"}, nil}, [][]string{mentionedIn(changes[0].Said()), mentionedIn(changes[2].Said())})
	if changes[1].UID != made[0].UID {
		t.Errorf("the deleted object's uid is %q, want %q", changes[1].UID, made[0].UID)
	}
	await(t.Context(), t, c, "vnf-1", changes[1:2], nf.Absent)
	for _, u := range refs(theirs, nobodys) {
		if get(t, c, u) == nil {
			t.Errorf("%v was removed, and is not the owner's", u)
		}
	}
	again, err := c.Delete(t.Context(), instance("vnf-1"), refs(mine))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "repeating it changes nothing", map[string]nf.Action{"mine": nf.Unchanged}, actions(again))
}

// TestDeleteOfReplacedObject lets another client delete and remake the object between
// our looking and our deleting.
func TestDeleteOfReplacedObject(t *testing.T) {
	c, r, ns := recorded(t)
	mine := configMap(t, "vnf-1", ns, "a", "1")
	mustApply(t, c, "vnf-1", mine)
	direct := openAt(t, clustertest.Kubeconfig(t))
	r.Fail(clustertest.Times(1, func(q clustertest.Request) bool { return q.Method == "DELETE" }), func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		deleteForeign(t, direct, mine)
		foreignApply(t, direct, "kubectl", unlabelled(mine.DeepCopy()))
		next.ServeHTTP(w, q)
	})
	changes, err := c.Delete(t.Context(), instance("vnf-1"), refs(mine))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "the object that took its place is somebody else's", map[string]nf.Action{"a": nf.Kept}, actions(changes))
}

// TestDeleteOfDefinition deletes the CustomResourceDefinition of a kind of which others have
// objects: the API server would delete them, too.
func TestDeleteOfDefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		owner  string // of the object of the kind; empty: none
		want   nf.Action
	}{
		"Own":      {"the instance's objects go with it", "vnf-1", nf.Deleted},
		"Others'":  {"the objects of another instance must stay", "vnf-2", nf.Orphaned},
		"Nobody's": {"objects without an instance must stay, too", "", nf.Orphaned},
	} {
		t.Run(name, func(t *testing.T) {
			c, ns := sandbox(t)
			all := objects(t, "vnf-1", ns, definition(ns+".example.org", "Namespaced"))
			crd, gizmo := all[0], all[1]
			crd.SetNamespace("")
			await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", crd), nf.Current)
			owner := cmp.Or(tc.owner, "vnf-4")
			gizmo.SetLabels(map[string]string{nf.OwnerLabel: owner})
			mustApply(t, c, owner, gizmo)
			if tc.owner == "" {
				if _, err := c.Orphan(t.Context(), instance(owner), refs(gizmo)); err != nil {
					t.Fatal(err)
				}
			}
			changes, err := c.Delete(t.Context(), instance("vnf-1"), refs(crd))
			if err != nil {
				t.Fatal(err)
			}
			if changes[0].Action != tc.want {
				t.Errorf("%s: %+v", tc.reason, changes[0])
			}
			if tc.want == nf.Deleted {
				await(t.Context(), t, c, "vnf-1", changes, nf.Absent)
				return
			}
			if want := "remains, because its deletion would delete objects of its kind that do not belong to the owner: 1"; changes[0].Message != want {
				t.Errorf("%s: it says %q, want %q", tc.reason, changes[0].Message, want)
			}
			for _, u := range []*unstructured.Unstructured{crd, gizmo} {
				if live := get(t, c, nf.RefOf(u)); live == nil || live.GetDeletionTimestamp() != nil {
					t.Errorf("%s: %s is deleted", tc.reason, nf.RefOf(u))
				}
			}
			if label, _ := instance("vnf-1").Label(); get(t, c, nf.RefOf(crd)).GetLabels()[label] != "" {
				t.Errorf("%s: the definition has an owner still", tc.reason)
			}
			again := objects(t, "vnf-3", ns, definition(ns+".example.org", "Namespaced"))[0]
			again.SetNamespace("")
			mustApply(t, c, "vnf-3", again) // another instance takes it over
			deleteForeign(t, c, crd)
		})
	}
}

// TestDeleteDoesNotWaitForNothing removes a kind that owns nothing at once, even
// if another client has made it an owner: only workloads and unknown kinds wait for
// the objects that they own.
func TestDeleteDoesNotWaitForNothing(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	owner := configMap(t, vnf, ns, "owner", "1")
	made := mustApply(t, c, vnf, owner)
	below := unlabelled(configMap(t, "x", ns, "below", "1"))
	below.SetFinalizers([]string{"example.org/hold"})
	block := true
	below.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: types.UID(made[0].UID), BlockOwnerDeletion: &block}})
	foreignApply(t, c, "kubectl", below)
	defer func() {
		below.SetFinalizers(nil)
		foreignApply(t, c, "kubectl", below)
	}()
	changes, err := c.Delete(t.Context(), instance(vnf), refs(owner))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "it is deleted", map[string]nf.Action{"owner": nf.Deleted}, actions(changes))
	if live := get(t, c, nf.RefOf(owner)); live != nil {
		t.Errorf("it is there still: %v", live.Object["metadata"])
	}
}
