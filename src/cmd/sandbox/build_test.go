package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesStamp(t *testing.T) {
	cases := map[string]struct {
		reason string
		gomod  string
		want   string // the version that the programs report; empty: refused
	}{
		"Single":   {"a require of one line", "require k8s.io/kubernetes v1.37.1\n", "gitVersion=v1.37.1 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"},
		"Block":    {"a tool's module is indirect", "require (\n\tk8s.io/kubernetes v1.40.0 // indirect\n)\n", "gitMinor=40"},
		"ToolOnly": {"a package's path is not the module's", "tool k8s.io/kubernetes/cmd/kubectl\n", ""},
		"Replace":  {"what replaces another is not required", "replace k8s.io/api => k8s.io/api v0.37.1\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go.mod")
			if err := os.WriteFile(path, []byte(tc.gomod), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := kubernetesStamp(path)
			if (err == nil) != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestKeyFollowsSources(t *testing.T) {
	in, err := locate()
	if err != nil {
		t.Fatal(err)
	}
	copied := installation{sources: t.TempDir(), ldflags: in.ldflags}
	if err := os.CopyFS(copied.sources, os.DirFS(in.sources)); err != nil {
		t.Fatal(err)
	}
	first := key(t, in)
	if got := key(t, copied); got != first {
		t.Errorf("the same sources elsewhere have key %s, want %s", got, first)
	}
	gomod := filepath.Join(copied.sources, "kwok", "go.mod")
	if err := os.WriteFile(gomod, []byte("module other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := key(t, copied)
	if second == first {
		t.Error("other sources have the same key: old programs would be run")
	}
	copied.ldflags = map[string]string{"etcd": "-w"}
	if key(t, copied) == second {
		t.Error("other flags have the same key: old programs would be run")
	}
}

func key(t *testing.T, in installation) string {
	t.Helper()
	k, err := in.key()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestMissing(t *testing.T) {
	in := installation{dir: t.TempDir()}
	if got := len(in.missing()); got != len(programs()) {
		t.Errorf("%d programs are missing in an empty folder, want all %d", got, len(programs()))
	}
	if err := os.MkdirAll(in.bin(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in.program("etcd"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range in.missing() {
		if p.name == "etcd" {
			t.Error("a program that is there would be built again")
		}
	}
}
