package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// istioBuild returns the build of the mesh's control plane, the agent for
// workloads, and istioctl, which contains the manifests.
func istioBuild() build {
	const istio = "istio.io/istio"
	return build{component: "istio", module: "kud/lab/modules/istio", pin: istio, programs: []program{
		{pkg: istio + "/istioctl/cmd/istioctl"}, {pkg: istio + "/pilot/cmd/pilot-agent"}, {pkg: istio + "/pilot/cmd/pilot-discovery"},
	}}
}

// istio creates the manifests and images of the role istio. The images have a
// separate folder, because they are large and few hosts need them.
func (f folder) istio(ctx context.Context) error {
	version, err := f.version(istioBuild())
	if err != nil {
		return err
	}
	if err := f.istioManifests(ctx, version); err != nil {
		return err
	}
	own, err := f.own()
	if err != nil {
		return err
	}
	workload := filepath.Join(own, "mesh")
	if err := f.program(ctx, build{module: "kud/lab/modules/mesh"}, program{pkg: "."}, workload); err != nil {
		return err
	}
	return f.pack("images-istio", f.istioImages(version, workload))
}

// istioImages returns the images. The proxy's image has no Envoy, because Envoy
// is not written in Go.
func (f folder) istioImages(version, workload string) []image {
	built := func(name string) imageFile {
		return imageFile{name: "usr/local/bin/" + name, source: filepath.Join(f.dir, "istio", version, name)}
	}
	// The manifests require a non-root user, and the image must name one:
	// Istio's images use this one.
	const user = "1337:1337"
	return []image{
		{archive: "istio-pilot", names: []string{"docker.io/istio/pilot:" + version}, entry: []string{"/usr/local/bin/pilot-discovery"},
			files: []imageFile{built("pilot-discovery")}, user: user},
		{archive: "istio-agent", names: []string{"docker.io/istio/proxyv2:" + version}, entry: []string{"/usr/local/bin/pilot-agent"},
			files: []imageFile{built("pilot-agent")}, user: user},
		{archive: "mesh", names: []string{"localhost/mesh:1"}, entry: []string{"/mesh"}, files: []imageFile{{name: "mesh", source: workload}}},
	}
}

// istioManifests writes the manifests that istioctl prints: only the control
// plane, with requests that fit a host of the lab.
func (f folder) istioManifests(ctx context.Context, version string) error {
	target := filepath.Join(f.dir, "manifests", "istio", version)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of Istio's manifests: %w", err)
	}
	args := []string{"manifest", "generate"}
	for _, value := range []string{
		"profile=minimal", "hub=docker.io/istio", "tag=" + version, "values.pilot.autoscaleEnabled=false",
		"values.pilot.resources.requests.cpu=50m", "values.pilot.resources.requests.memory=128Mi",
		"values.global.proxy.resources.requests.cpu=10m", "values.global.proxy.resources.requests.memory=32Mi",
	} {
		args = append(args, "--set", value)
	}
	manifests, err := exec.CommandContext(ctx, filepath.Join(f.dir, "istio", version, "istioctl"), args...).Output()
	if err != nil {
		if told, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, told.Stderr)
		}
		return fmt.Errorf("cannot print Istio's manifests: %w", err)
	}
	return os.WriteFile(filepath.Join(target, "istio.yaml"), manifests, 0o644)
}
