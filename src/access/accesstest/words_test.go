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
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// bare is what a guard needs beside the engine and the catalog.
type bare struct{}

func (bare) RegionState(context.Context, string) (nf.RegionState, error) {
	return nf.RegionState{}, nil
}

func (bare) Entries(context.Context, nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(func(nf.AuditEntry, error) bool) {}
}

// TestWords holds that the guard says of what does not exist what the engine
// and the catalog themselves say of it: clients must not notice whether access
// is open.
func TestWords(t *testing.T) {
	t.Parallel()
	kv, ids := memory.New(), func() string { return "new" }
	renderers := map[string]render.Renderer{"manifest": manifest.Renderer{}}
	cat, err := catalog.New(catalog.Config{
		KV: kv, Renderers: renderers, Limits: render.DefaultLimits(), NewID: ids,
		Probe: func(context.Context, []byte) (nf.Probe, error) { return nf.Probe{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := lifecycle.New(lifecycle.Config{
		KV: kv, Catalog: cat, Renderers: renderers, NewID: ids,
		Open: func(context.Context, string, string) (lifecycle.Cluster, error) {
			return nil, errors.New("nobody calls")
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
	guard, err := access.NewGuard(access.GuardConfig{Authorizer: authorizer, Engine: engine, Catalog: cat, States: bare{}, Audits: bare{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Register(t.Context(), nf.Region{ID: "there", Kubeconfig: nf.Secret("x")}); err != nil {
		t.Fatal(err)
	}
	type house interface {
		access.Engine
		access.Catalog
	}
	plain := struct {
		*lifecycle.Engine
		*catalog.Catalog
	}{engine, cat}
	calls := map[string]func(context.Context, house) error{
		"Region":   func(ctx context.Context, h house) error { _, err := h.Region(ctx, "x"); return err },
		"Package":  func(ctx context.Context, h house) error { _, err := h.Package(ctx, "x"); return err },
		"Content":  func(ctx context.Context, h house) error { _, _, err := h.Content(ctx, "x"); return err },
		"Instance": func(ctx context.Context, h house) error { _, err := h.Instance(ctx, "x"); return err },
		"Terminate": func(ctx context.Context, h house) error {
			_, err := h.Terminate(ctx, "x", nf.TerminateRequest{})
			return err
		},
		"Health":    func(ctx context.Context, h house) error { _, err := h.Health(ctx, "x"); return err },
		"Operation": func(ctx context.Context, h house) error { _, err := h.Operation(ctx, "x"); return err },
		"Changes":   func(ctx context.Context, h house) error { _, err := h.Changes(ctx, "x"); return err },
		"InNoRegion": func(ctx context.Context, h house) error {
			_, err := h.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "x"}, Region: "x"})
			return err
		},
		"OfNoPackage": func(ctx context.Context, h house) error {
			_, err := h.Instantiate(ctx, nf.InstantiateRequest{Spec: nf.Spec{Package: "x"}, Region: "there"})
			return err
		},
		"OfNothing": func(ctx context.Context, h house) error {
			_, err := h.PreviewInstantiate(ctx, nf.InstantiateRequest{})
			return err
		},
		"Follow": func(ctx context.Context, h house) error {
			for _, err := range h.Follow(ctx, "x") {
				return err
			}
			return nil
		},
	}
	admin := nf.WithIdentity(t.Context(), nf.Identity{Kind: "token", Name: "admin-all"})
	for name, call := range calls {
		of, by := call(t.Context(), plain), call(admin, guard)
		if of == nil || by == nil || of.Error() != by.Error() || nf.KindOf(of) != nf.KindOf(by) || len(nf.ViolationsOf(of)) != len(nf.ViolationsOf(by)) {
			t.Errorf("%s: the guard says %q, the engine or the catalog %q", name, by, of)
		}
	}
}
