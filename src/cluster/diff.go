package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Diff tells what Apply would change, by a server-side dry run: nf.Created,
// nf.Configured with the fields that differ, or nf.Unchanged for each object,
// in the given order. An object whose kind or namespace does not exist yet
// would be created. What the API server would refuse is the error that Apply
// would give. Values of Secrets are nf.Masked.
func (c *Cluster) Diff(ctx context.Context, owner string, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	gvks := make([]schema.GroupVersionKind, len(objects))
	for i, u := range objects {
		gvks[i] = u.GroupVersionKind()
	}
	ks, err := c.lookup(ctx, gvks)
	if err != nil {
		return nil, err
	}
	changes := make([]nf.Change, len(objects))
	err = each(c.parallel, len(objects), func(i int) error {
		t := target{ref: refOf(objects[i])}
		changes[i] = nf.Change{Ref: t.ref, Action: nf.Created}
		if t.kind, t.served = ks.exact(gvks[i]); !t.served {
			return nil
		}
		if v := t.kind.check(objects[i]); len(v) > 0 {
			return nf.E(nf.Invalid, "compare", t.ref.String(), v)
		}
		return c.failObject(ctx, "compare", t.ref, c.compare(ctx, owner, t, objects[i], &changes[i]))
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// compare completes the change that applying one object would be.
func (c *Cluster) compare(ctx context.Context, owner string, t target, u *unstructured.Unstructured, change *nf.Change) error {
	body, err := u.MarshalJSON()
	if err != nil {
		return nf.E(nf.Invalid, "compare", t.ref.String(), err)
	}
	var would, live unstructured.Unstructured
	got, err := c.send(ctx, func() *rest.Request {
		return applyRequest(c.rest, t, manager(owner), body).Param("force", "true").Param("dryRun", "All")
	}, into(&would))
	if apierrors.IsNotFound(err) || err == nil && got.code == http.StatusCreated {
		return nil // there is no such object, or not even its namespace
	}
	if apierrors.IsInvalid(err) {
		return c.refusedChange(ctx, owner, t, u, err)
	}
	if err != nil {
		return err
	}
	_, err = c.send(ctx, func() *rest.Request {
		return t.kind.at(c.rest.Get(), t.ref.Namespace, t.ref.Name)
	}, into(&live))
	if apierrors.IsNotFound(err) {
		return nil // it went away since
	}
	if err != nil {
		return err
	}
	if who, yes := inTheWay(owner, t.ref, &live); yes {
		return notOurs("compare", nf.Violations{{Object: t.ref, Message: who}})
	}
	change.UID, change.Generation = string(live.GetUID()), live.GetGeneration()
	change.Fields = differences(&live, &would)
	change.Action = nf.Unchanged
	if len(change.Fields) > 0 {
		change.Action = nf.Configured
	}
	return nil
}

// refusedChange tells whether an object that was refused is wrong, or cannot be
// changed from what it is.
func (c *Cluster) refusedChange(ctx context.Context, owner string, t target, u *unstructured.Unstructured, refusal error) error {
	live, found, err := c.meta(ctx, t.kind, t.ref.Namespace, t.ref.Name)
	if err != nil || !found {
		return refusal
	}
	if _, yes := foreign(owner, t.ref, live); yes {
		return refusal
	}
	return c.asImmutable(ctx, owner, t, u, refusal)
}

// differences returns the fields in which two states of an object differ, but
// for those that the API server keeps itself, sorted by path.
func differences(old, now *unstructured.Unstructured) []nf.Field {
	d := difference{secret: old.GetKind() == "Secret" && old.GetAPIVersion() == "v1"}
	d.maps("", tended(old.Object), tended(now.Object))
	return d.fields
}

// tended is an object without what the API server and controllers keep in it.
func tended(object map[string]any) map[string]any {
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
		// Down to what must be masked.
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

// member appends a key to a path; keys with dots of their own go in brackets.
func member(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// hides reports whether values at the path are secret. kubectl keeps a copy of
// the whole object in an annotation.
func (d *difference) hides(path string) bool {
	return d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData") ||
		path == "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]")
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
