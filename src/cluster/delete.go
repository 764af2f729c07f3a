package cluster

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Delete asks for the removal of those refs that exist and are the owner's,
// with the dependents of those that have any first, and returns a change for each ref that it
// reached, in the given order: nf.Deleted, nf.Unchanged when it did not exist
// (or its kind is not served), or nf.Kept when it belongs to somebody else. It
// does not wait: Watch tells when they are gone.
func (c *Cluster) Delete(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Change, error) {
	return c.treat(ctx, owner, refs, "delete", c.remove)
}

// treatment is what is done to one object of an owner; had is its metadata when
// it is known to be the owner's.
type treatment func(ctx context.Context, owner string, t target, had *metav1.ObjectMeta) (nf.Change, error)

// treat does something to each ref whose kind is served.
func (c *Cluster) treat(ctx context.Context, owner string, refs []nf.Ref, op string, do treatment) ([]nf.Change, error) {
	targets, err := c.targetsOf(ctx, refs)
	if err != nil {
		return nil, err
	}
	had, err := c.owned(ctx, owner, targets)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(refs))
	err = each(c.parallel, len(refs), func(i int) error {
		if !targets[i].served {
			changes[i] = nf.Change{Ref: refs[i], Action: nf.Unchanged}
			return nil
		}
		var err error
		changes[i], err = do(ctx, owner, targets[i], had[refs[i].Key()])
		return c.failObject(ctx, op, refs[i], err)
	})
	return reached(changes), err
}

// reached leaves out the objects that nothing was done to because of an error.
func reached(changes []nf.Change) []nf.Change {
	out := make([]nf.Change, 0, len(changes))
	for _, change := range changes {
		if change.Action != "" {
			out = append(out, change)
		}
	}
	return out
}

// changeOf is what was done to the object that has the metadata.
func changeOf(t target, m *metav1.ObjectMeta, action nf.Action) nf.Change {
	return nf.Change{Ref: t.ref, Action: action, UID: string(m.UID), Generation: m.Generation}
}

// remove deletes one object.
func (c *Cluster) remove(ctx context.Context, owner string, t target, had *metav1.ObjectMeta) (nf.Change, error) {
	for range attempts {
		if had == nil {
			live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
			if err != nil {
				return nf.Change{}, err
			}
			if !found {
				return nf.Change{Ref: t.ref, Action: nf.Unchanged}, nil
			}
			if who, yes := foreign(owner, t.ref, live); yes {
				return nf.Change{Ref: t.ref, Action: nf.Kept, Message: who}, nil
			}
			had = live
		}
		err := c.deleteExact(ctx, t, metav1.Preconditions{UID: &had.UID})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return changeOf(t, had, nf.Deleted), nil
		case !apierrors.IsConflict(err):
			return nf.Change{}, err
		}
		had = nil // it was deleted and made anew; whose is it now?
	}
	return nf.Change{}, nf.E(nf.Conflict, "delete", t.ref.String(), errors.New("it is made anew whenever it is deleted"))
}

// leaves are the kinds whose objects, as good as ever, own nothing. In the
// foreground each would have to wait for the garbage collector, which has
// nothing to collect.
var leaves = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true, {Kind: "PersistentVolumeClaim"}: true,
	{Kind: "ResourceQuota"}: true, {Kind: "LimitRange"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true, {Group: "networking.k8s.io", Kind: "Ingress"}: true,
	{Group: "policy", Kind: "PodDisruptionBudget"}: true, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: true,
}

// deleteExact deletes an object if the preconditions hold: after its dependents,
// where it may have some.
func (c *Cluster) deleteExact(ctx context.Context, t target, only metav1.Preconditions) error {
	policy := metav1.DeletePropagationForeground
	if leaves[t.kind.GroupKind()] {
		policy = metav1.DeletePropagationBackground
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &only,
		PropagationPolicy: &policy,
	})
	if err != nil {
		return err
	}
	_, err = c.send(ctx, func() *rest.Request {
		return t.kind.at(c.rest.Delete(), t.ref.Namespace, t.ref.Name).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMeta).Body(body)
	}, nil)
	return err
}
