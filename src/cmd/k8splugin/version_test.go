package main

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	built := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	cases := map[string]struct {
		reason, linked string
		info           *debug.BuildInfo
		want           string
	}{
		"Tag":    {"a build of a tagged commit has its tag", "", built("v0.1.0"), "v0.1.0"},
		"Commit": {"a build of another commit has a pseudo-version", "", built("v0.1.1-0.20261124041540-a9fbdf2d1c2b+dirty"), "v0.1.1-0.20261124041540-a9fbdf2d1c2b+dirty"},
		"Linked": {"an image says its version to the linker", "v1.2.3", built("(devel)"), "v1.2.3"},
		"Devel":  {"a build without a repository has no version", "", built("(devel)"), "dev"},
		"None":   {"a program may lack the information", "", nil, "dev"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := versionOf(tc.linked, tc.info); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
