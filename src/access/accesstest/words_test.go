package accesstest_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// bare implements the interfaces that a guard needs in addition to the engine and
// the catalog.
type bare struct{}

func (bare) RegionCapabilities(context.Context, string, bool) (nf.RegionCapabilities, error) {
	return nf.RegionCapabilities{}, nil
}

func (bare) Entries(context.Context, nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(func(nf.AuditEntry, error) bool) {}
}

// TestWords checks that the errors of the guard for absent objects equal those of
// the engine and the catalog: a client must not notice whether access is open.
func TestWords(t *testing.T) {
	t.Parallel()
	kv, ids := memory.New(), func() string { return "new" }
	renderers := map[string]render.Renderer{"manifest": manifest.Renderer{}}
	cat, err := catalog.New(catalog.Config{
		KV: kv, Renderers: renderers, Limits: render.DefaultLimits(), NewID: ids,
		Probe: func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	work, err := operation.New(operation.Config{KV: kv, NewID: ids})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := lifecycle.New(lifecycle.Config{
		KV: kv, Catalog: cat, Renderers: renderers, Workers: work, NewID: ids,
		Open: func(context.Context, string, string) (lifecycle.Cluster, error) {
			return nil, errors.New("the test does not open clusters")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := access.New(access.Config{File: accesstest.File(t)})
	if err != nil {
		t.Fatal(err)
	}
	authorizer, err := access.NewAuthorizer(rules)
	if err != nil {
		t.Fatal(err)
	}
	stored := struct {
		*catalog.Catalog
		bare
	}{Catalog: cat}
	guarded, err := access.NewGuarded(access.GuardedConfig{Authorizer: authorizer, Engine: engine, Catalog: stored, Audits: bare{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Register(t.Context(), nf.Region{ID: "there", Access: nf.Access{Server: "https://there", Token: nf.Secret("x")}}); err != nil {
		t.Fatal(err)
	}
	type house struct {
		Regions    access.RegionKeeper
		Packages   access.PackageKeeper
		Instances  access.InstanceEngine
		Operations access.OperationEngine
	}
	plain := house{stored, stored, engine, engine}
	calls := map[string]func(context.Context, house) error{
		"Region":   func(ctx context.Context, h house) error { _, err := h.Regions.Region(ctx, "x"); return err },
		"Package":  func(ctx context.Context, h house) error { _, err := h.Packages.Package(ctx, "x"); return err },
		"Content":  func(ctx context.Context, h house) error { _, _, err := h.Packages.Content(ctx, "x"); return err },
		"Instance": func(ctx context.Context, h house) error { _, err := h.Instances.Instance(ctx, "x"); return err },
		"Terminate": func(ctx context.Context, h house) error {
			_, err := h.Instances.Terminate(ctx, "x", nf.TerminateRequest{})
			return err
		},
		"Health":    func(ctx context.Context, h house) error { _, err := h.Instances.Health(ctx, "x"); return err },
		"Operation": func(ctx context.Context, h house) error { _, err := h.Operations.Operation(ctx, "x"); return err },
		"Changes":   func(ctx context.Context, h house) error { _, err := h.Operations.Changes(ctx, "x"); return err },
		"InNoRegion": func(ctx context.Context, h house) error {
			_, err := h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "x"}, Region: "x"})
			return err
		},
		"OfNoPackage": func(ctx context.Context, h house) error {
			_, err := h.Instances.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "x"}, Region: "there"})
			return err
		},
		"OfNothing": func(ctx context.Context, h house) error {
			_, err := h.Instances.PreviewInstantiate(ctx, nf.InstantiateRequest{})
			return err
		},
		"Follow": func(ctx context.Context, h house) error {
			for _, err := range h.Operations.Follow(ctx, "x") {
				return err
			}
			return nil
		},
	}
	admin := nf.WithIdentity(t.Context(), nf.Identity{Kind: "token", Name: "admin-all"})
	for name, call := range calls {
		of, by := call(t.Context(), plain), call(admin, house{guarded.Regions, guarded.Packages, guarded.Instances, guarded.Operations})
		if of == nil || by == nil || of.Error() != by.Error() || nf.KindOf(of) != nf.KindOf(by) || len(nf.ViolationsOf(of)) != len(nf.ViolationsOf(by)) {
			t.Errorf("%s: the guard says %q, the engine or the catalog %q", name, by, of)
		}
	}
}
