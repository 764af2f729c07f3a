package cluster

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// manager returns the field manager of an owner: "k8splugin/x" for VNF instance
// x, "k8splugin/network/x" for network x. Each owner has its own, so that the API
// server also detects two owners that set the same field.
func manager(owner nf.Subject) string { return managerPrefix + nameOf(owner) }

const managerPrefix = "k8splugin/"

// nameOf returns an owner as field managers and annotations name it: a VNF
// instance by its id alone, another owner by its kind and id. No id contains a
// slash.
func nameOf(owner nf.Subject) string {
	if owner.Kind == nf.InstanceSubject {
		return owner.ID
	}
	return owner.String()
}

// named is the inverse of nameOf.
func named(name string) nf.Subject {
	if strings.Contains(name, "/") {
		return nf.SubjectOf(name)
	}
	return nf.Subject{Kind: nf.InstanceSubject, ID: name}
}

// ownedBy selects the objects of an owner, as nf.OwnerOf does.
func ownedBy(owner nf.Subject) string {
	label, value := owner.Label()
	selector := labels.SelectorFromSet(labels.Set{label: value}).String()
	if label != nf.OwnerLabel {
		selector += ",!" + nf.OwnerLabel
	}
	return selector
}

// otherOwner reports whether an object belongs to others, and returns a violation
// that names them.
func otherOwner(owner nf.Subject, ref nf.Ref, m metav1.Object) (theirs nf.Violation, yes bool) {
	theirs.Object = ref
	switch other := nf.OwnerOf(m.GetLabels()); {
	case other == owner:
		return nf.Violation{}, false
	case other.ID != "":
		return theirs.Saying(nf.Textf("belongs to %s", other.Mention())), true
	case ref.Kind == "Namespace" && ref.Group == "" && m.GetLabels()[nf.CreatedByLabel] == nf.CreatedBy:
		// A package may include the namespace that the service created for it.
		return nf.Violation{}, false
	}
	if former := orphanOf(m); former.ID != "" {
		return theirs.Saying(nf.Textf("was left in place by %s", former.Mention())), true
	}
	var managers []string
	for _, f := range m.GetManagedFields() {
		if f.Subresource == "" {
			managers = append(managers, f.Manager)
		}
	}
	slices.Sort(managers)
	if len(managers) == 0 {
		theirs.Message = "exists and is not ours"
		return theirs, true
	}
	var names []nf.Text
	for _, name := range slices.Compact(managers) {
		said := nf.Text{Message: name}
		if other, ok := strings.CutPrefix(name, managerPrefix); ok {
			said = named(other).Mention()
		}
		names = append(names, said)
	}
	return theirs.Saying(nf.Textf("was made by %s", nf.JoinTexts(names, ", "))), true
}

// ownershipConflict is otherOwner, except that an owner may apply an object that it
// orphaned itself, and a CustomResourceDefinition that any owner has left in place.
func ownershipConflict(owner nf.Subject, ref nf.Ref, m metav1.Object) (theirs nf.Violation, yes bool) {
	former := orphanOf(m)
	if former == owner || former.ID != "" && gvkOf(ref).GroupKind() == definitionKind {
		return nf.Violation{}, false
	}
	return otherOwner(owner, ref, m)
}

func notOwned(op string, v ...nf.Violation) error {
	return nf.E(nf.Conflict, op, "objects of others", nf.Violations(v))
}

// target is an object or a ref with its kind.
type target struct {
	ref    nf.Ref
	kind   kind
	served bool // the API server serves the kind
}

// keysOf returns the set of the targets' Ref.Key.
func keysOf(targets []target) map[string]bool {
	out := make(map[string]bool, len(targets))
	for _, t := range targets {
		out[t.ref.Key()] = true
	}
	return out
}

// ref returns the ref of an object of the scope.
func (p scope) ref(m *metav1.ObjectMeta) nf.Ref {
	return nf.Ref{Group: p.kind.Group, Version: p.kind.Version, Kind: p.kind.Kind, Namespace: m.Namespace, Name: m.Name}
}

// keysOf returns the Ref.Key of those targets that are in the scope.
func (p scope) keysOf(targets []target) []string {
	var out []string
	for _, t := range targets {
		if t.served && t.kind.in(t.ref.Namespace).key() == p.key() {
			out = append(out, t.ref.Key())
		}
	}
	return out
}

// scopesOf returns the scopes of the targets whose kinds are served, without
// duplicates.
func scopesOf(targets []target) []scope {
	var out []scope
	for _, t := range targets {
		if t.served {
			out = append(out, t.kind.in(t.ref.Namespace))
		}
	}
	slices.SortFunc(out, func(a, b scope) int { return cmp.Compare(a.key(), b.key()) })
	return slices.CompactFunc(out, func(a, b scope) bool { return a.key() == b.key() })
}

// filledByOthers reports whether a manager other than the given one has set
// fields of an object other than metadata.
func filledByOthers(m *metav1.ObjectMeta, manager string) bool {
	return slices.ContainsFunc(m.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		if f.Manager == manager || f.Subresource != "" || f.FieldsV1 == nil {
			return false
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
			return true
		}
		delete(fields, "f:metadata")
		return len(fields) > 0
	})
}

// check returns violations if an object cannot be addressed. Names must be
// single URL path segments, otherwise they would address another object. A
// namespace must be set if, and only if, the kind is namespaced.
func (k kind) check(u *unstructured.Unstructured) nf.Violations {
	var v nf.Violations
	wrong := func(field, message string) {
		v = append(v, nf.Violation{Object: nf.RefOf(u), Field: field, Message: message})
	}
	if u.GetName() == "" {
		wrong("metadata.name", "is missing")
	}
	for _, message := range rest.IsValidPathSegmentName(u.GetName()) {
		wrong("metadata.name", message)
	}
	for _, message := range rest.IsValidPathSegmentName(u.GetNamespace()) {
		wrong("metadata.namespace", message)
	}
	if k.namespaced != (u.GetNamespace() != "") {
		wrong("metadata.namespace", "does not go with the scope of the kind")
	}
	return v
}
