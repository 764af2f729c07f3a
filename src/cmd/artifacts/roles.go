package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// roleBuilds returns the builds of programs that only single roles of the
// collection need.
func roleBuilds() []build {
	const (
		lab = "kud/lab/modules/"
		ovs = "github.com/k8snetworkplumbingwg/ovs-cni"
	)
	return []build{
		{component: "ovs-cni", module: lab + "ovs-cni", pin: ovs, programs: []program{{ovs + "/cmd/plugin", "ovs"}}},
		istioBuild(),
	}
}

// fill creates the artifacts of single roles that the table of builds does not
// contain.
func (f folder) fill(ctx context.Context, only string) error {
	for _, one := range []struct {
		component string
		with      func(context.Context) error
	}{{"k8splugin", f.service}, {"kubevirt", f.kubevirt}, {"istio", f.istio}} {
		if !chosen(one.component, only) {
			continue
		}
		if err := one.with(ctx); err != nil {
			return err
		}
	}
	return nil
}

// service builds the service from the checkout for the role k8splugin. It uses
// the version number from versions.yml, whatever the checkout contains.
func (f folder) service(ctx context.Context) error {
	versions, err := os.ReadFile(filepath.Join(f.root, "kud", "versions.yml"))
	if err != nil {
		return fmt.Errorf("cannot read the versions of a site: %w", err)
	}
	dir := filepath.Join(f.dir, "k8splugin", named(versions, "k8splugin"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the service: %w", err)
	}
	return f.program(ctx, build{module: "."}, program{pkg: "./src/cmd/k8splugin"}, filepath.Join(dir, "k8splugin"))
}

// roleImages builds the lab's own programs for images of single roles, and
// returns the images.
func (f folder) roleImages(ctx context.Context, own string) ([]image, error) {
	versions, err := os.ReadFile(filepath.Join(f.root, "kud", "versions.yml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of a site: %w", err)
	}
	// The real device plugin cannot be built from the module proxy, and does
	// not support the lab kernel's emulated cards.
	plugin := filepath.Join(own, "sriovdp")
	if err := f.program(ctx, build{module: "kud/lab/modules/sriov"}, program{pkg: "."}, plugin); err != nil {
		return nil, err
	}
	return []image{{
		archive: "sriovdp",
		names:   []string{"ghcr.io/k8snetworkplumbingwg/sriov-network-device-plugin:" + named(versions, "sriov_device_plugin")},
		entry:   []string{"/sriovdp"},
		files:   []imageFile{{name: "sriovdp", source: plugin}},
	}}, nil
}
