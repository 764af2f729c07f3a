package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Preflight checks that the objects could be applied for the owner within the
// bounds: every kind is served by the region or defined by a
// CustomResourceDefinition among the objects (nf.Unsupported, with a violation
// for each that is not), every object is within the bounds (nf.Invalid for a
// namespace that is not opened, nf.Forbidden with nf.ReasonTenant for a
// cluster-scoped kind that is not granted), and no object exists already that is
// not the owner's (nf.Conflict, with a violation for each that says who has it).
// It sets metadata.namespace of namespaced objects that lack one, and clears it
// on cluster-scoped ones. An object that bears no owner will be nobody's (see
// Ensure): that it is there already is fine. Preflight changes nothing in the
// region.
func (c *Cluster) Preflight(ctx context.Context, owner string, bounds nf.Bounds, objects []*unstructured.Unstructured) error {
	targets, err := c.admissible(ctx, bounds, objects)
	if err != nil {
		return err
	}
	return c.unclaimed(ctx, owner, nf.Claim{}, targets)
}

// admissible returns those objects of an owner that may exist, after it has seen
// that the region could take all.
func (c *Cluster) admissible(ctx context.Context, bounds nf.Bounds, objects []*unstructured.Unstructured) ([]target, error) {
	defined := definitions(objects)
	var gvks []schema.GroupVersionKind
	for _, u := range objects {
		if _, ok := defined[u.GroupVersionKind()]; !ok {
			gvks = append(gvks, u.GroupVersionKind())
		}
	}
	ks, err := c.lookup(ctx, gvks)
	if err != nil {
		return nil, err
	}
	var unknown, wrong, denied nf.Violations
	var targets []target
	for _, u := range objects {
		k, served := ks.exact(u.GroupVersionKind())
		if !served {
			var ok bool
			if k, ok = defined[u.GroupVersionKind()]; !ok {
				unknown = append(unknown, notServed(u))
				continue
			}
		}
		if !k.can("patch", "list", "watch") {
			unknown = append(unknown, nf.Violation{Object: refOf(u), Message: "is of a kind that a cloud region does not keep"})
			continue
		}
		setNamespace(u, k.namespaced, bounds.Namespace)
		wrong = append(wrong, k.check(u)...)
		wrong = append(wrong, bounds.Outside(refOf(u))...)
		denied = append(denied, bounds.Denied(refOf(u))...)
		if served && u.GetLabels()[nf.OwnerLabel] != "" {
			targets = append(targets, target{refOf(u), k, true})
		}
	}
	if err := refused("apply", unknown, wrong); err != nil {
		return nil, err
	}
	if len(denied) > 0 {
		return nil, bounds.Tenancy.Refuse(denied)
	}
	return targets, nil
}

// refused returns the error for kinds that are unknown and objects that are
// wrong, or nil when there are none.
func refused(op string, unknown, wrong nf.Violations) error {
	switch {
	case len(unknown) > 0:
		return nf.E(nf.Unsupported, op, "objects", unknown)
	case len(wrong) > 0:
		return nf.E(nf.Invalid, op, "objects", wrong)
	}
	return nil
}

// definitions returns the kinds that the CustomResourceDefinitions among the
// objects will bring.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]kind {
	out := map[schema.GroupVersionKind]kind{}
	for _, u := range objects {
		if u.GetKind() != "CustomResourceDefinition" || u.GroupVersionKind().Group != "apiextensions.k8s.io" {
			continue
		}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for _, v := range versions {
			fields, _ := v.(map[string]any)
			version, _ := fields["name"].(string)
			gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: name}
			if served, _ := fields["served"].(bool); served {
				out[gvk] = kind{gvk, plural, scope == "Namespaced", []string{"patch", "list", "watch"}}
			}
		}
	}
	return out
}

// setNamespace gives the object the namespace that its kind's scope asks for.
func setNamespace(u *unstructured.Unstructured, namespaced bool, namespace string) {
	switch {
	case !namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(namespace)
	}
}

// unclaimed returns nf.Conflict when objects exist that are not the owner's and
// do not bear the claim.
func (c *Cluster) unclaimed(ctx context.Context, owner string, claim nf.Claim, targets []target) error {
	live, err := c.live(ctx, targets)
	if err != nil {
		return err
	}
	var v nf.Violations
	for _, t := range targets {
		if m, exists := live[t.ref.Key()]; exists {
			if who, yes := inTheWay(owner, t.ref, m); yes && !free(m, claim) {
				v = append(v, nf.Violation{Object: t.ref, Message: who})
			}
		}
	}
	if len(v) > 0 {
		return notOurs("apply", v)
	}
	return nil
}

// live returns the metadata of those targets that exist, whoever they belong
// to, by Ref.Key. A place that is asked for one object only is not listed: it
// may be full of others.
func (c *Cluster) live(ctx context.Context, targets []target) (map[string]*metav1.ObjectMeta, error) {
	asked := map[string][]target{}
	for _, t := range targets {
		key := t.kind.in(t.ref.Namespace).key()
		asked[key] = append(asked[key], t)
	}
	return c.gather(placesOf(targets), func(p place) (map[string]*metav1.ObjectMeta, error) {
		found, err := c.liveIn(ctx, p, asked[p.key()])
		return found, c.fail(ctx, "look for", p.kind.Kind+" objects", err)
	})
}

func (c *Cluster) liveIn(ctx context.Context, p place, asked []target) (map[string]*metav1.ObjectMeta, error) {
	if len(asked) > 1 {
		return c.pick(ctx, p, "", keysOf(asked))
	}
	m, found, err := c.meta(ctx, p.kind, p.namespace, asked[0].ref.Name)
	if !found {
		return nil, err
	}
	return map[string]*metav1.ObjectMeta{asked[0].ref.Key(): m}, nil
}
