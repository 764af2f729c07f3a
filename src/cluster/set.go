package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Set gives fields of the owner's objects their values, at most
// PoolConfig.Parallel at a time, and returns a change for each, in the given order:
// nf.Configured; or nf.Unchanged if it is as wanted already, or, without a uid, if
// the object does not exist. Nothing else of an object changes. A dry run is checked
// by the API server, and changes nothing.
//
// It starts, stops, restarts and migrates virtual machines, and does not wait until
// that is done. The change of a restart is that of the former VirtualMachineInstance,
// nf.Deleted; that of a migration is nf.Created, and names its
// VirtualMachineInstanceMigration.
//
// It returns the first error: nf.Conflict if an object belongs to another owner;
// nf.Invalid if it has no such field, or the API server rejects the value; nf.Failed
// if a permission is missing; nf.Unsupported if a kind is not served.
func (c *Cluster) Set(ctx context.Context, owner nf.Subject, settings []nf.Setting, dryRun bool) ([]nf.Change, error) {
	refs := make([]nf.Ref, len(settings))
	for i, s := range settings {
		refs[i] = s.Ref
	}
	targets, err := c.client.apis.resolveAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	var found machines
	if slices.ContainsFunc(settings, func(s nf.Setting) bool { return s.Machine != "" }) {
		found, err = machinesOf(ctx, c.client)
	}
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(settings))
	err = each(c.client.parallel, len(settings), func(i int) (err error) {
		o := fieldSetter{liveObject{client: c.client, owner: owner, target: targets[i]}, found, settings[i], dryRun}
		changes[i], err = o.run(ctx)
		op := cmp.Or(string(settings[i].Machine), "set "+nf.FieldPath(settings[i].Path)+" of")
		return c.client.region.failObject(ctx, op, settings[i].Ref, err)
	})
	return reached(changes), err
}

// liveObject is an object of an owner, as it is at present.
type liveObject struct {
	client *client
	owner  nf.Subject
	target target
}

// read returns the object. It returns nf.NotFound if it does not exist, and
// nf.Conflict if it belongs to another owner.
func (o liveObject) read(ctx context.Context, op string) (*unstructured.Unstructured, error) {
	ref := o.target.ref
	if !o.target.served {
		return nil, nf.E(nf.Unsupported, op, ref.String(), errors.New("the region does not serve its kind"))
	}
	var live unstructured.Unstructured
	if err := o.client.get(ctx, o.target, &live); apierrors.IsNotFound(err) {
		return nil, nf.E(nf.NotFound, op, ref.String(), errors.New("it does not exist in the region"))
	} else if err != nil {
		return nil, o.client.region.failObject(ctx, op, ref, err)
	}
	if theirs, yes := otherOwner(o.owner, ref, &live); yes {
		return nil, notOwned(op, theirs)
	}
	return &live, nil
}

// fieldSetter sets a field of an object.
type fieldSetter struct {
	object   liveObject
	machines machines
	setting  nf.Setting
	dry      bool
}

// run sets the field. It reads the object again if it has changed in the meantime.
func (o fieldSetter) run(ctx context.Context) (nf.Change, error) {
	if o.setting.Machine == nf.Restart || o.setting.Machine == nf.Migrate {
		return o.once(ctx)
	}
	last := errors.New("it changes all the time")
	for range attempts {
		live, err := o.object.read(ctx, "set a field of")
		if nf.KindOf(err) == nf.NotFound {
			return nf.Change{Ref: o.object.target.ref, Action: nf.Unchanged, Message: "it does not exist"}, nil
		}
		if err != nil {
			return nf.Change{}, err
		}
		change := nf.Change{Ref: o.object.target.ref, Action: nf.Unchanged, UID: string(live.GetUID()), Generation: live.GetGeneration()}
		build, err := o.next(ctx, live)
		if err != nil {
			return nf.Change{}, err
		}
		if build == nil {
			return change, nil
		}
		_, err = o.object.client.send(ctx, build, nil)
		if apierrors.IsConflict(err) {
			last = err
			continue
		}
		if err != nil || o.dry {
			change.Action = nf.Configured
			return change, err
		}
		now, found, err := o.object.client.meta(ctx, o.object.target)
		if err == nil && found {
			change = changeOf(o.object.target, now, nf.Configured)
		}
		return change, err
	}
	return nf.Change{}, nf.E(nf.Conflict, "set a field of", o.object.target.ref.String(), last)
}

// next returns the request that makes the object that was read as wanted, or nil if
// it is.
func (o fieldSetter) next(ctx context.Context, live *unstructured.Unstructured) (func() *rest.Request, error) {
	if o.setting.Machine != "" {
		return o.switchMachine(ctx, live)
	}
	wanted := nf.ValueOf(o.setting.Value)
	if is, _ := nf.At(live.Object, o.setting.Path); reflect.DeepEqual(is, wanted) {
		return nil, nil
	}
	return o.patch(live, wanted)
}

// patch returns the request that sets the field of the object that was read.
func (o fieldSetter) patch(live *unstructured.Unstructured, wanted any) (func() *rest.Request, error) {
	document := map[string]any{"spec": map[string]any{"replicas": wanted}}
	if !o.setting.Scale {
		var ok bool
		if document, ok = mergePatch(live, o.setting.Path, wanted); !ok {
			return nil, nf.E(nf.Invalid, "set", o.object.target.ref.String(), nf.Violations{{
				Object: o.object.target.ref, Field: nf.FieldPath(o.setting.Path), Message: "the object has no place for such a field",
			}})
		}
	}
	body, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a patch of %s: %w", o.object.target.ref, err)
	}
	return func() *rest.Request {
		r := o.object.client.merge(o.object.target, manager(o.object.owner), body)
		if o.setting.Scale {
			r.SubResource("scale")
		} else {
			r.SetHeader("Accept", acceptMeta)
		}
		if o.dry {
			r.Param("dryRun", "All")
		}
		return r
	}, nil
}

// mergePatch returns the JSON merge patch that sets a field of an object that was
// read. A list on the way to the field is replaced as a whole, so then the object must
// not have changed.
func mergePatch(live *unstructured.Unstructured, path string, wanted any) (document map[string]any, ok bool) {
	metadata := map[string]any{"uid": string(live.GetUID())}
	document = map[string]any{"metadata": metadata}
	object := runtime.DeepCopyJSON(live.Object)
	if !nf.SetAt(object, path, wanted) {
		return nil, false
	}
	keys := nf.PointerKeys(path)
	at := document
	for n, key := range keys[:len(keys)-1] {
		value, _ := nf.At(object, nf.Pointer(keys[:n+1]))
		if _, nested := value.(map[string]any); !nested {
			metadata["resourceVersion"], at[key] = live.GetResourceVersion(), value
			return document, true
		}
		next, _ := at[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
		}
		at[key], at = next, next
	}
	at[keys[len(keys)-1]] = wanted // null removes the field
	return document, true
}
