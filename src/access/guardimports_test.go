package access_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// inventory has every region.
type inventory struct{ asked int }

func (i *inventory) Find(_ context.Context, _, id string) (nf.Region, error) {
	i.asked++
	return nf.Region{ID: id}, nil
}

func (i *inventory) Import(ctx context.Context, owner, id string) (nf.Region, error) {
	return i.Find(ctx, owner, id)
}

// TestGuardedImports lets every identity import a region, use one that is not registered,
// and create an instance there. The inventory is asked only for those that may.
func TestGuardedImports(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	inv := &inventory{}
	guarded, err := access.NewGuarded(access.GuardedConfig{Authorizer: access.Open(), Engine: h.world, Catalog: h.world, Audits: h.world, Imports: inv})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guarded.Regions.Use(h.as(t, accesstest.People()[0]), "", "new"); err != nil || inv.asked != 1 {
		t.Errorf("open access: %v", err)
	}
	authorizer, err := access.NewAuthorizer(h.rules)
	if err != nil {
		t.Fatal(err)
	}
	if guarded, err = access.NewGuarded(access.GuardedConfig{Authorizer: authorizer, Engine: h.world, Catalog: h.world, Audits: h.world, Imports: inv}); err != nil {
		t.Fatal(err)
	}
	east := nf.Scope{Region: accesstest.East}
	tried := map[nf.Kind]int{}
	for _, who := range accesstest.People() {
		want := nf.Internal // allowed
		switch {
		case who == accesstest.Anonymous:
			want = nf.Unauthenticated
		case !accesstest.May(who, nf.ReadRegion, east):
			want = nf.NotFound
		case !accesstest.May(who, nf.WriteRegion, east):
			want = nf.Forbidden
		}
		inv.asked = 0
		_, err := guarded.Regions.Import(h.as(t, who), "o", accesstest.East)
		if (err == nil) != (want == nf.Internal) || err != nil && nf.KindOf(err) != want || (inv.asked > 0) != (err == nil) {
			t.Errorf("%s: %v, want %s", who, err, want)
		}
		inv.asked = 0
		if _, err = guarded.Regions.Use(h.as(t, who), "o", accesstest.East); (err == nil) != (want == nf.Internal || want == nf.Forbidden) || (inv.asked > 0) != (err == nil) {
			t.Errorf("%s uses a region: %v", who, err)
		}
		if err := guarded.Regions.Deregister(h.as(t, who), accesstest.East); nf.KindOf(err) != want && (want != nf.Internal || nf.KindOf(err) != nf.Conflict) {
			t.Errorf("%s deregisters a region that was not imported: %v", who, err)
		}
		tried[want]++
	}
	if len(tried) < 4 {
		t.Errorf("only the outcomes %v were tried", tried)
	}
}

// TestNoImports checks the guard of a service that imports no regions.
func TestNoImports(t *testing.T) {
	t.Parallel()
	h := guarded(t, access.Open())
	ctx := h.as(t, accesstest.Anonymous)
	if _, err := h.Regions.Import(ctx, "o", accesstest.East); err != nil {
		t.Errorf("a registered region stays as it is: %v", err)
	}
	if _, err := h.Regions.Import(ctx, "o", "none"); nf.KindOf(err) != nf.Unsupported {
		t.Errorf("there is no inventory: %v", err)
	}
	if _, err := h.Regions.Use(ctx, "o", "none"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("nothing is imported: %v", err)
	}
}

// designs has every package.
type designs struct{ asked int }

// Fetch implements access.PackageImports.
func (d *designs) Fetch(ctx context.Context, id string, into func(context.Context, string, io.Reader) error) error {
	d.asked++
	if id == "none" {
		return nf.E(nf.NotFound, "fetch", "the package", nil)
	}
	return into(ctx, "the catalog", strings.NewReader("content"))
}

// TestGuardedPackageImports has every identity create an instance of a package that only
// a catalog of designs has. The catalog is asked only for those that may upload it.
func TestGuardedPackageImports(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	authorizer, err := access.NewAuthorizer(h.rules)
	if err != nil {
		t.Fatal(err)
	}
	from := &designs{}
	guarded, err := access.NewGuarded(access.GuardedConfig{Authorizer: authorizer, Engine: h.world, Catalog: h.world, Audits: h.world, Packages: from})
	if err != nil {
		t.Fatal(err)
	}
	scope := nf.Scope{Project: accesstest.ProjectA, Region: accesstest.East}
	tried := map[bool]int{}
	for _, who := range accesstest.People() {
		may := accesstest.May(who, nf.CreateInstance, scope) && accesstest.May(who, nf.ReadRegion, scope) && accesstest.May(who, nf.WritePackage, nf.Scope{Project: accesstest.ProjectA})
		for _, id := range []string{"none", "new"} {
			from.asked = 0
			_, err := guarded.Instances.Instantiate(h.as(t, who), nf.InstantiateRequest{Project: accesstest.ProjectA, Region: accesstest.East, Namespace: "ns", Spec: nf.Spec{Package: id}})
			if asked := from.asked > 0; asked != may || (err == nil) != (may && id == "new") {
				t.Errorf("%s creates an instance of %s: %v; the catalog is asked %d times", who, id, err, from.asked)
			}
		}
		tried[may]++
	}
	if tried[true] == 0 || tried[false] == 0 {
		t.Errorf("only %v were tried", tried)
	}
}
