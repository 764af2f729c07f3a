package lifecycle_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// lookingRenderer renders as listRenderer does, and keeps what the region shows of all
// Deployments.
type lookingRenderer struct {
	list  listRenderer
	found map[string]any
}

func (*lookingRenderer) Fit(f render.Files) render.Fit { return listRenderer{}.Fit(f) }

func (r *lookingRenderer) Check(ctx context.Context, f render.Files) (render.Summary, error) {
	return r.list.Check(ctx, f)
}

func (r *lookingRenderer) Render(ctx context.Context, in render.Input) (out render.Output, err error) {
	if r.found, err = in.Region.Lookup(ctx, nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns"}); err != nil {
		return out, err
	}
	return r.list.Render(ctx, in)
}

// TestLookupHidesOwners checks that a template finds the marks of its own instance's
// objects, and none of others: they name instances of other projects.
func TestLookupHidesOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newSite(t), &lookingRenderer{}
		e := s.start(func(c *config) { c.Renderers = map[string]render.Renderer{"list": r} })
		s.cluster.lookups = map[string]map[string]any{}
		op := e.up(t, "a")
		deployment := func(owner map[string]any) map[string]any {
			labels := func() map[string]any {
				out := map[string]any{"app": "web"}
				maps.Copy(out, owner)
				return out
			}
			return map[string]any{
				"metadata": map[string]any{
					"name": "web", "labels": labels(),
					"annotations":   map[string]any{"k8splugin.io/orphaned-from": "other", nf.AppliedAnnotation: `{"labels": "other"}`, "note": "n"},
					"managedFields": []any{map[string]any{"manager": "k8splugin-other"}},
				},
				"spec": map[string]any{"selector": map[string]any{"matchLabels": labels()}, "template": map[string]any{"metadata": map[string]any{"labels": labels()}}},
				"data": map[string]any{"managedFields": "is a value", "k8splugin.io/note": "too"},
			}
		}
		bare := map[string]any{
			"metadata": map[string]any{"name": "web", "labels": map[string]any{"app": "web"}, "annotations": map[string]any{"note": "n"}},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}},
			},
			"data": map[string]any{"managedFields": "is a value", "k8splugin.io/note": "too"},
		}
		own := map[string]any{nf.OwnerLabel: op.Subject.ID}
		all := []any{deployment(own), deployment(map[string]any{nf.OwnerLabel: "other"}), deployment(map[string]any{nf.SubjectLabel: "network.other"}), deployment(nil)}
		s.cluster.lookups["Deployment ns/"] = map[string]any{"items": all}
		if _, err := e.PreviewUpgrade(t.Context(), op.Subject.ID, change("a", "x")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"items": []any{deployment(own), bare, bare, bare}}, r.found); diff != "" {
			t.Errorf("what a template finds (-want +got):\n%s", diff)
		}
		s.cluster.lookups["Deployment ns/"] = deployment(map[string]any{nf.OwnerLabel: "other"})
		if _, err := e.PreviewUpgrade(t.Context(), op.Subject.ID, change("a", "x")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bare, r.found); diff != "" {
			t.Errorf("what a template finds of one object (-want +got):\n%s", diff)
		}
	})
}
