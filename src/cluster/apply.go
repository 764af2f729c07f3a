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

// Apply makes the objects be as given, in parallel with a bound, by server-side
// apply under the owner's field manager, with every unknown field refused. It
// returns what it did to each object that it reached, in the given order, and
// the first error: nf.Conflict when an object or a field belongs to somebody
// else, nf.Conflict with reason "immutable" when the object is fine but for what
// cannot be changed in the one that is there, nf.Invalid when the API server
// refuses the object, nf.Failed when a quota or a right is lacking, nf.Busy when
// the object or its namespace is being deleted, nf.Unsupported when a kind is
// not served. What the API server warned of is a change's message. Repeating it
// changes nothing.
func (c *Cluster) Apply(ctx context.Context, owner string, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	targets, err := c.appliable(ctx, objects)
	if err != nil {
		return nil, err
	}
	had, err := c.owned(ctx, owner, targets)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.parallel, len(objects), func(i int) error {
		a := application{c: c, owner: owner, target: targets[i], object: objects[i]}
		change, err := a.run(ctx, had[targets[i].ref.Key()])
		changes[i] = change
		return err
	})
	return reached(changes), err
}

// appliable finds the kinds of objects that are about to be applied. A kind
// that is new may be served a moment after its definition is established, so
// it is looked for more than once.
func (c *Cluster) appliable(ctx context.Context, objects []*unstructured.Unstructured) ([]target, error) {
	gvks := make([]schema.GroupVersionKind, len(objects))
	for i, u := range objects {
		gvks[i] = u.GroupVersionKind()
	}
	ks, err := c.lookup(ctx, gvks)
	for n := 1; err == nil && n < attempts && !serves(ks.exact, gvks); n++ {
		if err = c.pause(ctx, backoff(n)/2); err == nil {
			ks, err = c.discover(ctx)
		}
	}
	if err != nil {
		return nil, c.fail(ctx, "read the API of", c.name(), err)
	}
	targets, unknown, wrong := make([]target, len(objects)), nf.Violations(nil), nf.Violations(nil)
	for i, u := range objects {
		k, ok := ks.exact(gvks[i])
		if !ok {
			unknown = append(unknown, notServed(u))
			continue
		}
		targets[i] = target{refOf(u), k, true}
		wrong = append(wrong, k.check(u)...)
	}
	return targets, refused("apply", unknown, wrong)
}

func notServed(u *unstructured.Unstructured) nf.Violation {
	return nf.Violation{
		Object:  refOf(u),
		Message: fmt.Sprintf("kind %s of %s is not served by the cloud region", u.GetKind(), u.GetAPIVersion()),
	}
}

// application is the applying of one object.
type application struct {
	c      *Cluster
	owner  string
	object *unstructured.Unstructured
	target
}

// run applies the object, and tells what that did by comparing it with had, the
// owner's object of before, which is nil when there was none.
func (a *application) run(ctx context.Context, had *metav1.ObjectMeta) (nf.Change, error) {
	body, err := a.object.MarshalJSON()
	if err != nil {
		return nf.Change{}, nf.E(nf.Invalid, "apply", a.ref.String(), err)
	}
	if had == nil && a.ref.Kind == "Namespace" && a.ref.Group == "" {
		if had, err = a.adopt(ctx); err != nil {
			return nf.Change{}, err
		}
	}
	got, now, err := a.patch(ctx, body, false)
	if isFieldConflict(err) {
		if err = a.mine(ctx, had, err); err == nil {
			// Somebody changed fields of the owner's object; they are ours.
			got, now, err = a.patch(ctx, body, true)
		}
	}
	if err != nil && had != nil {
		err = a.c.asImmutable(ctx, a.owner, a.target, a.object, err)
	}
	if err != nil {
		return nf.Change{}, a.fail(ctx, err)
	}
	return a.change(ctx, had, got, now)
}

// change makes a change of an API server's answer, in which the object is now.
func (a *application) change(ctx context.Context, had *metav1.ObjectMeta, got reply, now *metav1.ObjectMeta) (nf.Change, error) {
	change := changeOf(a.target, now, nf.Configured)
	change.Message = strings.Join(got.warnings, "; ")
	switch {
	case now.DeletionTimestamp != nil:
		return nf.Change{}, nf.E(nf.Busy, "apply", a.ref.String(), errors.New("it is being deleted"))
	case got.code == http.StatusCreated:
		change.Action = nf.Created
	case had == nil && got.repeated:
		// The answer to an earlier attempt was lost; it was that one which
		// created the object.
		change.Action = nf.Created
	case had == nil && filledByOthers(now, manager(a.owner)):
		return a.withdraw(ctx)
	case had != nil && had.ResourceVersion == now.ResourceVersion:
		change.Action = nf.Unchanged
	}
	return change, nil
}

// patch sends the object. Besides what send repeats, it repeats what fails only
// because of the moment.
func (a *application) patch(ctx context.Context, body []byte, force bool) (reply, *metav1.ObjectMeta, error) {
	var now metav1.PartialObjectMetadata
	got, err := a.c.sendDespite(ctx, passing, func() *rest.Request {
		return applyRequest(a.c.rest, a.target, manager(a.owner), body).
			Param("force", fmt.Sprint(force)).SetHeader("Accept", acceptMeta)
	}, into(&now))
	return got, &now.ObjectMeta, err
}

func applyRequest(r rest.Interface, t target, manager string, body []byte) *rest.Request {
	return t.kind.at(r.Patch(types.ApplyYAMLPatchType), t.ref.Namespace, t.ref.Name).
		Param("fieldManager", manager).Param("fieldValidation", metav1.FieldValidationStrict).Body(body)
}

// passing reports whether an apply failed only because of the moment: another
// write came in between, or not every API server of the region serves a new
// kind yet.
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
		return s.Details == nil || s.Details.Kind != "namespaces"
	default:
		return false
	}
}

func isFieldConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// mine returns nil when the object is the owner's, and otherwise the conflict
// that names who has it.
func (a *application) mine(ctx context.Context, had *metav1.ObjectMeta, conflict error) error {
	if had != nil {
		return nil
	}
	live, found, err := a.c.meta(ctx, a.kind, a.ref.Namespace, a.ref.Name)
	if err != nil || !found {
		return err
	}
	who, yes := inTheWay(a.owner, a.ref, live)
	if !yes {
		return nil
	}
	v := nf.Violations{{Object: a.ref, Message: who}}
	if status, ok := errors.AsType[*apierrors.StatusError](conflict); ok {
		v = append(v, violations(a.ref, status.Status())...)
	}
	return notOurs("apply", v)
}

// adopt returns the namespace that was made for the package that holds it, or
// nil when there is none.
func (a *application) adopt(ctx context.Context) (*metav1.ObjectMeta, error) {
	live, found, err := a.c.meta(ctx, a.kind, "", a.ref.Name)
	if err != nil || !found {
		return nil, a.fail(ctx, err)
	}
	if who, yes := foreign(a.owner, a.ref, live); yes {
		return nil, notOurs("apply", nf.Violations{{Object: a.ref, Message: who}})
	}
	return live, nil
}

// withdraw takes our fields back from an object that turned out to be somebody
// else's: it was made between our looking and our applying. One that the owner
// himself has left in place becomes his again.
func (a *application) withdraw(ctx context.Context) (nf.Change, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(a.kind.GroupVersionKind)
	empty.SetNamespace(a.ref.Namespace)
	empty.SetName(a.ref.Name)
	left, err := a.force(ctx, empty)
	if err != nil {
		return nf.Change{}, err
	}
	who, yes := inTheWay(a.owner, a.ref, left)
	if yes {
		return nf.Change{}, notOurs("apply", nf.Violations{{Object: a.ref, Message: who}})
	}
	now, err := a.force(ctx, a.object)
	if err != nil {
		return nf.Change{}, err
	}
	return changeOf(a.target, now, nf.Configured), nil
}

// force applies an object whoever has its fields.
func (a *application) force(ctx context.Context, u *unstructured.Unstructured) (*metav1.ObjectMeta, error) {
	body, err := u.MarshalJSON()
	if err != nil {
		return nil, nf.E(nf.Internal, "apply", a.ref.String(), err)
	}
	_, now, err := a.patch(ctx, body, true)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return now, nil
}

func (a *application) fail(ctx context.Context, err error) error {
	if apierrors.IsNotFound(err) {
		a.c.forgetKinds() // the kind may be gone
	}
	return a.c.failObject(ctx, "apply", a.ref, err)
}
