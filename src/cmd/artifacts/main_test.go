package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPinned(t *testing.T) {
	t.Parallel()
	const gomod = "module x\n\nrequire example.org/alone v1.2.3\n\nrequire (\n\texample.org/a/v2 v2.0.1 // indirect\n\texample.org/a v0.9.0\n)\n"
	tests := map[string]struct {
		reason string
		module string
		want   string
	}{
		"Block":  {"most are in a block", "example.org/a", "v0.9.0"},
		"Major":  {"a module whose path goes on is another", "example.org/a/v2", "v2.0.1"},
		"Alone":  {"one may stand alone", "example.org/alone", "v1.2.3"},
		"Absent": {"what is not required has no version", "example.org", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := pinned([]byte(gomod), tc.module)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s: pinned(%s) = %q, %v; want %q", tc.reason, tc.module, got, err, tc.want)
			}
		})
	}
}

func TestImageNames(t *testing.T) {
	t.Parallel()
	variables := "parameters:\n  registry:\n    type: string\n    default: docker.io\n    description: d\n  tag:\n    type: string\n    default: 3.1.0\n"
	manifest := "    containers:\n      - name: a\n        image: ${registry}/edge/core:${tag}\n      - image: none\n        image: $registry/x:1\n"
	want := []string{"docker.io/edge/core:3.1.0", "docker.io/x:1"}
	if diff := cmp.Diff(want, imageNames([]byte(manifest), []byte(variables))); diff != "" {
		t.Errorf("variables stand for their defaults (-want +got):\n%s", diff)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	versions := []byte("kud_versions:\n  etcd: v3.7.3\n  pause: \"3.10.1\"\n")
	for name, want := range map[string]string{"etcd": "v3.7.3", "pause": "3.10.1", "other": "none"} {
		if got := named(versions, name); got != want {
			t.Errorf("named(%s) = %q, want %q: quotes are not of the value", name, got, want)
		}
	}
}

// TestBuildsArePinned compares the table with the modules of the checkout.
func TestBuildsArePinned(t *testing.T) {
	t.Parallel()
	root, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	f := folder{root: root}
	for _, b := range slices.Concat(builds(), roleBuilds()) {
		version, err := f.version(b)
		if err != nil {
			t.Errorf("%s: %v", b.module, err)
			continue
		}
		if b.component == "kubernetes" && !b.optional {
			if of, _ := f.versionOf(b); of != version {
				t.Errorf("%s pins Kubernetes %s, the others %s: one cluster is of one version", b.module, version, of)
			}
		}
	}
}

func TestPack(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	packed := image{
		names: []string{"registry.k8s.io/a:1", "localhost/b:2"}, entry: []string{"/a"},
		files: []imageFile{{name: "usr/bin/a", source: source}, {name: "bin/sh", link: "/usr/bin/a"}},
	}
	content, err := packed.pack()
	if err != nil {
		t.Fatal(err)
	}
	again, err := packed.pack()
	if err != nil || !bytes.Equal(content, again) {
		t.Errorf("the same content makes other bytes (%v)", err)
	}
	files := untar(t, content)
	var index struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	read(t, files["index.json"], &index)
	var names []string
	for _, m := range index.Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"])
	}
	if diff := cmp.Diff(packed.names, names); diff != "" {
		t.Errorf("an archive has all names of its image (-want +got):\n%s", diff)
	}
	var manifest struct{ Layers []struct{ Digest string } }
	read(t, blob(t, files, index.Manifests[0].Digest), &manifest)
	layer := untar(t, blob(t, files, manifest.Layers[0].Digest))
	if got := string(layer["usr/bin/a"]); got != "content" {
		t.Errorf("usr/bin/a is %q in the layer", got)
	}
	for _, name := range []string{"usr/", "usr/bin/", "bin/", "bin/sh"} {
		if _, there := layer[name]; !there {
			t.Errorf("the layer has no %s: containerd wants a file's folders before it", name)
		}
	}
}

func blob(t *testing.T, files map[string][]byte, sum string) []byte {
	t.Helper()
	content := files["blobs/sha256/"+strings.TrimPrefix(sum, "sha256:")]
	if digest(content) != sum {
		t.Fatalf("the blob of %s has the digest %s", sum, digest(content))
	}
	return content
}

func read(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
}

func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"b/v1/x": "1", "a": "2", ".built/stamp": "3", "b/half.partial": "4", manifestName: "old"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := folder{dir: dir}.writeManifest()
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35  a",
		"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  b/v1/x",
	}
	got := slices.Collect(strings.Lines(string(written)))
	for i := range got {
		got[i] = strings.TrimSuffix(got[i], "\n")
	}
	if diff := cmp.Diff(want, got); diff != "" || n != len(want) {
		t.Errorf("%d files; the manifest names what a site may install, and no more (-want +got):\n%s", n, diff)
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]bool{"": true, "nfd": true, "etcd,nfd": true, "nf": false, "etcd": false} {
		if got := chosen("nfd", only); got != want {
			t.Errorf("chosen(nfd, %q) = %v", only, got)
		}
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	all := build{component: "kubernetes", programs: below("k8s.io/kubernetes/cmd/", "kubelet", "kubeadm", "kube-proxy")}
	cases := map[string]struct {
		reason string
		only   string
		want   int // programs
		part   string
	}{
		"All":       {"without names, everything is built", "", 3, ""},
		"Component": {"a component is built with all of its programs", "etcd,kubernetes", 3, ""},
		"Programs":  {"a part has a mark of its own, so that it does not count as the whole", "kubelet,etcd,kube-proxy", 2, "-kubelet-kube-proxy"},
		"Other":     {"what is not named is not built", "etcd", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := all.only(tc.only); len(got.programs) != tc.want || got.part != tc.part || len(all.programs) != 3 {
				t.Errorf("%s: %d programs, part %q; of all there are %d", tc.reason, len(got.programs), got.part, len(all.programs))
			}
		})
	}
}
