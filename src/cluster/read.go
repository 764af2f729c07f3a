package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// mostFound is how many objects are read at once: they are all held in memory.
const mostFound = 5000

// Selection says which objects are meant. APIVersion and Kind are required.
type Selection struct {
	APIVersion string // "v1", "apps/v1"
	Kind       string
	Namespace  string // empty: every one, or none for a cluster-scoped kind
	Name       string // empty: every one
	Labels     string // a label selector; empty: whatever their labels
}

// Read returns the objects that the refs name, whole and as they are now, in the
// order of the refs: nil where the owner has no such object, or its kind is not
// served. The values in Secrets are blank.
func (c *Cluster) Read(ctx context.Context, owner string, refs []nf.Ref) ([]map[string]any, error) {
	targets, err := c.targetsOf(ctx, refs)
	if err != nil {
		return nil, err
	}
	places := placesOf(targets)
	found := make([][]unstructured.Unstructured, len(places))
	wanted := keysOf(targets)
	err = each(c.parallel, len(places), func(i int) error {
		all, err := c.whole(ctx, places[i], query{labels: ownedBy(owner)})
		found[i] = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !wanted[refOf(&u).Key()] })
		return c.fail(ctx, "list", places[i].kind.Kind+" objects", err)
	})
	if err != nil {
		return nil, err
	}
	live := map[string]map[string]any{}
	for _, objects := range found {
		for i := range objects {
			live[refOf(&objects[i]).Key()] = blanked(objects[i].Object)
		}
	}
	out := make([]map[string]any, len(refs))
	for i, ref := range refs {
		out[i] = live[ref.Key()]
	}
	return out, nil
}

// Find returns the objects of a selection, whole and as they are now, whoever
// they belong to. The values in Secrets are blank. It fails with nf.Invalid for
// a selection that means nothing, nf.Unsupported for a kind that is not served,
// and nf.TooLarge when there are more than 5000.
func (c *Cluster) Find(ctx context.Context, s Selection) ([]map[string]any, error) {
	k, err := c.listable(ctx, s)
	if err != nil {
		return nil, err
	}
	var q query
	if wrong := rest.IsValidPathSegmentName(s.Namespace); len(wrong) > 0 {
		return nil, nf.E(nf.Invalid, "list", s.Kind+" objects", nf.Violations{{Field: "Namespace", Message: wrong[0]}})
	}
	if s.Labels != "" {
		selector, err := labels.Parse(s.Labels)
		if err != nil {
			return nil, nf.E(nf.Invalid, "list", s.Kind+" objects", nf.Violations{{Field: "Labels", Message: err.Error()}})
		}
		q.labels = selector.String()
	}
	if s.Name != "" {
		q.fields = fields.OneTermEqualSelector("metadata.name", s.Name).String()
	}
	objects, err := c.whole(ctx, k.in(s.Namespace), q)
	if err != nil {
		return nil, c.fail(ctx, "list", s.Kind+" objects", err)
	}
	out := make([]map[string]any, len(objects))
	for i := range objects {
		out[i] = blanked(objects[i].Object)
	}
	return out, nil
}

// listable returns the kind of a selection.
func (c *Cluster) listable(ctx context.Context, s Selection) (kind, error) {
	gv, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil || s.APIVersion == "" || s.Kind == "" {
		return kind{}, nf.E(nf.Invalid, "list", s.Kind+" objects", fmt.Errorf("%q and %q are no version and kind", s.APIVersion, s.Kind))
	}
	gvk := gv.WithKind(s.Kind)
	ks, err := c.lookup(ctx, []schema.GroupVersionKind{gvk})
	if err != nil {
		return kind{}, err
	}
	k, ok := ks.exact(gvk)
	switch {
	case !ok && ks.hidden(gvk.Group):
		return kind{}, c.fail(ctx, "read the API of", c.name(), ks.partial)
	case !ok || !k.can("list"):
		return kind{}, nf.E(nf.Unsupported, "list", s.Kind+" objects", fmt.Errorf("the region has no list of %s, kind %s", s.APIVersion, s.Kind))
	}
	return k, nil
}

// whole lists a place's objects with all that is in them. There are none of a
// kind that is not served any more.
func (c *Cluster) whole(ctx context.Context, p place, q query) ([]unstructured.Unstructured, error) {
	h := hoard{share: c.guard.share, most: mostFound}
	_, err := c.pages(ctx, p, q, h.read, h.release)
	out := h.items
	h.release() // from here on it is the caller's
	if apierrors.IsNotFound(err) {
		c.forgetKinds()
		return nil, nil
	}
	return out, err
}

// blanked returns an object without the values that it keeps secret.
func blanked(object map[string]any) map[string]any {
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
		return object
	}
	for _, field := range [...]string{"data", "stringData"} {
		values, _ := object[field].(map[string]any)
		for name := range values {
			values[name] = ""
		}
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", nf.AppliedAnnotation)
	return object
}
