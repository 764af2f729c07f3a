package cluster

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Delete asks for the removal of those refs that exist and are the owner's,
// dependents first in the foreground, and returns a change for each ref that it
// reached, in the given order: nf.Deleted, nf.Unchanged when it did not exist
// (or its kind is not served), or nf.Kept when it belongs to somebody else. It
// does not wait: Watch tells when they are gone.
func (c *Cluster) Delete(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Change, error) {
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
		var err error
		changes[i], err = c.remove(ctx, owner, targets[i], had[refs[i].Key()])
		return failObject(ctx, "delete", refs[i], err)
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

// remove deletes one object; had is its metadata when it is the owner's.
func (c *Cluster) remove(ctx context.Context, owner string, t target, had *metav1.ObjectMeta) (nf.Change, error) {
	change := nf.Change{Ref: t.ref, Action: nf.Unchanged}
	if !t.served {
		return change, nil
	}
	for range attempts {
		if had == nil {
			live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
			if err != nil {
				return nf.Change{}, err
			}
			if !found {
				return change, nil
			}
			if who, yes := foreign(owner, t.ref, live); yes {
				change.Action, change.Message = nf.Kept, who
				return change, nil
			}
			had = live
		}
		change.UID, change.Generation = string(had.UID), had.Generation
		err := c.deleteExact(ctx, t, metav1.Preconditions{UID: &had.UID})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			change.Action = nf.Deleted
			return change, nil
		case !apierrors.IsConflict(err):
			return nf.Change{}, err
		}
		had = nil // it was deleted and made anew; whose is it now?
	}
	return nf.Change{}, nf.E(nf.Conflict, "delete", t.ref.String(), errors.New("it is made anew whenever it is deleted"))
}

// deleteExact deletes an object in the foreground if the preconditions hold.
func (c *Cluster) deleteExact(ctx context.Context, t target, only metav1.Preconditions) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &only,
		PropagationPolicy: new(metav1.DeletePropagationForeground),
	})
	if err != nil {
		return err
	}
	_, err = c.send(ctx, func() *rest.Request {
		return c.rest.Delete().AbsPath(t.kind.path(t.ref.Namespace, t.ref.Name)...).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMeta).Body(body)
	})
	return err
}
