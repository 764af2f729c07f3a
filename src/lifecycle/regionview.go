package lifecycle

import (
	"context"
	"encoding/base64"
	"fmt"
	"index/suffixarray"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// secretAccess is how much of a region's Secrets templates can read.
type secretAccess int

const (
	secretsWhole    secretAccess = iota // for a request that will be executed
	secretsMasked                       // for a preview by a caller that may make the change
	secretsHidden                       // for a preview by a caller that may not
	secretsSearched                     // no template is executed: the release to adopt is searched
)

// previewAccess returns the access of templates in a preview.
func previewAccess(opts nf.Options) secretAccess {
	if opts.Secrets {
		return secretsMasked
	}
	return secretsHidden
}

// regionView restricts the objects of a region that templates can read to those
// that the project may use, and hides the owners of the objects of others. Each
// preparation has its own.
type regionView struct {
	cluster Cluster
	owner   nf.Subject // the instance that the templates are rendered for
	tenancy nf.Tenancy
	access  secretAccess

	usable   map[string]bool // namespaces checked so far, and whether the project may use them
	seen     []string        // texts of Secrets, as they are and decoded, and secrets of the package
	warnings []string
}

var _ render.Region = (*regionView)(nil)

// Capabilities implements render.Region.
func (v *regionView) Capabilities(ctx context.Context) (nf.Capabilities, error) {
	return v.cluster.Capabilities(ctx)
}

// Lookup implements render.Region. An object that the project may not use is
// reported as missing, with a warning.
func (v *regionView) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	secret := ref.Group == "" && ref.Kind == "Secret"
	if secret && v.access == secretsHidden {
		v.warn("a template looks up Secrets: the dry run finds none, because the caller may not make the change")
		return nil, nil
	}
	visible, err := v.visible(ctx, ref)
	if err != nil || !visible {
		return nil, err
	}
	found, err := v.cluster.Lookup(ctx, ref)
	if err != nil || found == nil {
		return nil, err
	}
	if items, list := found["items"].([]any); list && ref.Name == "" {
		if found["items"], err = v.allowed(ctx, ref, items); err != nil {
			return nil, err
		}
	}
	objects := objectsIn(found)
	for _, object := range objects {
		if u := (&unstructured.Unstructured{Object: object}); nf.OwnerOf(u.GetLabels()) != v.owner {
			withoutMarks("", object)
		}
	}
	if secret {
		v.recordSecrets(objects)
	}
	return found, nil
}

// objectsIn returns the objects that a lookup has found: one, or the items of a list.
func objectsIn(found map[string]any) []map[string]any {
	items, list := found["items"].([]any)
	if !list {
		return []map[string]any{found}
	}
	var out []map[string]any
	for _, item := range items {
		if object, is := item.(map[string]any); is {
			out = append(out, object)
		}
	}
	return out
}

// withoutMarks removes what names the owner of an object: the service's labels and
// annotations, also in templates and selectors, the managers of the object's fields,
// and the copy of its manifest. The value is that of a field.
func withoutMarks(field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		switch field {
		case "labels", "annotations", "selector", "matchLabels":
			maps.DeleteFunc(v, func(name string, _ any) bool {
				return strings.HasPrefix(name, nf.ReservedPrefix) || name == nf.AppliedAnnotation
			})
		case "metadata":
			delete(v, "managedFields")
		}
		for name, inner := range v {
			withoutMarks(name, inner)
		}
	case []any:
		for _, inner := range v {
			withoutMarks(field, inner)
		}
	}
}

// visible reports whether the project may look up at least part of what a ref
// names.
func (v *regionView) visible(ctx context.Context, ref nf.Ref) (bool, error) {
	if v.tenancy.Whole {
		return true, nil
	}
	namespaced, served, err := v.cluster.Scope(ctx, ref)
	switch {
	case err != nil || !served:
		return false, err
	case !namespaced && isNamespace(ref) && ref.Name != "":
		return v.use(ctx, ref.Name)
	case !namespaced:
		if !v.tenancy.MayHold(ref.Group, ref.Kind) {
			v.warn(fmt.Sprintf("a template looks up %s objects, which cloud region %s does not grant to project %s: it finds none",
				ref.Kind, v.tenancy.Region, v.tenancy.Project))
			return false, nil
		}
		return true, nil
	case ref.Namespace == "":
		return true, nil // its results are filtered
	}
	return v.use(ctx, ref.Namespace)
}

// use reports whether the project may use a namespace, and warns if it may not.
func (v *regionView) use(ctx context.Context, namespace string) (bool, error) {
	if err := v.checkNamespaces(ctx, []string{namespace}); err != nil {
		return false, err
	}
	if !v.usable[namespace] {
		v.warn(fmt.Sprintf("a template looks into namespace %s of cloud region %s, which project %s may not use: it finds nothing",
			namespace, v.tenancy.Region, v.tenancy.Project))
	}
	return v.usable[namespace], nil
}

// checkNamespaces determines which of the namespaces the project may use.
func (v *regionView) checkNamespaces(ctx context.Context, namespaces []string) error {
	namespaces = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(namespaces))), func(name string) bool {
		_, known := v.usable[name]
		return known
	})
	if len(namespaces) == 0 {
		return nil
	}
	may, err := usable(ctx, v.cluster, v.tenancy, namespaces)
	maps.Copy(v.usable, may)
	return err
}

// allowed returns the items of a list that the project may see.
func (v *regionView) allowed(ctx context.Context, ref nf.Ref, items []any) ([]any, error) {
	if v.tenancy.Whole || ref.Namespace != "" {
		return items, nil
	}
	var namespaces []string
	for _, item := range items {
		namespaces = append(namespaces, namespaceIn(item))
	}
	if err := v.checkNamespaces(ctx, namespaces); err != nil {
		return nil, err
	}
	// A cluster-scoped object has no namespace; visible has checked its kind.
	return slices.DeleteFunc(items, func(item any) bool {
		namespace := namespaceIn(item)
		return namespace != "" && !v.usable[namespace]
	}), nil
}

func namespaceIn(object any) string {
	fields, _ := object.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// recordSecrets records the texts of Secrets; in a preview, it masks them.
func (v *regionView) recordSecrets(secrets []map[string]any) {
	if v.access == secretsSearched {
		return
	}
	for _, object := range secrets {
		if v.access != secretsMasked {
			v.seen = append(v.seen, nf.TextsOfSecret(object)...)
			continue
		}
		data, _ := object["data"].(map[string]any)
		for name := range data {
			data[name] = base64.StdEncoding.EncodeToString([]byte(nf.Masked))
		}
		unstructured.RemoveNestedField(object, "metadata", "annotations", nf.AppliedAnnotation)
	}
}

func (v *regionView) warn(text string) {
	if !slices.Contains(v.warnings, text) {
		v.warnings = append(v.warnings, text)
	}
}

// repeated returns the recorded texts that a plan contains.
func (v *regionView) repeated(plan render.Plan) []string {
	if len(v.seen) == 0 {
		return nil
	}
	var text []byte
	for _, obj := range withHooks(plan) {
		text = appendTexts(text, obj.Object)
	}
	index := suffixarray.New(text)
	var out []string
	for _, value := range slices.Compact(slices.Sorted(slices.Values(v.seen))) {
		if value != "" && len(index.Lookup([]byte(value), 1)) > 0 {
			out = append(out, value)
		}
	}
	return out
}

// appendTexts appends every text in a JSON value, each after a zero byte.
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
