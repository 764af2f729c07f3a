package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
)

// TestObjects compares what the checks expect of a package with what the service
// makes of it.
func TestObjects(t *testing.T) {
	t.Parallel()
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := content{Package: s.name, Generation: 4, Replicas: 2, Image: goodImage}
			out, err := manifest.Renderer{}.Render(t.Context(), render.Input{
				Files:    unzip(t, s),
				Builtins: map[string]string{"namespace": "ns", "vnf_id": "id", "vnf_name": "c0001", "cloud_region_id": "east", "cloud_owner": "o"},
				Inputs:   nf.Inputs{Parameters: want.parameters()},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range out.Groups {
				for _, o := range g.Objects {
					got = append(got, fmt.Sprintf("%s %s", o.GetKind(), o.GetName()))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want.objects("c0001"), got); diff != "" {
				t.Errorf("the checks expect other objects than the package has (-want +got):\n%s", diff)
			}
		})
	}
}

func unzip(t *testing.T, s shape) render.Files {
	t.Helper()
	archive, err := s.archive()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	files := render.Files{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
