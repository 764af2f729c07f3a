package cluster

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Diff returns what Apply would change, found by a server-side dry run:
// nf.Created, nf.Configured with the fields that differ, or nf.Unchanged for
// each object, in the given order. An object whose kind or namespace does not
// exist yet counts as created. If the API server rejects an object, Diff
// returns the error that Apply would return. If the region has served the kind of
// an object until now, but no longer does, Diff returns nf.Unsupported. Values of
// Secrets are nf.Masked.
//
// An object that is not the owner's but matches the selector is nf.Adopted, with the
// fields that differ, and a message that names its origin.
func (c *Cluster) Diff(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	gvks := make([]schema.GroupVersionKind, len(objects))
	for i, u := range objects {
		gvks[i] = u.GroupVersionKind()
	}
	ks, err := c.client.apis.kinds(ctx, gvks)
	if err != nil {
		return nil, err
	}
	targets := make([]target, len(objects))
	for i, u := range objects {
		targets[i].ref = nf.RefOf(u)
		targets[i].kind, targets[i].served = ks.exact(gvks[i])
	}
	objects, _, err = c.client.withoutReplicas(ctx, owner, targets, objects, nil)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.client.parallel, len(objects), func(i int) (err error) {
		a := application{client: c.client, owner: owner, target: targets[i], object: objects[i]}
		if !a.target.served {
			changes[i] = nf.Change{Ref: a.target.ref, Action: nf.Created}
			return nil
		}
		if v := a.target.kind.check(objects[i]); len(v) > 0 {
			return nf.E(nf.Invalid, "compare", a.target.ref.String(), v)
		}
		changes[i], err = a.compare(ctx, selector)
		return c.client.region.failObject(ctx, "compare", a.target.ref, err)
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// compare returns the change that applying the object would make.
func (a *application) compare(ctx context.Context, selector nf.AdoptionSelector) (nf.Change, error) {
	change := nf.Change{Ref: a.target.ref, Action: nf.Created}
	var would, live unstructured.Unstructured
	exists, err := a.rehearse(ctx, &would)
	switch {
	case apierrors.IsInvalid(err):
		return change, a.refusedChange(ctx, err)
	case err != nil || !exists:
		return change, err
	}
	err = a.client.get(ctx, a.target, &live)
	if apierrors.IsNotFound(err) {
		return change, nil // it was deleted in the meantime
	}
	if err != nil {
		return change, err
	}
	theirs, others := ownershipConflict(a.owner, a.target.ref, &live)
	if others && !isAdoptable(a.owner, &live, selector) {
		return change, notOwned("compare", theirs)
	}
	change.UID, change.Generation = string(live.GetUID()), live.GetGeneration()
	if _, planned := nf.At(a.object.Object, replicasPath); !planned && singleKinds[a.target.kind.GroupKind()] {
		present, _ := nf.At(live.Object, replicasPath)
		nf.SetAt(would.Object, replicasPath, present) // see withoutReplicas
	}
	change.Fields = differences(&live, &would)
	switch {
	case others:
		change.Action, change.Message, change.Mentions = nf.Adopted, theirs.Message, theirs.Mentions
	case len(change.Fields) > 0:
		change.Action = nf.Configured
	default:
		change.Action = nf.Unchanged
	}
	return change, nil
}

// refusedChange returns nf.Conflict with reason "immutable" if the API server
// rejected only a change of an immutable field, else the rejection itself.
func (a *application) refusedChange(ctx context.Context, refusal error) error {
	live, found, err := a.client.meta(ctx, a.target)
	if err != nil || !found {
		return refusal
	}
	if _, yes := otherOwner(a.owner, a.target.ref, live); yes {
		return refusal
	}
	return a.asImmutable(ctx, refusal)
}

// differences returns the fields in which two states of an object differ,
// sorted by path. Fields that the API server maintains are ignored.
func differences(old, now *unstructured.Unstructured) []nf.Field {
	d := difference{secret: old.GetKind() == "Secret" && old.GetAPIVersion() == "v1"}
	d.maps("", normalized(old.Object), normalized(now.Object))
	return d.fields
}

// normalized returns an object without the fields that the API server and
// controllers maintain.
func normalized(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range [...]string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
			delete(metadata, field)
		}
		out["metadata"] = metadata
	}
	return out
}

type difference struct {
	secret bool // the object is a Secret: mask its values
	fields []nf.Field
}

func (d *difference) values(path string, old, now any) {
	oldMap, oldIsMap := old.(map[string]any)
	nowMap, nowIsMap := now.(map[string]any)
	oldList, oldIsList := old.([]any)
	nowList, nowIsList := now.([]any)
	switch {
	case reflect.DeepEqual(old, now):
	case oldIsMap && nowIsMap:
		d.maps(path, oldMap, nowMap)
	case oldIsList && nowIsList:
		for i := range max(len(oldList), len(nowList)) {
			d.values(fmt.Sprintf("%s[%d]", path, i), at(oldList, i), at(nowList, i))
		}
	case d.secret && (oldIsMap || old == nil) && (nowIsMap || now == nil):
		// Recurse to the leaves, so that they can be masked.
		d.maps(path, oldMap, nowMap)
	default:
		d.fields = append(d.fields, nf.Field{Path: path, Old: d.shown(path, old), New: d.shown(path, now)})
	}
}

func (d *difference) maps(path string, old, now map[string]any) {
	keys := slices.Collect(maps.Keys(old))
	keys = slices.AppendSeq(keys, maps.Keys(now))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		d.values(member(path, key), old[key], now[key])
	}
}

// member appends a key to a path. Keys that contain dots, slashes or brackets
// are put in brackets.
func member(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// hides reports whether values at the path are secret. The annotation of
// kubectl apply holds a copy of the whole object.
func (d *difference) hides(path string) bool {
	return d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData") ||
		path == "metadata.annotations["+nf.AppliedAnnotation+"]")
}

func (d *difference) shown(path string, value any) any {
	if value != nil && d.hides(path) {
		return nf.Masked
	}
	return value
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
