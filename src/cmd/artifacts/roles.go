package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// roleBuilds are the programs that single roles of the collection need, and a
// cluster does not.
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

// fill fills in what single roles apply or run that no table of builds has.
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

// service builds the service itself, for the role k8splugin, by the version that
// versions.yml names: what is in the checkout, whatever that is.
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

// roleImages builds the lab's own programs that single roles take as images, and
// names the images.
func (f folder) roleImages(ctx context.Context, own string) ([]image, error) {
	versions, err := os.ReadFile(filepath.Join(f.root, "kud", "versions.yml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of a site: %w", err)
	}
	// The device plugin cannot be built from the module proxy, and knows no card that a lab kernel emulates.
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
