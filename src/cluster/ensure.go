package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Ensure makes those objects that are missing, for nobody: they bear no owner,
// and nothing that is done for an owner changes or removes them. One that is
// there is left as it is, whoever made it. Ensure returns when every object is
// nf.Current, with nf.Created or nf.Unchanged for each, in the given order; its
// errors are those of Apply, and nf.Failed for an object that cannot become
// current. Repeating it changes nothing.
func (c *Cluster) Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	targets, err := c.appliable(ctx, objects)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.parallel, len(objects), func(i int) error {
		var err error
		changes[i], err = c.provide(ctx, targets[i], objects[i])
		return c.failObject(ctx, "apply", targets[i].ref, err)
	})
	if err != nil {
		return reached(changes), err
	}
	return changes, c.established(ctx, targets, changes)
}

// provide makes one object, unless it is there.
func (c *Cluster) provide(ctx context.Context, t target, u *unstructured.Unstructured) (nf.Change, error) {
	live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
	if err != nil {
		return nf.Change{}, err
	}
	if found {
		return changeOf(t, live, nf.Unchanged), nil
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return nf.Change{}, nf.E(nf.Invalid, "apply", t.ref.String(), err)
	}
	// Not as the owner: what he owns by its fields would go with him.
	var made metav1.PartialObjectMetadata
	_, err = c.sendDespite(ctx, passing, func() *rest.Request {
		return applyRequest(c.rest, t, nf.MadeBy, body).SetHeader("Accept", acceptMeta)
	}, into(&made))
	if isFieldConflict(err) { // somebody was faster
		live, _, err = c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
		if err != nil || live == nil {
			return nf.Change{}, err
		}
		return changeOf(t, live, nf.Unchanged), nil
	}
	if err != nil {
		return nf.Change{}, err
	}
	return changeOf(t, &made.ObjectMeta, nf.Created), nil
}

// established waits until objects that are nobody's are current.
func (c *Cluster) established(ctx context.Context, targets []target, changes []nf.Change) error {
	v := newView("")
	b := bundle{c: c, view: v}
	waiting := map[string]bool{}
	for i, t := range targets {
		q := query{}
		if len(targets) == 1 {
			q.fields = "metadata.name=" + t.ref.Name
		}
		s := b.stream(t.kind.in(t.ref.Namespace), q)
		s.aside, s.keys = false, append(s.keys, t.ref.Key())
		waiting[changes[i].Key()] = true
	}
	var last nf.Health
	var wrong error
	c.follow(ctx, v, b.streams, changes, func(h nf.Health, err error) bool {
		switch {
		case err != nil:
			wrong = err
		case h.Status == nf.Current:
			delete(waiting, h.Key())
		case h.Status == nf.StatusFailed || h.Status == nf.Absent:
			wrong = nf.E(nf.Failed, "bring up", "the objects", nf.Violations{{Object: h.Ref, Message: "is " + string(h.Status) + ": " + h.Message}})
		default:
			last = h
		}
		return wrong == nil && len(waiting) > 0
	})
	if wrong == nil && len(waiting) > 0 {
		wrong = c.fail(ctx, "wait for", "the objects", fmt.Errorf("%s is %s: %s: %w", last.Ref, last.Status, last.Message, context.Cause(ctx)))
	}
	return wrong
}
