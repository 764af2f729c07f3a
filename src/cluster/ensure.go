package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Ensure creates those objects that do not exist, without an owner, so that no
// operation on an owner's objects changes or deletes them. Existing objects are
// not changed, whichever owner or manager they have. Ensure waits until every
// object is nf.Current, and returns nf.Created or nf.Unchanged for each, in the
// given order. Its errors are those of Apply, and nf.Failed if an object cannot
// become current. Ensure is idempotent.
func (c *Cluster) Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	targets, err := c.client.appliable(ctx, objects)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.client.parallel, len(objects), func(i int) error {
		a := application{client: c.client, target: targets[i], object: objects[i]}
		var err error
		changes[i], err = a.provide(ctx)
		return c.client.region.failObject(ctx, "apply", targets[i].ref, err)
	})
	if err != nil {
		return reached(changes), err
	}
	return changes, established(ctx, c.client, targets, changes)
}

// provide creates the object, without an owner, if it does not exist.
func (a *application) provide(ctx context.Context) (nf.Change, error) {
	live, found, err := a.client.meta(ctx, a.target)
	if err != nil {
		return nf.Change{}, err
	}
	if found {
		return changeOf(a.target, live, nf.Unchanged), nil
	}
	// Not with the owner's field manager: fields that it owns would be removed
	// with the owner.
	build, err := a.request(nf.CreatedBy)
	if err != nil {
		return nf.Change{}, err
	}
	var made metav1.PartialObjectMetadata
	_, err = a.client.sendDespite(ctx, passing, func() *rest.Request { return build().SetHeader("Accept", acceptMeta) }, into(&made))
	if isFieldConflict(err) { // another client created it first
		live, _, err = a.client.meta(ctx, a.target)
		if err != nil || live == nil {
			return nf.Change{}, err
		}
		return changeOf(a.target, live, nf.Unchanged), nil
	}
	if err != nil {
		return nf.Change{}, err
	}
	return changeOf(a.target, &made.ObjectMeta, nf.Created), nil
}

// established waits until objects without an owner are current. Each has its own watch:
// one of all objects of a kind, such as the CustomResourceDefinitions, could exceed the
// limits of the region.
func established(ctx context.Context, c *client, targets []target, changes []nf.Change) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := each(len(targets), len(targets), func(i int) error { // at once: one that fails must end the wait of all
		err := becomeCurrent(waiting, c, targets[i], changes[i])
		if err != nil {
			cancel(err) // otherwise each would wait for the others
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return context.Cause(waiting)
	}
	return err
}

// becomeCurrent waits until an object without an owner is current.
func becomeCurrent(ctx context.Context, c *client, t target, change nf.Change) error {
	streams := newStreamSet(c, nf.Subject{})
	streams.addTarget(t.kind.in(t.ref.Namespace), query{fields: "metadata.name=" + t.ref.Name}, t.ref.Key())
	var last nf.Health
	var wrong error
	streams.watch(ctx, []nf.Change{change}, func(h nf.Health, err error) bool {
		last, wrong = h, err
		if h.Status == nf.StatusFailed || h.Status == nf.Absent {
			wrong = nf.E(nf.Failed, "apply", "the objects", nf.Violations{{Object: h.Ref, Message: "is " + string(h.Status) + ": " + h.Message}})
		}
		return wrong == nil && h.Status != nf.Current
	})
	if wrong == nil && last.Status != nf.Current {
		wrong = c.region.fail(ctx, "wait for", "the objects", fmt.Errorf("%s is %s: %s: %w", t.ref, last.Status, last.Message, context.Cause(ctx)))
	}
	return wrong
}
