package cluster

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// replicasManager is the field manager that keeps a number of replicas of which an
// owner gives up its ownership. Without it, the API server would reset the number.
const replicasManager = "k8splugin-replicas"

const replicasPath = "/spec/replicas"

// singleKinds are the kinds whose number of replicas is 1 by default.
var singleKinds = map[schema.GroupKind]bool{{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true}

// withoutReplicas returns objects to apply, without the numbers of replicas that
// autoscalers set: those in the region, and those among the objects. Only objects that
// the owner had are looked at, because a new one starts with its own number. If had is
// nil, all objects are looked at for a dry run: an object has the present number
// instead, so that nothing differs. If a permission to list autoscalers is missing,
// withoutReplicas only knows those among the objects, and returns the error as warning.
//
// An object that no longer has a number, because autoscalers are to set it, also keeps the
// present one. The API server would reset it to 1.
func (c *client) withoutReplicas(
	ctx context.Context, owner nf.Subject, targets []target, objects []*unstructured.Unstructured, had map[string]*metav1.ObjectMeta,
) (out []*unstructured.Unstructured, warning string, err error) {
	out = slices.Clone(objects)
	var number []int // the objects with a number
	for i, u := range objects {
		before := had[targets[i].ref.Key()]
		if !targets[i].served || had != nil && before == nil {
			continue
		}
		if _, has := nf.At(u.Object, replicasPath); has {
			number = append(number, i)
			continue
		}
		if out[i], err = (liveObject{client: c, owner: owner, target: targets[i]}).left(ctx, u, before); err != nil {
			return nil, "", err
		}
	}
	known := map[string]autoscalers{} // by namespace
	for _, i := range number {
		namespace := objects[i].GetNamespace()
		if _, listed := known[namespace]; !listed {
			known[namespace], err = c.autoscalers(ctx, namespace, objects)
		}
		if nf.ReasonOf(err) == nf.ReasonForbidden {
			warning, err = "a number of replicas that an autoscaler has set may be replaced: "+err.Error(), nil
		}
		if err != nil {
			return nil, "", err
		}
		if _, yes := known[namespace].of(targets[i].ref); !yes {
			continue
		}
		o := liveObject{client: c, owner: owner, target: targets[i]}
		if out[i], err = o.autoscaled(ctx, objects[i], had == nil); err != nil {
			return nil, "", err
		}
	}
	return out, warning, nil
}

// left gives up the ownership of the number of replicas of an object that no longer has
// one, if the owner has applied it before. It returns the object to apply.
func (o liveObject) left(ctx context.Context, u *unstructured.Unstructured, before *metav1.ObjectMeta) (*unstructured.Unstructured, error) {
	if before == nil || !singleKinds[o.target.kind.GroupKind()] || !slices.ContainsFunc(before.ManagedFields, appliesReplicas(manager(o.owner))) {
		return u, nil
	}
	return o.autoscaled(ctx, u, false)
}

// autoscalers returns the autoscalers in a namespace, and those among objects. If the
// former cannot be listed, it returns the latter and the error.
func (c *client) autoscalers(ctx context.Context, namespace string, objects []*unstructured.Unstructured) (autoscalers, error) {
	ks, err := c.apis.kinds(ctx, nil)
	if err != nil {
		return nil, err
	}
	found, err := autoscalersIn(ctx, c, ks, namespace)
	for _, u := range objects {
		if a, ok := autoscalerOf(u); ok && u.GetNamespace() == namespace {
			found = append(found, a)
		}
	}
	return found, err
}

// autoscaled returns an object to apply without its number of replicas, and gives up
// the ownership of the number. An object that does not exist stays as it is.
func (o liveObject) autoscaled(ctx context.Context, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	live, err := o.read(ctx, "apply")
	if kind := nf.KindOf(err); err != nil && (kind == nf.NotFound || kind == nf.Conflict) {
		return u, nil // the apply reports an object of another owner
	}
	if err != nil {
		return nil, err
	}
	out := u.DeepCopy()
	present, has := nf.At(live.Object, replicasPath)
	if dry {
		nf.SetAt(out.Object, replicasPath, present)
		return out, nil
	}
	nf.SetAt(out.Object, replicasPath, nil)
	if !has || !slices.ContainsFunc(live.GetManagedFields(), appliesReplicas(manager(o.owner))) {
		return out, nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": present}}}
	kept.SetGroupVersionKind(u.GroupVersionKind())
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(live.GetUID())
	build, err := (&application{client: o.client, owner: o.owner, target: o.target, object: kept}).request(replicasManager)
	if err != nil {
		return nil, err
	}
	_, err = o.client.send(ctx, build, nil)
	if apierrors.IsConflict(err) {
		err = nil // the autoscaler has set another number, which is its own then
	}
	return out, o.client.region.failObject(ctx, "apply", o.target.ref, err)
}

// appliesReplicas reports whether an entry is that of a manager that has applied
// spec.replicas.
func appliesReplicas(manager string) func(metav1.ManagedFieldsEntry) bool {
	return func(f metav1.ManagedFieldsEntry) bool {
		if f.Manager != manager || f.Operation != metav1.ManagedFieldsOperationApply || f.FieldsV1 == nil {
			return false
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
			return true
		}
		_, owns := fields.Spec["f:replicas"]
		return owns
	}
}
