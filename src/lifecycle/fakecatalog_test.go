package lifecycle_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// fakeCatalog knows the regions east and west, and every package.
type fakeCatalog struct {
	t       *testing.T
	kv      store.KV // of the holds
	mu      sync.Mutex
	tenants map[string]nf.Tenant // of every region
	usual   string               // default namespace of every region
	opened  map[string][]string  // namespaces, by package
	using   int                  // packages whose files are in use
	refuses map[string]error     // by package, of its files
	alters  func(*nf.Package)    // changes each package; nil: none
}

func (c *fakeCatalog) Region(_ context.Context, id string) (nf.Region, error) {
	if id != "east" && id != "west" {
		return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return nf.Region{ID: id, Owner: "owner", Tenants: c.tenants, DefaultNamespace: c.usual}, nil
}

func (c *fakeCatalog) Files(_ context.Context, id string) (nf.Package, render.Files, func(), error) {
	if err := c.refuses[id]; err != nil {
		return nf.Package{}, nil, nil, err
	}
	list := strings.NewReplacer("_", "/", "-", ",").Replace(id) // ids are path segments
	p := nf.Package{ID: id, Kind: "list", Digest: "sha256:" + id, Namespaces: c.opened[id]}
	if c.alters != nil {
		c.alters(&p)
	}
	return p, render.Files{"list": []byte(list)}, c.use(), nil
}

// use counts a package as in use until the result is called.
func (c *fakeCatalog) use() (done func()) {
	add := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.using += n
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

// inUse returns how many packages' files are in use.
func (c *fakeCatalog) inUse() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.using
}

func (c *fakeCatalog) Hold(ctx context.Context, h nf.Holding) error {
	return eachHold(c.kv, h, func(holds store.Holds, thing string) error { return holds.Add(ctx, thing, h.Holder) })
}

func (c *fakeCatalog) HoldOps(_ context.Context, h nf.Holding) (ops []store.Op, err error) {
	err = eachHold(c.kv, h, func(holds store.Holds, thing string) error {
		op, err := holds.AddOp(thing, h.Holder)
		ops = append(ops, op)
		return err
	})
	return ops, err
}

func (c *fakeCatalog) ReleaseOps(ctx context.Context, h nf.Holding) (ops []store.Op, err error) {
	err = eachHold(c.kv, h, func(holds store.Holds, thing string) error {
		dropped, err := holds.DropOps(ctx, thing, h.Holder)
		ops = append(ops, dropped...)
		return err
	})
	return ops, err
}

func (c *fakeCatalog) Release(ctx context.Context, h nf.Holding) error {
	return eachHold(c.kv, h, func(holds store.Holds, thing string) error { return holds.Drop(ctx, thing, h.Holder) })
}

func (c *fakeCatalog) HolderIDs(ctx context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool, from nf.Cursor) iter.Seq2[string, error] {
	return store.NewHolds(c.kv, "regions/").HolderIDs(ctx, of.Region, in, from)
}

func eachHold(kv store.KV, h nf.Holding, do func(holds store.Holds, thing string) error) error {
	for _, of := range []struct{ table, thing string }{{"regions/", h.Region}, {"packages/", h.Package}} {
		if of.thing == "" {
			continue
		}
		if err := do(store.NewHolds(kv, of.table), of.thing); err != nil {
			return err
		}
	}
	return nil
}

// held returns the holds on regions and packages, as "<id> <thing>" for an instance
// of the default project, and otherwise as "<kind>/<scope>/<id> <thing>".
func (c *fakeCatalog) held() map[string]bool {
	c.t.Helper()
	out := map[string]bool{}
	for entry, err := range c.kv.List(c.t.Context(), "holds/", "") {
		if err != nil {
			c.t.Fatal(err)
		}
		if parts := strings.SplitN(entry.Key, "/", 4); isCatalogHold(entry.Key) {
			holder := strings.TrimPrefix(parts[3], "vnf_instance/"+nf.DefaultProject+"/")
			holder = strings.TrimPrefix(strings.TrimPrefix(holder, "east/"), "west/")
			out[holder+" "+parts[2]] = true
		}
	}
	return out
}
