package clustertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ClusterAPI makes the sandbox serve the kinds of Cluster API, and of its providers for
// Docker and OpenStack, with the CustomResourceDefinitions of their modules. The folder is
// that of the module tools/clusterapi. Other tests may need them, so they stay.
func ClusterAPI(t testing.TB, folder string) {
	t.Helper()
	for _, dir := range ClusterModules(t, folder) {
		for _, pattern := range []string{"config/crd/bases/*.yaml", "*/config/crd/bases/*.yaml", "*/*/config/crd/bases/*.yaml"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "kind: CustomResourceDefinition") {
					Serve(t, string(text))
				}
			}
		}
	}
}

// ClusterModules returns the folders of the modules of Cluster API and its providers, by
// their paths.
func ClusterModules(t testing.TB, folder string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json",
		"sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api/test", "sigs.k8s.io/cluster-api-provider-openstack")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the definitions cannot be had: %v\n%s", err, out)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return dirs
		} else if err != nil || m.Dir == "" {
			t.Fatalf("module %s: %v", m.Path, err)
		}
		dirs[m.Path] = m.Dir
	}
}
