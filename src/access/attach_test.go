package access_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMayAttach checks which networks a request may attach workloads to: those that the
// identity sees, whether the request or a package names them.
func TestMayAttach(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	spec := nf.Spec{Package: pkg(accesstest.ProjectA)}
	request := nf.InstantiateRequest{Region: accesstest.East, Project: accesstest.ProjectA, Spec: spec}
	change := nf.UpgradeRequest{Edit: func(*nf.Spec) error { return nil }}
	id := vnf(accesstest.ProjectA, accesstest.East)
	requests := map[string]func(context.Context) error{
		"Instantiate":        func(ctx context.Context) error { _, err := h.Instances.Instantiate(ctx, request); return err },
		"Preview":            func(ctx context.Context) error { _, err := h.Instances.PreviewInstantiate(ctx, request); return err },
		"Upgrade":            func(ctx context.Context) error { _, err := h.Instances.Upgrade(ctx, id, change); return err },
		"Preview of upgrade": func(ctx context.Context) error { _, err := h.Instances.PreviewUpgrade(ctx, id, change); return err },
		"Adopt": func(ctx context.Context) error {
			_, err := h.Instances.Adopt(ctx, nf.AdoptRequest{InstantiateRequest: request})
			return err
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			h.world.attach, h.world.use = nil, nil
			ctx := h.as(t, "admin-a")
			if err := request(ctx); err != nil || h.world.attach == nil || h.world.use == nil {
				t.Fatalf("the engine is not told which networks and volumes the identity sees: %v", err)
			}
			if err := h.world.use(ctx, nf.Volume{ID: "v", Project: accesstest.ProjectA, Region: accesstest.East}); err != nil {
				t.Errorf("a volume of the own project: %v", err)
			}
			if err := h.world.use(ctx, nf.Volume{ID: "v", Project: accesstest.ProjectB, Region: accesstest.East}); nf.KindOf(err) != nf.NotFound {
				t.Errorf("a volume of another project: %v", err)
			}
			if err := h.world.attach(ctx, nf.Network{ID: "n", Project: accesstest.ProjectA, Region: accesstest.East}, false); err != nil {
				t.Errorf("a network of the own project: %v", err)
			}
			if err := h.world.attach(ctx, nf.Network{ID: "n", Project: accesstest.ProjectB, Region: accesstest.East}, false); nf.KindOf(err) != nf.NotFound {
				t.Errorf("a network of another project: %v", err)
			}
			if err := h.world.attach(ctx, nf.Network{Name: "n", Project: accesstest.ProjectA, Region: accesstest.East}, true); err != nil {
				t.Errorf("a new network of the own project: %v", err)
			}
			if err := h.world.attach(ctx, nf.Network{Name: "n", Project: accesstest.ProjectB, Region: accesstest.East}, true); nf.KindOf(err) != nf.Forbidden {
				t.Errorf("a new network of another project: %v", err)
			}
		})
	}
	viewer := h.as(t, "viewer-a-east")
	if err := requests["Preview"](viewer); err != nil {
		t.Fatal(err)
	}
	if err := h.world.attach(viewer, nf.Network{Name: "n", Project: accesstest.ProjectA, Region: accesstest.East}, true); err != nil {
		t.Errorf("a preview creates nothing, and is denied: %v", err)
	}
	if err := requests["Instantiate"](h.as(t, "admin-a")); err != nil {
		t.Fatal(err)
	}
	if err := h.world.attach(viewer, nf.Network{Name: "n", Project: accesstest.ProjectA, Region: accesstest.East}, true); nf.KindOf(err) != nf.Forbidden {
		t.Errorf("network:read is not enough to create a network: %v", err)
	}
}
