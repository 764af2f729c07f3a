package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFluxArtifact has the objects of an instance and its namespace, whose name
// Flux replaces.
func TestFluxArtifact(t *testing.T) {
	t.Parallel()
	artifact, err := fluxArtifact()
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(artifact))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for files := tar.NewReader(zipped); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file.Name, ".yaml") {
			t.Errorf("Flux ignores the file %s", file.Name)
		}
		var object struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := json.NewDecoder(files).Decode(&object); err != nil {
			t.Fatal(err)
		}
		in := object.Metadata.Namespace
		if object.Kind == "Namespace" {
			in = object.Metadata.Name
		}
		got = append(got, object.Kind+" "+in)
	}
	want := []string{"Namespace ${namespace}", "Secret ${namespace}", "ConfigMap ${namespace}", "Service ${namespace}", "Deployment ${namespace}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the objects (-want +got):\n%s", diff)
	}
}

func TestFluxReady(t *testing.T) {
	t.Parallel()
	list := `{"items":[{"status":{"conditions":[{"type":"Reconciling","status":"True"},{"type":"Ready","status":"Unknown"}]}},
		{"status":{"conditions":[{"type":"Ready","status":"True"}]}},{}]}`
	if got := fluxReady([]byte(list)); got != 1 {
		t.Errorf("%d Kustomizations are ready, want 1", got)
	}
}
