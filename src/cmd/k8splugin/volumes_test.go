package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestVolumeOutlivesInstances binds a volume to the claim of an instance, terminates the
// instance, whose namespace is deleted with it, and binds the volume to the claim of
// another instance in another namespace. The volume controller of Kubernetes binds and
// releases it.
func TestVolumeOutlivesInstances(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("kubeconfig", string(clustertest.Kubeconfig(t)))
	write("db/metadata.yaml", "name: db\nresources:\n- configmap: [db.yaml]\n")
	write("db/db.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db}\n")
	cli := func(args ...string) map[string]any { t.Helper(); return documentOf(t, s.url, args...) }
	// becomes waits until the volume has a phase and a claim in the region.
	becomes := func(phase string, claim any) {
		t.Helper()
		var got map[string]any
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); <-again.C {
			got = cli("volume", "show", "volumes.kept-data")
			if got["phase"] == phase && cmp.Equal(got["claim"], claim) {
				return
			}
		}
		t.Fatalf("the volume is %v of %v, want %s of %v", got["phase"], got["claim"], phase, claim)
	}
	cli("region", "add", "volumes", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	cli("package", "push", filepath.Join(dir, "db"))
	cli("volume", "create", "kept-data", "--region", "volumes", "--size", "1Gi", "--source", "{nfs: {server: 10.0.0.5, path: /export}}", "--retention", "delete", "--holder", "ann")
	becomes("Available", nil)
	var namespaces []string
	for _, name := range []string{"db-1", "db-2"} {
		ns := "kept-" + name + "-" + time.Now().Format("150405")
		namespaces = append(namespaces, ns)
		cli("instance", "create", name, "--region", "volumes", "--package", "db", "--namespace", ns, "--volume", "kept-data,claim=data", "--wait")
		becomes("Bound", map[string]any{"namespace": ns, "name": "data"})
		cli("instance", "delete", name, "--wait")
		becomes("Available", nil)
	}
	for _, ns := range namespaces {
		if clustertest.Get(t, namespaceNamed(ns)) != nil {
			t.Errorf("namespace %s remains", ns)
		}
	}
	if got := cli("volume", "show", "volumes.kept-data"); got["use_count"] != 1.0 {
		t.Errorf("the volume has %v holders", got["use_count"])
	}
	cli("volume", "delete", "volumes.kept-data", "--holder", "ann")
	if left, _ := cli("volume", "list")["volumes"].([]any); len(left) > 0 {
		t.Errorf("volumes remain: %v", left)
	}
}

func namespaceNamed(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

// documentOf runs the command line against a service, and returns the document that it
// prints.
func documentOf(t *testing.T, server string, args ...string) map[string]any {
	t.Helper()
	var out, said bytes.Buffer
	if code := run(t.Context(), append(args, "--server", server, "-o", "json"), testProcess(&out, &said)); code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, &out, &said)
	}
	var document map[string]any
	if out.Len() > 0 && json.Unmarshal(out.Bytes(), &document) != nil {
		t.Fatalf("%v: %s", args, &out)
	}
	return document
}
