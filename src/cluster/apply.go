package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Apply applies the objects by server-side apply with the owner's field
// manager, at most PoolConfig.Parallel at a time. Unknown fields are rejected.
// It returns a change for each object that it reached, in the given order, with
// the API server's warnings as its message. A number of replicas that an autoscaler
// sets stays as it is. An object that this process has applied before, and that still has
// the applied fields, is only read. Apply is idempotent.
//
// It returns the first error: nf.Conflict if an object or a field belongs to
// another owner; nf.Conflict with reason "immutable" if only an immutable field
// of the existing object prevents the change; nf.Invalid if the API server
// rejects the object; nf.Failed if a quota or a permission prevents it; nf.Busy
// if the object or its namespace is being deleted; nf.Unsupported if a kind is
// not served.
func (c *Cluster) Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return c.apply(ctx, owner, objects, func(targets []target) (map[string]*metav1.ObjectMeta, error) {
		return newFinder(c.client, targets).owned(ctx, owner)
	})
}

// ApplyNew is Apply for objects that the owner does not have: none existed when
// Preflight was called, and nothing has applied them since. It does not look for
// them. If another client has created one, it returns nf.Conflict, as Apply does.
func (c *Cluster) ApplyNew(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return c.apply(ctx, owner, objects, func([]target) (map[string]*metav1.ObjectMeta, error) { return nil, nil })
}

// apply applies objects; find returns those that the owner has, by Ref.Key.
func (c *Cluster) apply(
	ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, find func([]target) (map[string]*metav1.ObjectMeta, error),
) ([]nf.Change, error) {
	targets, err := c.client.appliable(ctx, objects)
	if err != nil {
		return nil, err
	}
	had, err := find(targets)
	if err != nil {
		return nil, err
	}
	var warning string
	if had != nil {
		if objects, warning, err = c.client.withoutReplicas(ctx, owner, targets, objects, had); err != nil {
			return nil, err
		}
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.client.parallel, len(objects), func(i int) error {
		a := application{client: c.client, owner: owner, target: targets[i], object: objects[i]}
		change, err := a.run(ctx, had[targets[i].ref.Key()])
		if _, has := nf.At(objects[i].Object, replicasPath); has && warning != "" && err == nil {
			change.Message = strings.Trim(change.Message+"; "+warning, "; ")
		}
		changes[i] = change
		return err
	})
	return reached(changes), err
}

// appliable finds the kinds of objects that are to be applied. It retries
// discovery, because a new kind may be served only shortly after its CRD is
// established.
func (c *client) appliable(ctx context.Context, objects []*unstructured.Unstructured) ([]target, error) {
	gvks := make([]schema.GroupVersionKind, len(objects))
	for i, u := range objects {
		gvks[i] = u.GroupVersionKind()
	}
	ks, err := c.apis.kinds(ctx, gvks)
	for n := 1; err == nil && n < attempts && !serves(ks.exact, gvks); n++ {
		if err = c.pause(ctx, backoff(n)/2); err == nil {
			ks, err = c.apis.discover(ctx)
		}
	}
	if err != nil {
		return nil, c.apis.unreadable(ctx, err)
	}
	targets, unknown, wrong := make([]target, len(objects)), nf.Violations(nil), nf.Violations(nil)
	for i, u := range objects {
		k, ok := ks.exact(gvks[i])
		if !ok && ks.hidden(gvks[i].Group) {
			return nil, c.apis.unreadable(ctx, ks.partial)
		}
		if !ok {
			unknown = append(unknown, notServed(u))
			continue
		}
		targets[i] = target{nf.RefOf(u), k, true}
		wrong = append(wrong, k.check(u)...)
	}
	return targets, refused(unknown, wrong)
}

func notServed(u *unstructured.Unstructured) nf.Violation {
	return nf.Violation{
		Object:  nf.RefOf(u),
		Message: fmt.Sprintf("kind %s of %s is not served by the cloud region", u.GetKind(), u.GetAPIVersion()),
	}
}

// application is the apply of one object.
type application struct {
	client *client
	owner  nf.Subject
	target target
	object *unstructured.Unstructured
}

// request returns a function that builds the apply request with a field
// manager.
func (a *application) request(manager string) (func() *rest.Request, error) {
	body, err := a.object.MarshalJSON()
	if err != nil {
		return nil, nf.E(nf.Invalid, "apply", a.target.ref.String(), err)
	}
	return func() *rest.Request {
		return a.client.request(http.MethodPatch, a.target).SetHeader("Content-Type", string(types.ApplyYAMLPatchType)).
			Param("fieldManager", manager).Param("fieldValidation", metav1.FieldValidationStrict).Body(body)
	}, nil
}

// dryRun is request for a server-side dry run with the owner's field manager.
func (a *application) dryRun() (func() *rest.Request, error) {
	build, err := a.request(manager(a.owner))
	if err != nil {
		return nil, err
	}
	return func() *rest.Request { return build().Param("force", "true").Param("dryRun", "All") }, nil
}

// rehearse reads the object as the apply would leave it, by a dry run. It reports
// whether the object exists now, and returns nf.Unsupported if the region no longer
// serves its kind in this version.
func (a *application) rehearse(ctx context.Context, would *unstructured.Unstructured) (exists bool, err error) {
	build, err := a.dryRun()
	if err != nil {
		return false, err
	}
	got, err := a.client.send(ctx, build, into(would))
	switch {
	case isNamespaceMissing(err):
		return false, nil
	case apierrors.IsNotFound(err): // an object that does not exist would be created
		a.client.apis.forget()
		return false, unserved(a.target.ref)
	}
	return got.code != http.StatusCreated, err
}

// run applies the object. It compares the result with had, the owner's object
// before the apply, to find the action; had is nil if there was none.
func (a *application) run(ctx context.Context, had *metav1.ObjectMeta) (nf.Change, error) {
	if had == nil && a.target.kind.GroupKind() == namespaceKind.GroupKind() {
		var err error
		if had, err = a.existingNamespace(ctx); err != nil {
			return nf.Change{}, err
		}
	}
	is, err := a.digest()
	if err != nil {
		return nf.Change{}, err
	}
	if change, ok := a.unchanged(had, is); ok {
		return change, nil
	}
	got, now, err := a.patch(ctx, false)
	if isFieldConflict(err) {
		if err = a.mine(ctx, had, err); err == nil {
			// Another manager changed fields of the owner's object; reclaim them.
			got, now, err = a.patch(ctx, true)
		}
	}
	if err != nil && had != nil {
		err = a.asImmutable(ctx, err)
	}
	if err != nil {
		return nf.Change{}, a.fail(ctx, err)
	}
	change, err := a.change(ctx, had, got, now)
	if err == nil {
		a.client.answers.remember(a.owner, a.target.ref.Key(), is, now, change.Message)
	}
	return change, err
}

// change builds the change from the API server's response. now is the object's
// metadata in that response.
func (a *application) change(ctx context.Context, had *metav1.ObjectMeta, got response, now *metav1.ObjectMeta) (nf.Change, error) {
	change := changeOf(a.target, now, nf.Configured)
	change.Message = strings.Join(got.warnings, "; ")
	switch {
	case now.DeletionTimestamp != nil:
		return nf.Change{}, nf.E(nf.Busy, "apply", a.target.ref.String(), errors.New("it is being deleted"))
	case got.code == http.StatusCreated:
		change.Action = nf.Created
	case had == nil && got.repeated:
		// The response to an earlier attempt was lost; that attempt created the
		// object.
		change.Action = nf.Created
	case had == nil && filledByOthers(now, manager(a.owner)):
		return a.withdraw(ctx)
	case had != nil && had.ResourceVersion == now.ResourceVersion:
		change.Action = nf.Unchanged
	}
	return change, nil
}

// patch sends the object. In addition to send's retries, it retries errors that
// are only temporary for an apply.
func (a *application) patch(ctx context.Context, force bool) (response, *metav1.ObjectMeta, error) {
	build, err := a.request(manager(a.owner))
	if err != nil {
		return response{}, nil, err
	}
	var now metav1.PartialObjectMetadata
	got, err := a.client.sendDespite(ctx, passing, func() *rest.Request {
		return build().Param("force", fmt.Sprint(force)).SetHeader("Accept", acceptMeta)
	}, into(&now))
	return got, &now.ObjectMeta, err
}

// passing reports whether an apply failed for a temporary reason: a concurrent
// write, or a new kind that not every API server of the region serves yet.
func passing(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	switch s := status.Status(); s.Reason {
	case metav1.StatusReasonConflict:
		return !isFieldConflict(err)
	case metav1.StatusReasonAlreadyExists:
		return true
	case metav1.StatusReasonNotFound:
		return !isNamespaceMissing(err)
	default:
		return false
	}
}

// isNamespaceMissing reports whether an apply failed because the namespace of the
// object does not exist.
func isNamespaceMissing(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

func isFieldConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// mine returns nil if the object is the owner's or may become so, otherwise an
// nf.Conflict that names its owner and the fields in conflict.
func (a *application) mine(ctx context.Context, had *metav1.ObjectMeta, conflict error) error {
	if had != nil {
		return nil
	}
	live, found, err := a.client.meta(ctx, a.target)
	if err != nil || !found {
		return err
	}
	theirs, yes := ownershipConflict(a.owner, a.target.ref, live)
	if !yes {
		return nil
	}
	v := nf.Violations{theirs}
	if status, ok := errors.AsType[*apierrors.StatusError](conflict); ok {
		v = append(v, violations(a.target.ref, status.Status())...)
	}
	return notOwned("apply", v...)
}

// existingNamespace returns the metadata of a namespace that the service
// created, or nil if it does not exist. It returns nf.Conflict if the namespace
// belongs to others.
func (a *application) existingNamespace(ctx context.Context) (*metav1.ObjectMeta, error) {
	live, found, err := a.client.meta(ctx, a.target)
	if err != nil || !found {
		return nil, a.fail(ctx, err)
	}
	if theirs, yes := otherOwner(a.owner, a.target.ref, live); yes {
		return nil, notOwned("apply", theirs)
	}
	return live, nil
}

// withdraw removes the owner's fields from an object that another client
// created between the check and the apply, and returns nf.Conflict. An object
// that the same owner orphaned is applied again instead.
func (a *application) withdraw(ctx context.Context) (nf.Change, error) {
	nothing := *a
	nothing.object = &unstructured.Unstructured{}
	nothing.object.SetGroupVersionKind(a.target.kind.GroupVersionKind)
	nothing.object.SetNamespace(a.target.ref.Namespace)
	nothing.object.SetName(a.target.ref.Name)
	left, err := nothing.force(ctx)
	if err != nil {
		return nf.Change{}, err
	}
	if theirs, yes := ownershipConflict(a.owner, a.target.ref, left); yes {
		return nf.Change{}, notOwned("apply", theirs)
	}
	now, err := a.force(ctx)
	if err != nil {
		return nf.Change{}, err
	}
	return changeOf(a.target, now, nf.Configured), nil
}

// force applies the object even if other managers own its fields.
func (a *application) force(ctx context.Context) (*metav1.ObjectMeta, error) {
	_, now, err := a.patch(ctx, true)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return now, nil
}

// fail translates the error of an apply.
func (a *application) fail(ctx context.Context, err error) error {
	if apierrors.IsNotFound(err) {
		a.client.apis.forget() // the kind may no longer be served
	}
	return a.client.region.failObject(ctx, "apply", a.target.ref, err)
}
