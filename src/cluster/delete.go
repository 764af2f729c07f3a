package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Delete requests the deletion of those refs that exist and are the owner's, by
// foreground deletion if they may have dependents that their controller does not
// delete itself. It returns a change for each
// ref that it reached, in the given order: nf.Deleted; nf.Unchanged if the
// object does not exist or its kind is not served; nf.Kept if it belongs to
// another owner. A CustomResourceDefinition is orphaned instead, if objects of its kind
// are not the owner's: nf.Orphaned, with a message that gives the reason. It does not wait
// until the objects are gone; use Watch for that.
func (c *Cluster) Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return c.act(ctx, owner, refs, "delete", func(ctx context.Context, o *ownedObject) (nf.Change, error) { return o.delete(ctx) })
}

// objectAction acts on one object of an owner.
type objectAction func(context.Context, *ownedObject) (nf.Change, error)

// act calls do for each ref whose kind is served.
func (c *Cluster) act(ctx context.Context, owner nf.Subject, refs []nf.Ref, op string, do objectAction) ([]nf.Change, error) {
	targets, had, err := c.client.present(ctx, owner, refs)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(refs))
	err = each(c.client.parallel, len(refs), func(i int) error {
		if !targets[i].served {
			changes[i] = nf.Change{Ref: refs[i], Action: nf.Unchanged}
			return nil
		}
		var err error
		changes[i], err = do(ctx, &ownedObject{client: c.client, owner: owner, target: targets[i], live: had[refs[i].Key()]})
		return c.client.region.failObject(ctx, op, refs[i], err)
	})
	return reached(changes), err
}

// present finds the kinds of refs, and the metadata of those objects that exist and
// are the owner's, by Ref.Key. If a list shows that the region no longer serves a
// version, present finds all of them again: the objects exist in another version, and
// the region may list its versions anew only shortly after. It returns nf.Unreachable
// if that does not end, because objects may remain.
func (c *client) present(ctx context.Context, owner nf.Subject, refs []nf.Ref) (targets []target, had map[string]*metav1.ObjectMeta, err error) {
	for n := 1; ; n++ {
		known := c.apis.generation()
		if targets, err = c.apis.resolveAll(ctx, refs); err != nil {
			return nil, nil, err
		}
		if had, err = newFinder(c, targets).owned(ctx, owner); err != nil || c.apis.generation() == known {
			return targets, had, err
		}
		if n == attempts {
			return nil, nil, c.apis.unreadable(ctx, errors.New("it does not serve the versions that it lists"))
		}
		if n > 1 {
			if err = c.pause(ctx, backoff(n-1)/2); err != nil {
				return nil, nil, c.apis.unreadable(ctx, err)
			}
		}
	}
}

// ownedObject is an object that is deleted or changes its owner.
type ownedObject struct {
	client *client
	owner  nf.Subject
	target target
	live   *metav1.ObjectMeta // as last read; nil: not known to be the owner's
}

// ours reports whether the object is the owner's, and reads it if that is not
// known. If it is not, other is the change that reports this.
func (o *ownedObject) ours(ctx context.Context) (other nf.Change, ours bool, err error) {
	if o.live != nil {
		return nf.Change{}, true, nil
	}
	var found bool
	if o.live, found, err = o.client.meta(ctx, o.target); err != nil {
		return nf.Change{}, false, err
	}
	if !found {
		return nf.Change{Ref: o.target.ref, Action: nf.Unchanged}, false, nil
	}
	if theirs, yes := otherOwner(o.owner, o.target.ref, o.live); yes {
		return nf.Change{Ref: o.target.ref, Action: nf.Kept, Message: theirs.Message, Mentions: theirs.Mentions}, false, nil
	}
	return nf.Change{}, true, nil
}

// reached drops the changes of objects that were not reached because of an
// error.
func reached(changes []nf.Change) []nf.Change {
	out := make([]nf.Change, 0, len(changes))
	for _, change := range changes {
		if change.Action != "" {
			out = append(out, change)
		}
	}
	return out
}

// changeOf returns a change with the object's uid and generation.
func changeOf(t target, m *metav1.ObjectMeta, action nf.Action) nf.Change {
	return nf.Change{Ref: t.ref, Action: action, UID: string(m.UID), Generation: m.Generation}
}

// delete deletes the object if it is the owner's.
func (o *ownedObject) delete(ctx context.Context) (nf.Change, error) {
	for range attempts {
		other, ours, err := o.ours(ctx)
		if err != nil || !ours {
			return other, err
		}
		if why, err := o.inUse(ctx); err != nil || why != "" {
			return o.leave(ctx, why, err)
		}
		err = o.client.deleteExact(ctx, o.target, metav1.Preconditions{UID: &o.live.UID}, nil)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return changeOf(o.target, o.live, nf.Deleted), nil
		case !apierrors.IsConflict(err):
			return nf.Change{}, err
		}
		o.live = nil // it was recreated: check its owner again
	}
	return nf.Change{}, nf.E(nf.Conflict, "delete", o.target.ref.String(), errors.New("it is recreated after each deletion"))
}

// leave orphans the object, because its deletion would delete others.
func (o *ownedObject) leave(ctx context.Context, why string, err error) (nf.Change, error) {
	if err != nil {
		return nf.Change{}, err
	}
	change, err := o.orphan(ctx)
	if change.Action == nf.Orphaned {
		change.Message = "remains, because its deletion would delete " + why
	}
	return change, err
}

// leaves are kinds whose objects practically never own others. Foreground
// deletion would only make them wait for the garbage collector.
var leaves = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true, {Kind: "PersistentVolumeClaim"}: true,
	{Kind: "ResourceQuota"}: true, {Kind: "LimitRange"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true, {Group: "networking.k8s.io", Kind: "Ingress"}: true,
	{Group: "policy", Kind: "PodDisruptionBudget"}: true, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: true,
}

// orderly are kinds whose controllers delete what they own in an order. Foreground
// deletion would have the garbage collector delete all of it at once.
var orderly = map[schema.GroupKind]bool{{Group: "cluster.x-k8s.io", Kind: "Cluster"}: true}
