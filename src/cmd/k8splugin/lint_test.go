package main

import (
	"io"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestLintLarge checks a package that is larger than the limit that servers have by
// default.
func TestLintLarge(t *testing.T) {
	archive, err := io.ReadAll(rendertest.LargeZip(map[string]string{
		"metadata.yaml": "resources: [{manifest: [cm.yaml]}]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	}, "disk.img", 65<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := lint(archive)
	if err != nil || !slices.Contains(warnings, "disk.img: is named by no entry of metadata.yaml") {
		t.Errorf("lint says %q: %v", warnings, err)
	}
}
