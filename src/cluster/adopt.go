package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PreflightAdopt is Preflight for objects that are to be adopted: an object
// that matches the selector may already exist. It returns a change for each object
// that exists, in the given order: nf.Adopted, with a message that names its origin,
// or nf.Unchanged if it is the owner's already. It checks the objects against schemas
// only if unowned objects match, because those are also applied.
func (c *Cluster) PreflightAdopt(ctx context.Context, owner nf.Subject, bounds nf.Bounds, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	p := preflight{client: c.client, service: c.service, owner: owner, objects: objects}
	known := c.client.answers.indexKnown() // checkOwners reads an unknown index
	live, err := p.checkOwners(ctx, bounds, selector)
	if err == nil && selector.Unowned {
		err = c.fit(ctx, objects, live, known)
	}
	if err != nil {
		return nil, err
	}
	var out []nf.Change
	for _, u := range objects {
		ref := nf.RefOf(u)
		if m, exists := live[ref.Key()]; exists {
			change := nf.Change{Ref: ref, Action: nf.Unchanged, UID: string(m.UID), Generation: m.Generation}
			if theirs, yes := otherOwner(owner, ref, m); yes {
				change.Action, change.Message, change.Mentions = nf.Adopted, theirs.Message, theirs.Mentions
			}
			out = append(out, change)
		}
	}
	return out, nil
}

// Adopt transfers those refs that exist and match the selector to the owner. It
// adds the owner's label, and transfers the managed fields of the managers that
// set the selector's labels or annotations. Content and generation do not change,
// so no pod restarts.
//
// It returns a change for each ref that it reached, in the given order:
// nf.Adopted; nf.Unchanged if the owner has the object already; nf.Unchanged
// with a message if it does not exist. It returns nf.Conflict if an object does
// not match the selector, or belongs to an owner other than the one that the selector
// names. Adopt is idempotent.
func (c *Cluster) Adopt(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, refs []nf.Ref) ([]nf.Change, error) {
	return c.act(ctx, owner, refs, "adopt", func(ctx context.Context, o *ownedObject) (nf.Change, error) { return o.adopt(ctx, selector) })
}

// adopt transfers the object to the owner.
func (o *ownedObject) adopt(ctx context.Context, selector nf.AdoptionSelector) (nf.Change, error) {
	for n := range attempts {
		live, found, err := o.client.meta(ctx, o.target)
		switch {
		case err != nil:
			return nf.Change{}, err
		case !found:
			return nf.Change{Ref: o.target.ref, Action: nf.Unchanged, Message: "it does not exist"}, nil
		case managed(live, manager(o.owner)) && nf.OwnerOf(live.Labels) == o.owner:
			return changeOf(o.target, live, nf.Unchanged), nil
		}
		if theirs, yes := otherOwner(o.owner, o.target.ref, live); yes && !isAdoptable(o.owner, live, selector) {
			return nf.Change{}, notOwned("adopt", theirs)
		}
		o.live = live
		now, err := o.own(ctx, selector)
		switch {
		case err == nil:
			return changeOf(o.target, now, nf.Adopted), nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return nf.Change{}, err
		}
		if err := o.client.pause(ctx, backoff(n+1)); err != nil {
			return nf.Change{}, err
		}
	}
	return nf.Change{}, nf.E(nf.Conflict, "adopt", o.target.ref.String(), errors.New("other clients keep changing it"))
}

func managed(m *metav1.ObjectMeta, manager string) bool {
	return slices.ContainsFunc(m.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager })
}

// hasMarks reports whether an object has every label and annotation of a
// selector. An empty selector matches nothing.
func hasMarks(m metav1.Object, selector nf.AdoptionSelector) bool {
	return len(selector.Annotations)+len(selector.Labels) > 0 && within(selector.Annotations, m.GetAnnotations()) && within(selector.Labels, m.GetLabels())
}

// isAdoptable reports whether an object that is not the owner's can be adopted: it
// matches the selector, and it has either no owner label or the one that the
// selector names, which must be of the owner's kind. An object with a controller is
// not unowned, because the controller would revert its changes.
func isAdoptable(owner nf.Subject, m metav1.Object, selector nf.AdoptionSelector) bool {
	other := nf.OwnerOf(m.GetLabels())
	if selector.Unowned {
		return other.ID == "" && metav1.GetControllerOfNoCopy(m) == nil
	}
	return hasMarks(m, selector) && (other.ID == "" || other.Kind == owner.Kind && other == nf.OwnerOf(selector.Labels))
}

func within(marks, all map[string]string) bool {
	for key, value := range marks {
		if has, there := all[key]; !there || has != value {
			return false
		}
	}
	return true
}

// own sets the owner's label and field manager on the object. It returns a
// conflict if the object has changed since it was read.
func (o *ownedObject) own(ctx context.Context, selector nf.AdoptionSelector) (*metav1.ObjectMeta, error) {
	fields, err := inherited(o.live, selector, o.owner, o.target.kind)
	if err != nil {
		return nil, err
	}
	label, value := o.owner.Label()
	return o.client.edit(ctx, o.target, o.live, map[string]any{"labels": map[string]string{label: value}, "managedFields": fields})
}

// inherited returns an object's managed fields after the transfer to an owner:
// all fields of managers that set a label or annotation of the selector, plus the
// owner's label, become fields that the owner's manager applied.
func inherited(m *metav1.ObjectMeta, selector nf.AdoptionSelector, owner nf.Subject, k kind) ([]metav1.ManagedFieldsEntry, error) {
	label, _ := owner.Label()
	ours := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", label))
	out := []metav1.ManagedFieldsEntry{}
	for _, f := range m.ManagedFields {
		set := &fieldpath.Set{}
		if f.Subresource != "" || f.FieldsV1 == nil {
			out = append(out, f)
			continue
		}
		if err := set.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("cannot read the managed fields of %s: %w", f.Manager, err)
		}
		if f.Manager == manager(owner) || covers(set, selector) {
			ours = ours.Union(set)
			continue
		}
		out = append(out, f)
	}
	raw, err := ours.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write the managed fields: %w", err)
	}
	return append(out, metav1.ManagedFieldsEntry{
		Manager: manager(owner), Operation: metav1.ManagedFieldsOperationApply, APIVersion: k.GroupVersion().String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.TrimSpace(string(raw))),
	}), nil
}

// covers reports whether a field set includes a label or annotation of the
// selector.
func covers(set *fieldpath.Set, selector nf.AdoptionSelector) bool {
	for key := range selector.Annotations {
		if set.Has(fieldpath.MakePathOrDie("metadata", "annotations", key)) {
			return true
		}
	}
	for key := range selector.Labels {
		if set.Has(fieldpath.MakePathOrDie("metadata", "labels", key)) {
			return true
		}
	}
	return false
}
