package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// manager is the field manager of an owner. Each instance has one of its own,
// so that the API server too notices when two of them want the same field.
func manager(owner string) string { return "k8splugin/" + owner }

// ownedBy selects the objects of an owner.
func ownedBy(owner string) string {
	return labels.SelectorFromSet(labels.Set{nf.OwnerLabel: owner}).String()
}

// foreign says who an object belongs to, unless it is the owner's.
func foreign(owner string, ref nf.Ref, m metav1.Object) (who string, yes bool) {
	switch other := m.GetLabels()[nf.OwnerLabel]; {
	case other == owner:
		return "", false
	case other != "":
		return "belongs to VNF instance " + other, true
	case ref.Kind == "Namespace" && ref.Group == "" && m.GetLabels()[nf.MadeByLabel] == nf.MadeBy:
		// A package may hold the namespace that we made for it.
		return "", false
	}
	if former := orphanOf(m); former != "" {
		return "was left in place by VNF instance " + former, true
	}
	var managers []string
	for _, f := range m.GetManagedFields() {
		if f.Subresource == "" {
			managers = append(managers, f.Manager)
		}
	}
	slices.Sort(managers)
	if len(managers) == 0 {
		return "exists and is not ours", true
	}
	return "was made by " + strings.Join(slices.Compact(managers), ", "), true
}

// inTheWay says who an object belongs to, unless the owner may apply it: what he
// has left in place himself he may take back.
func inTheWay(owner string, ref nf.Ref, m metav1.Object) (who string, yes bool) {
	if orphanOf(m) == owner {
		return "", false
	}
	return foreign(owner, ref, m)
}

func notOurs(op string, v nf.Violations) error {
	return nf.E(nf.Conflict, op, "objects of others", v)
}

// target is an object or a ref, with the kind that it is of.
type target struct {
	ref    nf.Ref
	kind   kind
	served bool // the API server knows the kind
}

// owned returns the metadata of those targets that exist and are the owner's,
// by Ref.Key, from one list for each place.
func (c *Cluster) owned(ctx context.Context, owner string, targets []target) (map[string]*metav1.ObjectMeta, error) {
	wanted := keysOf(targets)
	return c.gather(placesOf(targets), func(p place) (map[string]*metav1.ObjectMeta, error) {
		found, err := c.pick(ctx, p, ownedBy(owner), wanted)
		return found, c.fail(ctx, "list", p.kind.Kind+" objects", err)
	})
}

// keysOf returns the targets' Ref.Key.
func keysOf(targets []target) map[string]bool {
	out := make(map[string]bool, len(targets))
	for _, t := range targets {
		out[t.ref.Key()] = true
	}
	return out
}

// gather looks into places at the same time, and returns what it found in all.
func (c *Cluster) gather(places []place, look func(place) (map[string]*metav1.ObjectMeta, error)) (map[string]*metav1.ObjectMeta, error) {
	found := make([]map[string]*metav1.ObjectMeta, len(places))
	err := each(c.parallel, len(places), func(i int) (err error) {
		found[i], err = look(places[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]*metav1.ObjectMeta{}
	for _, f := range found {
		maps.Copy(out, f)
	}
	return out, nil
}

// ref names an object of the place.
func (p place) ref(m *metav1.ObjectMeta) nf.Ref {
	return nf.Ref{Group: p.kind.Group, Version: p.kind.Version, Kind: p.kind.Kind, Namespace: m.Namespace, Name: m.Name}
}

// placesOf returns the places of the targets whose kinds are served, each once.
func placesOf(targets []target) []place {
	var out []place
	for _, t := range targets {
		if t.served {
			out = append(out, t.kind.in(t.ref.Namespace))
		}
	}
	slices.SortFunc(out, func(a, b place) int { return cmp.Compare(a.key(), b.key()) })
	return slices.CompactFunc(out, func(a, b place) bool { return a.key() == b.key() })
}

// targetsOf finds the kinds of refs, in whatever version they are served. A kind
// of a group that cannot be read just now is nf.Unreachable: its objects may
// well be there.
func (c *Cluster) targetsOf(ctx context.Context, refs []nf.Ref) ([]target, error) {
	ks, err := c.lookup(ctx, gvksOf(refs))
	if err != nil {
		return nil, err
	}
	out := make([]target, len(refs))
	for i, ref := range refs {
		out[i].ref = ref
		out[i].kind, out[i].served = ks.any(gvkOf(ref))
		if !out[i].served && ks.hidden(ref.Group) {
			return nil, c.fail(ctx, "read the API of", c.name(), ks.partial)
		}
	}
	return out, nil
}

// filledByOthers reports whether anybody but the manager has put more than
// metadata into an object.
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

// check returns violations unless an object can be addressed: names must be
// segments of a URL path, or they would lead to another object than the one they
// name, and there must be a namespace if the kind has one.
func (k kind) check(u *unstructured.Unstructured) nf.Violations {
	var v nf.Violations
	wrong := func(field, message string) {
		v = append(v, nf.Violation{Object: refOf(u), Field: field, Message: message})
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
