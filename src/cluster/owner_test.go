package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var network = nf.Subject{Kind: "network", ID: "x"}

// TestOwnersOfTwoKinds checks that an object belongs to an owner of one kind, and
// not to an owner of another kind that has the same id.
func TestOwnersOfTwoKinds(t *testing.T) {
	c, ns := sandbox(t)
	for name, tc := range map[string]struct {
		reason       string
		owner, other nf.Subject
		labels       map[string]string // of the owner's object
		noun         string
		mentions     []string
	}{
		"instance": {
			"an instance has its id alone on its objects", instance("x"), network,
			map[string]string{nf.OwnerLabel: "x"}, "VNF instance x", []string{"x"},
		},
		"network": {
			"another owner has its kind on them, too", network, instance("x"),
			map[string]string{nf.SubjectLabel: "network.x"}, "network x", nil,
		},
		"same-text": {
			"the id of an instance may be the value of a network's label", network, instance("network.x"),
			map[string]string{nf.SubjectLabel: "network.x"}, "network x", nil,
		},
		"two-labels": {
			"a client may set a network's label on an instance's object", instance("x"), network,
			map[string]string{nf.OwnerLabel: "x", nf.SubjectLabel: "network.x"}, "VNF instance x", []string{"x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mine := configMap(t, "", ns, name, "1")
			mine.SetLabels(tc.labels)
			if _, err := c.Apply(t.Context(), tc.owner, []*unstructured.Unstructured{mine}); err != nil {
				t.Fatal(err)
			}
			was := get(t, c, nf.RefOf(mine))
			for op, v := range refusals(t, c, tc.other, was) {
				diff(t, tc.reason+": "+op, []any{nf.RefOf(was), "belongs to " + tc.noun, tc.mentions}, []any{v.Object, v.Said().String(), mentionedIn(v.Said())})
			}
			is := get(t, c, nf.RefOf(was))
			diff(t, tc.reason+": it stays as it is", []any{tc.labels, was.Object["data"], managersOf(was)}, []any{is.GetLabels(), is.Object["data"], managersOf(is)})
			diff(t, tc.reason+": its owner lists it", nf.Current, healthOf(t, c, tc.owner, is))
			gone, err := c.Delete(t.Context(), tc.owner, refs(is))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, tc.reason+": its owner may delete it", map[string]nf.Action{name: nf.Deleted}, actions(gone))
		})
	}
}

// TestMarksOfOwner checks the marks of an owner on an object that it applies,
// orphans and adopts.
func TestMarksOfOwner(t *testing.T) {
	c, ns := sandbox(t)
	for name, tc := range map[string]struct {
		reason       string
		owner, other nf.Subject
		labels       map[string]string
		manager      string
		orphanedFrom string
		message      string
	}{
		"instance": {
			"existing objects have these marks", instance("x"), network,
			map[string]string{"k8splugin.io/rb-instance-id": "x"}, "k8splugin/x", "x", "was left in place by VNF instance x",
		},
		"network": {
			"the marks of another owner name its kind", network, instance("x"),
			map[string]string{"k8splugin.io/owner": "network.x"}, "k8splugin/network/x", "network/x", "was left in place by network x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mine := labelledFor(tc.owner, configMap(t, "", ns, name, "1"))
			if _, err := c.Apply(t.Context(), tc.owner, mine); err != nil {
				t.Fatal(err)
			}
			live := get(t, c, nf.RefOf(mine[0]))
			diff(t, tc.reason, tc.labels, live.GetLabels())
			diff(t, tc.reason, []string{tc.manager}, managersOf(live))

			if _, err := c.Orphan(t.Context(), tc.owner, refs(live)); err != nil {
				t.Fatal(err)
			}
			live = get(t, c, nf.RefOf(live))
			diff(t, tc.reason+": orphaned", map[string]string{orphanedAnnotation: tc.orphanedFrom}, live.GetAnnotations())
			diff(t, tc.reason+": orphaned", 0, len(live.GetLabels()))
			_, err := c.Preflight(t.Context(), tc.other, inside(ns), labelledFor(tc.other, live))
			if v := nf.ViolationsOf(err); len(v) != 1 || v[0].Said().String() != tc.message {
				t.Errorf("%s: the orphan is another's: %v", tc.reason, err)
			}

			selector := nf.AdoptionSelector{Annotations: live.GetAnnotations()}
			if _, err := c.Adopt(t.Context(), tc.owner, selector, refs(live)); err != nil {
				t.Fatal(err)
			}
			live = get(t, c, nf.RefOf(live))
			diff(t, tc.reason+": adopted", tc.labels, live.GetLabels())
			if managers := managersOf(live); !slices.Contains(managers, tc.manager) {
				t.Errorf("%s: the managers of the adopted object are %v", tc.reason, managers)
			}
			if label, _ := tc.other.Label(); strings.Contains(fmt.Sprint(live.Object), label) {
				t.Errorf("%s: the adopted object has a label of the other kind in its fields: %v", tc.reason, live.Object)
			}
		})
	}
}

// refusals returns the first violation of each call that an owner makes for an
// object that is not its own.
func refusals(t *testing.T, c *Cluster, owner nf.Subject, live *unstructured.Unstructured) map[string]nf.Violation {
	t.Helper()
	same := labelledFor(owner, live)
	differs := labelledFor(owner, live)
	_ = unstructured.SetNestedField(differs[0].Object, "2", "data", "key")
	selector := nf.AdoptionSelector{Labels: live.GetLabels()}
	out := map[string]nf.Violation{}
	for op, do := range map[string]func() error{
		"preflight": func() error { _, err := c.Preflight(t.Context(), owner, inside(live.GetNamespace()), same); return err },
		"preflight adopt": func() error {
			_, err := c.PreflightAdopt(t.Context(), owner, inside(live.GetNamespace()), selector, same)
			return err
		},
		"diff":           func() error { _, err := c.Diff(t.Context(), owner, nf.AdoptionSelector{}, same); return err },
		"apply the same": func() error { _, err := c.Apply(t.Context(), owner, same); return err },
		"apply":          func() error { _, err := c.Apply(t.Context(), owner, differs); return err },
		"adopt":          func() error { _, err := c.Adopt(t.Context(), owner, selector, refs(live)); return err },
	} {
		v := nf.ViolationsOf(do())
		if len(v) == 0 {
			t.Fatalf("%s succeeded", op)
		}
		out[op] = v[0]
		diff(t, "the message names no field manager", false, strings.Contains(v[len(v)-1].Message, managerPrefix))
	}
	for op, do := range map[string]func() ([]nf.Change, error){
		"delete": func() ([]nf.Change, error) { return c.Delete(t.Context(), owner, refs(live)) },
		"orphan": func() ([]nf.Change, error) { return c.Orphan(t.Context(), owner, refs(live)) },
	} {
		changes, err := do()
		if err != nil {
			t.Fatal(err)
		}
		diff(t, op, map[string]nf.Action{live.GetName(): nf.Kept}, actions(changes))
		out[op] = nf.Violation{Object: changes[0].Ref, Message: changes[0].Message, Mentions: changes[0].Mentions}
	}
	objects, err := c.Read(t.Context(), owner, refs(live))
	if err != nil || objects[0] != nil {
		t.Errorf("the object is listed: %v, %v", objects, err)
	}
	diff(t, "health", nf.Absent, healthOf(t, c, owner, live))
	return out
}

func healthOf(t *testing.T, c *Cluster, owner nf.Subject, u *unstructured.Unstructured) nf.Status {
	t.Helper()
	health, err := c.Health(t.Context(), owner, refs(u))
	if err != nil {
		t.Fatal(err)
	}
	return health[0].Status
}

// labelledFor returns what an owner would apply to get an object with the
// content of a live one.
func labelledFor(owner nf.Subject, live *unstructured.Unstructured) []*unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": live.DeepCopy().Object["data"]}}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetNamespace(live.GetNamespace())
	u.SetName(live.GetName())
	label, value := owner.Label()
	u.SetLabels(map[string]string{label: value})
	return []*unstructured.Unstructured{u}
}

func managersOf(u *unstructured.Unstructured) []string {
	var out []string
	for _, f := range u.GetManagedFields() {
		out = append(out, f.Manager)
	}
	return out
}
