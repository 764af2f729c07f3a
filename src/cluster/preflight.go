package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Preflight checks whether the objects could be applied for the owner within
// the bounds, and returns how many of those with an owner label exist. It changes
// nothing in the region. It sets metadata.namespace of
// namespaced objects that lack one, and clears it on cluster-scoped ones.
//
// It returns nf.Unsupported, with a violation for each object whose kind is
// neither served nor defined by a CustomResourceDefinition among the objects;
// nf.Invalid for a namespace outside the bounds; nf.Forbidden with
// nf.ReasonTenant for a cluster-scoped kind that is not granted; nf.Conflict,
// with a violation for each existing object that belongs to others. An object
// without an owner label (see Ensure) may exist. Last, Preflight checks the
// objects against the region's schemas, and returns nf.Invalid with a violation
// for each field that the API server would reject.
func (c *Cluster) Preflight(ctx context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (existing int, err error) {
	p := preflight{client: c.client, service: c.service, owner: owner, objects: objects}
	known := c.client.answers.indexKnown() // checkOwners reads an unknown index
	live, err := p.checkOwners(ctx, bounds, nf.AdoptionSelector{})
	if err != nil {
		return 0, err
	}
	return len(live), c.fit(ctx, objects, live, known)
}

// preflight checks whether objects can be applied for an owner.
type preflight struct {
	client  *client
	service *client
	owner   nf.Subject
	objects []*unstructured.Unstructured
}

// checkOwners checks kinds, scopes, bounds and owners. It returns the metadata of
// the owner's objects that exist, by Ref.Key, or nf.Conflict if some of them are
// not the owner's and do not match the selector.
func (p preflight) checkOwners(ctx context.Context, bounds nf.Bounds, selector nf.AdoptionSelector) (map[string]*metav1.ObjectMeta, error) {
	targets, err := p.admissible(ctx, bounds)
	if err != nil {
		return nil, err
	}
	// A namespace that this process has never seen may be missing, and then there
	// is nothing to look for in it. One that has existed is not read: if it is gone,
	// so are its objects.
	unseen := slices.DeleteFunc(append(namespacesIn(p.objects), bounds.Namespace), p.service.answers.namespaceExisted)
	see, index := p.seeNamespaces(ctx, unseen), p.readIndex(ctx)
	if len(see) > 0 {
		if _, err := newFinder(p.service, nil).run(append(see, index...)); err != nil {
			return nil, err
		}
		index = nil
	}
	f := newFinder(p.client, p.inNamespaces(targets))
	live, err := f.run(append(f.lookups(ctx), index...))
	if err != nil {
		return nil, err
	}
	var v nf.Violations
	for _, t := range targets {
		if m, exists := live[t.ref.Key()]; exists {
			if theirs, yes := ownershipConflict(p.owner, t.ref, m); yes && !isAdoptable(p.owner, m, selector) {
				v = append(v, theirs)
			}
		}
	}
	if len(v) > 0 {
		return nil, notOwned("apply", v...)
	}
	return live, nil
}

// inNamespaces returns the targets, without those in a namespace that has just
// been found missing.
func (p preflight) inNamespaces(targets []target) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return p.client.answers.namespaceMissing(t.ref.Namespace) })
}

// seeNamespaces returns the requests that read those namespaces whose state is
// not known, so that they need not be read later. A namespace that cannot be read
// is not an error here.
func (p preflight) seeNamespaces(ctx context.Context, names []string) []func() error {
	slices.Sort(names)
	var requests []func() error
	for _, name := range slices.Compact(names) {
		if _, known := p.service.answers.namespace(name); !known && nf.CheckNamespace("", name) == nil {
			requests = append(requests, func() error {
				_, _, _ = namespace{p.service, namespaceTarget(name)}.read(ctx) // a later use reports the error
				return nil
			})
		}
	}
	return requests
}

// readIndex returns the request that reads the index of the region's schemas, so
// that the comparison that follows need not wait for it. It returns nothing if the
// index is known.
func (p preflight) readIndex(ctx context.Context) []func() error {
	if p.service.answers.indexKnown() {
		return nil
	}
	return []func() error{func() error {
		_, _ = schemaSource{p.client, p.service}.Index(ctx) // the comparison reports the error
		return nil
	}}
}

// admissible checks kinds, scopes and bounds, and returns those of the objects
// that have an owner label and whose kinds are served already.
func (p preflight) admissible(ctx context.Context, bounds nf.Bounds) ([]target, error) {
	defined := definitions(p.objects)
	var gvks []schema.GroupVersionKind
	for _, u := range p.objects {
		if _, ok := defined[u.GroupVersionKind()]; !ok {
			gvks = append(gvks, u.GroupVersionKind())
		}
	}
	ks, err := p.client.apis.kinds(ctx, gvks)
	if err != nil {
		return nil, err
	}
	var unknown, wrong, denied nf.Violations
	var targets []target
	for _, u := range p.objects {
		k, served := ks.exact(u.GroupVersionKind())
		if !served {
			k = defined[u.GroupVersionKind()]
		}
		switch {
		case k.Kind == "" && ks.hidden(u.GroupVersionKind().Group):
			return nil, p.client.apis.unreadable(ctx, ks.partial)
		case k.Kind == "":
			unknown = append(unknown, notServed(u))
			continue
		case !k.can("patch", "list", "watch"):
			unknown = append(unknown, nf.Violation{Object: nf.RefOf(u), Message: "is of a kind that a cloud region does not keep"})
			continue
		}
		setNamespace(u, k.namespaced, bounds.Namespace)
		wrong = append(wrong, k.check(u)...)
		wrong = append(wrong, bounds.Outside(nf.RefOf(u))...)
		denied = append(denied, bounds.Denied(nf.RefOf(u))...)
		if served && nf.OwnerOf(u.GetLabels()).ID != "" {
			targets = append(targets, target{nf.RefOf(u), k, true})
		}
	}
	if err := refused(unknown, wrong); err != nil {
		return nil, err
	}
	if len(denied) > 0 {
		return nil, bounds.Tenancy.Refuse(denied)
	}
	return targets, nil
}

// refused returns the error for objects of unknown kinds and for invalid
// objects, or nil if there are none.
func refused(unknown, wrong nf.Violations) error {
	switch {
	case len(unknown) > 0:
		return nf.E(nf.Unsupported, "apply", "objects", unknown)
	case len(wrong) > 0:
		return nf.E(nf.Invalid, "apply", "objects", wrong)
	}
	return nil
}

// definitions returns the kinds that the CustomResourceDefinitions among the
// objects define.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]kind {
	out := map[schema.GroupVersionKind]kind{}
	for _, u := range objects {
		if u.GroupVersionKind().GroupKind() != definitionKind {
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
				out[gvk] = kind{gvk, plural, scope == "Namespaced", []string{"patch", "list", "watch"}, nil}
			}
		}
	}
	return out
}

// setNamespace sets or clears the object's namespace, according to the scope of
// its kind.
func setNamespace(u *unstructured.Unstructured, namespaced bool, namespace string) {
	switch {
	case !namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(namespace)
	}
}
