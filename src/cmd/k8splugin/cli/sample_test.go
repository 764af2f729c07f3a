package cli

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
)

// The sample is a package without a fault, and all that it lacks for an
// instance is the password.
func TestSample(t *testing.T) {
	archive, err := pack("../../../../deployments/samples/edgex")
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := render.Archive(archive, render.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	about, err := manifest.Renderer{}.Check(t.Context(), files)
	if err != nil || len(about.Warnings) > 0 {
		t.Fatalf("got warnings %q, error %v", about.Warnings, err)
	}
	in := render.Input{Files: files, Builtins: map[string]string{
		"namespace": "edge", "vnf_id": "k3x9vq2m", "vnf_name": "fw-1", "cloud_region_id": "east", "cloud_owner": "acme",
	}}
	if _, err := (manifest.Renderer{}).Render(t.Context(), in); len(nf.ViolationsOf(err)) != 1 {
		t.Errorf("without a password: got error %v, want one violation", err)
	}
	in.Inputs.Parameters = map[string]any{"redis_password": "$ecret", "replicas": 2}
	out, err := manifest.Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	objects := 0
	for _, g := range out.Groups {
		objects += len(g.Objects)
	}
	if objects != 23 || len(out.Groups) != 9 || len(out.Warnings) > 0 {
		t.Errorf("got %d objects in %d groups, warnings %q", objects, len(out.Groups), out.Warnings)
	}
}
