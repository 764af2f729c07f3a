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

// PreflightAdopt is Preflight for objects that are to be taken over: one that
// bears the claim may exist, too.
func (c *Cluster) PreflightAdopt(ctx context.Context, owner string, bounds nf.Bounds, claim nf.Claim, objects []*unstructured.Unstructured) error {
	targets, err := c.admissible(ctx, bounds, objects)
	if err != nil {
		return err
	}
	return c.unclaimed(ctx, owner, claim, targets)
}

// Adopt makes those refs the owner's that exist and bear the claim: his label is
// put on them, and the fields of whoever put the claim's marks there become his.
// Nothing else changes: neither the content of an object nor its generation, so
// that no pod is restarted. It returns a change for each ref that it reached, in
// the given order: nf.Configured, nf.Unchanged when it is the owner's already or
// does not exist, with a message that says so; nf.Conflict for one that is
// somebody else's. Repeating it changes nothing.
func (c *Cluster) Adopt(ctx context.Context, owner string, claim nf.Claim, refs []nf.Ref) ([]nf.Change, error) {
	return c.treat(ctx, owner, refs, "adopt", func(ctx context.Context, owner string, t target, _ *metav1.ObjectMeta) (nf.Change, error) {
		return c.takeOver(ctx, owner, claim, t)
	})
}

// takeOver makes one object the owner's.
func (c *Cluster) takeOver(ctx context.Context, owner string, claim nf.Claim, t target) (nf.Change, error) {
	for n := range attempts {
		live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
		switch {
		case err != nil:
			return nf.Change{}, err
		case !found:
			return nf.Change{Ref: t.ref, Action: nf.Unchanged, Message: "it does not exist"}, nil
		case managed(live, manager(owner)) && live.Labels[nf.OwnerLabel] == owner:
			return changeOf(t, live, nf.Unchanged), nil
		}
		if who, yes := foreign(owner, t.ref, live); yes && !free(live, claim) {
			return nf.Change{}, notOurs("adopt", nf.Violations{{Object: t.ref, Message: who}})
		}
		now, err := c.mark(ctx, owner, claim, t, live)
		switch {
		case err == nil:
			return changeOf(t, now, nf.Configured), nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return nf.Change{}, err
		}
		if err := c.pause(ctx, backoff(n+1)); err != nil {
			return nf.Change{}, err
		}
	}
	return nf.Change{}, nf.E(nf.Conflict, "adopt", t.ref.String(), errors.New("others keep changing it"))
}

func managed(m *metav1.ObjectMeta, manager string) bool {
	return slices.ContainsFunc(m.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager })
}

// bears reports whether an object has every mark of a claim. A claim without
// marks is borne by nothing.
func bears(m metav1.Object, claim nf.Claim) bool {
	return len(claim.Annotations)+len(claim.Labels) > 0 && within(claim.Annotations, m.GetAnnotations()) && within(claim.Labels, m.GetLabels())
}

// free reports whether an object that is not the owner's can be taken over: it
// bears the claim, and is no instance's but the one that the claim names.
func free(m metav1.Object, claim nf.Claim) bool {
	other := m.GetLabels()[nf.OwnerLabel]
	return bears(m, claim) && (other == "" || other == claim.Labels[nf.OwnerLabel])
}

func within(marks, all map[string]string) bool {
	for key, value := range marks {
		if has, there := all[key]; !there || has != value {
			return false
		}
	}
	return true
}

// mark puts the owner's label and field manager on an object, if it is as it was.
func (c *Cluster) mark(ctx context.Context, owner string, claim nf.Claim, t target, was *metav1.ObjectMeta) (*metav1.ObjectMeta, error) {
	fields, err := inherited(was, claim, manager(owner), t.kind)
	if err != nil {
		return nil, err
	}
	return c.edit(ctx, t, was, map[string]any{"labels": map[string]string{nf.OwnerLabel: owner}, "managedFields": fields})
}

// inherited returns the managed fields of an object after those of whoever put
// the claim's marks on it have become a manager's, as if he had applied them,
// the owner's label with them.
func inherited(m *metav1.ObjectMeta, claim nf.Claim, manager string, k kind) ([]metav1.ManagedFieldsEntry, error) {
	ours := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", nf.OwnerLabel))
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
		if f.Manager == manager || marks(set, claim) {
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
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: k.GroupVersion().String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.TrimSpace(string(raw))),
	}), nil
}

// marks reports whether a manager has put a mark of the claim on an object.
func marks(set *fieldpath.Set, claim nf.Claim) bool {
	for key := range claim.Annotations {
		if set.Has(fieldpath.MakePathOrDie("metadata", "annotations", key)) {
			return true
		}
	}
	for key := range claim.Labels {
		if set.Has(fieldpath.MakePathOrDie("metadata", "labels", key)) {
			return true
		}
	}
	return false
}
