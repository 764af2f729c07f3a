package lifecycle

import (
	"context"
	"encoding/base64"
	"fmt"
	"index/suffixarray"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// sight is what templates see of the Secrets of a region.
type sight int

const (
	secretsWhole  sight = iota // the request will be carried out
	secretsMasked              // a preview for somebody who could have it carried out
	secretsHidden              // a preview for somebody who could not
)

// previewSight is what templates see in a preview.
func previewSight(opts nf.Options) sight {
	if opts.Secrets {
		return secretsMasked
	}
	return secretsHidden
}

// window is what templates see of a region: what the project may use there. It
// belongs to one preparation.
type window struct {
	engine  *Engine
	cluster Cluster
	tenancy nf.Tenancy
	sight   sight

	usable   map[string]bool // namespaces that were asked for, and whether the project may use them
	seen     []string        // texts that Secrets hold, as they are and decoded
	warnings []string
}

var _ render.Region = (*window)(nil)

// Capabilities implements render.Region.
func (w *window) Capabilities(ctx context.Context) (nf.Capabilities, error) {
	return w.cluster.Capabilities(ctx)
}

// Lookup implements render.Region. What the project may not use is not there,
// with a warning.
func (w *window) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	secret := ref.Group == "" && ref.Kind == "Secret"
	if secret && w.sight == secretsHidden {
		w.warn("a template looks up Secrets, which a dry run shows to nobody who may not make the change: it finds none")
		return nil, nil
	}
	visible, err := w.visible(ctx, ref)
	if err != nil || !visible {
		return nil, err
	}
	found, err := w.cluster.Lookup(ctx, ref)
	if err != nil || found == nil {
		return nil, err
	}
	if items, list := found["items"].([]any); list && ref.Name == "" {
		if found["items"], err = w.allowed(ctx, ref, items); err != nil {
			return nil, err
		}
	}
	if secret {
		w.treat(found)
	}
	return found, nil
}

// visible reports whether the project may look for what a ref names, or for some
// of it.
func (w *window) visible(ctx context.Context, ref nf.Ref) (bool, error) {
	if w.tenancy.Whole {
		return true, nil
	}
	namespaced, served, err := w.cluster.Scope(ctx, ref)
	switch {
	case err != nil || !served:
		return false, err
	case !namespaced && isNamespace(ref) && ref.Name != "":
		return w.use(ctx, ref.Name)
	case !namespaced:
		if !w.tenancy.MayHold(ref.Group, ref.Kind) {
			w.warn(fmt.Sprintf("a template looks up %s objects, which cloud region %s does not grant to project %s: it finds none",
				ref.Kind, w.tenancy.Region, w.tenancy.Project))
			return false, nil
		}
		return true, nil
	case ref.Namespace == "":
		return true, nil // what it finds is looked through
	}
	return w.use(ctx, ref.Namespace)
}

// use reports whether the project may use a namespace, and warns when it may not.
func (w *window) use(ctx context.Context, namespace string) (bool, error) {
	if err := w.learn(ctx, []string{namespace}); err != nil {
		return false, err
	}
	if !w.usable[namespace] {
		w.warn(fmt.Sprintf("a template looks into namespace %s of cloud region %s, which project %s may not use: it finds nothing",
			namespace, w.tenancy.Region, w.tenancy.Project))
	}
	return w.usable[namespace], nil
}

// learn asks which of the namespaces the project may use.
func (w *window) learn(ctx context.Context, namespaces []string) error {
	namespaces = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(namespaces))), func(name string) bool {
		_, known := w.usable[name]
		return known
	})
	if len(namespaces) == 0 {
		return nil
	}
	live, err := w.cluster.Namespaces(ctx, namespaces)
	if err != nil {
		return err
	}
	for _, name := range namespaces {
		var is *nf.Namespace
		if found, there := live[name]; there {
			is = &found
		}
		if w.usable[name], err = w.engine.mayUse(ctx, w.tenancy, name, is); err != nil {
			return err
		}
	}
	return nil
}

// allowed returns those items of a list that are where the project may look.
func (w *window) allowed(ctx context.Context, ref nf.Ref, items []any) ([]any, error) {
	if w.tenancy.Whole || ref.Namespace != "" {
		return items, nil
	}
	var namespaces []string
	for _, item := range items {
		namespaces = append(namespaces, namespaceIn(item))
	}
	if err := w.learn(ctx, namespaces); err != nil {
		return nil, err
	}
	// A cluster-scoped object has no namespace, and its kind is granted.
	return slices.DeleteFunc(items, func(item any) bool {
		namespace := namespaceIn(item)
		return namespace != "" && !w.usable[namespace]
	}), nil
}

func namespaceIn(object any) string {
	fields, _ := object.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// treat notes what Secrets hold, and masks it in a preview.
func (w *window) treat(found map[string]any) {
	if w.sight != secretsMasked {
		w.seen = append(w.seen, nf.TextsOfSecret(found)...)
		return
	}
	objects := []any{found}
	if items, list := found["items"].([]any); list {
		objects = items
	}
	for _, item := range objects {
		object, _ := item.(map[string]any)
		data, _ := object["data"].(map[string]any)
		for name := range data {
			data[name] = base64.StdEncoding.EncodeToString([]byte(nf.Masked))
		}
		unstructured.RemoveNestedField(object, "metadata", "annotations", nf.AppliedAnnotation)
	}
}

func (w *window) warn(text string) {
	if !slices.Contains(w.warnings, text) {
		w.warnings = append(w.warnings, text)
	}
}

// repeated returns those texts of Secrets that a plan repeats.
func (w *window) repeated(plan render.Plan) []string {
	if len(w.seen) == 0 {
		return nil
	}
	var text []byte
	for _, obj := range withHooks(plan) {
		text = appendTexts(text, obj.Object)
	}
	index := suffixarray.New(text)
	var out []string
	for _, value := range slices.Compact(slices.Sorted(slices.Values(w.seen))) {
		if value != "" && len(index.Lookup([]byte(value), 1)) > 0 {
			out = append(out, value)
		}
	}
	return out
}

// appendTexts appends every text in a JSON value, each behind a zero byte.
func appendTexts(to []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			to = appendTexts(append(append(to, 0), key...), inner)
		}
	case []any:
		for _, inner := range v {
			to = appendTexts(to, inner)
		}
	case string:
		to = append(append(to, 0), v...)
	}
	return to
}
