package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// mostFound is the maximum number of objects read at once, as all are held in
// memory.
const mostFound = 5000

// Selection selects objects. APIVersion and Kind are required.
type Selection struct {
	APIVersion string // "v1", "apps/v1"
	Kind       string
	Namespace  string // empty: all namespaces, or a cluster-scoped kind
	Name       string // empty: all names
	Labels     string // a label selector; empty: all labels
}

// Read returns the refs' complete present objects, in the order of the refs:
// nil if the owner has no such object or its kind is not served. The values in
// Secrets are blank. An object that cannot be read, while others can, has only
// its name and a status with the reason, and no uid; Health reports such an
// object as nf.Unknown. Read returns nf.Unreachable if the region responds to
// none of the requests.
func (c *Cluster) Read(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]map[string]any, error) {
	targets, hidden, err := c.client.apis.resolve(ctx, refs)
	if err != nil {
		return nil, err
	}
	scopes := scopesOf(targets)
	found := make([]objectList, len(scopes))
	defer func() { // all are held at the same time
		for i := range found {
			found[i].release()
		}
	}()
	errs := tryEach(ctx, c.client.parallel, len(scopes), func(i int) (err error) {
		found[i], err = c.client.whole(ctx, scopes[i], query{labels: ownedBy(owner)})
		return c.client.region.fail(ctx, "list", scopes[i].kind.Kind+" objects", err)
	})
	if ctx.Err() != nil {
		return nil, c.client.region.fail(ctx, "list", "objects", ctx.Err())
	}
	if err := silent(errs); err != nil {
		return nil, err
	}
	unread, wanted := reasonsOf(hidden), keysOf(targets)
	live := map[string]map[string]any{}
	for i, p := range scopes {
		if errs[i] != nil {
			unread.add(errs[i], p.keysOf(targets)...)
		}
		for _, u := range found[i].items {
			if key := nf.RefOf(&u).Key(); wanted[key] {
				live[key] = blanked(u.Object)
			}
		}
	}
	out := make([]map[string]any, len(refs))
	for i, ref := range refs {
		if out[i] = live[ref.Key()]; unread[ref.Key()] != "" {
			out[i] = unknown(ref, unread[ref.Key()])
		}
	}
	return out, nil
}

// unknown returns a placeholder for an object that cannot be read.
func unknown(ref nf.Ref, why string) map[string]any {
	metadata := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		metadata["namespace"] = ref.Namespace
	}
	return map[string]any{
		"apiVersion": ref.APIVersion(), "kind": ref.Kind, "metadata": metadata,
		"status": map[string]any{"phase": string(nf.Unknown), "message": why},
	}
}

// Find returns the complete present objects of a selection, whatever their
// owner. The values in Secrets are blank. It returns nf.Invalid for an invalid
// selection, nf.Unsupported if the kind is not served, and nf.TooLarge if there
// are more than 5000 objects.
func (c *Cluster) Find(ctx context.Context, s Selection) ([]map[string]any, error) {
	k, err := c.client.apis.listable(ctx, s)
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
			return nil, nf.E(nf.Invalid, "list", s.Kind+" objects", nf.Violations{{
				Field: "Labels", Message: `is not a label selector of Kubernetes, such as "app=web,tier notin (cache)"`,
			}})
		}
		q.labels = selector.String()
	}
	if s.Name != "" {
		q.fields = fields.OneTermEqualSelector("metadata.name", s.Name).String()
	}
	objects, err := c.client.whole(ctx, k.in(s.Namespace), q)
	if err != nil {
		return nil, c.client.region.fail(ctx, "list", s.Kind+" objects", err)
	}
	defer objects.release()
	out := make([]map[string]any, len(objects.items))
	for i := range objects.items {
		out[i] = blanked(objects.items[i].Object)
	}
	return out, nil
}

// listable returns the kind of a selection.
func (a *apis) listable(ctx context.Context, s Selection) (kind, error) {
	gv, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil || s.APIVersion == "" || s.Kind == "" {
		return kind{}, nf.E(nf.Invalid, "list", s.Kind+" objects", fmt.Errorf("%q and %q are not a version and a kind", s.APIVersion, s.Kind))
	}
	gvk := gv.WithKind(s.Kind)
	ks, err := a.kinds(ctx, []schema.GroupVersionKind{gvk})
	if err != nil {
		return kind{}, err
	}
	k, ok := ks.exact(gvk)
	switch {
	case !ok && ks.hidden(gvk.Group):
		return kind{}, a.unreadable(ctx, ks.partial)
	case !ok || !k.can("list"):
		return kind{}, nf.E(nf.Unsupported, "list", s.Kind+" objects", fmt.Errorf("the region has no list of %s, kind %s", s.APIVersion, s.Kind))
	}
	return k, nil
}

// blanked returns an object with the values of a Secret blanked.
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
