package catalog_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/csar"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestLintVerifies checks CSARs with an image that is too large for memory.
func TestLintVerifies(t *testing.T) {
	t.Parallel()
	files := csartest.Files(map[string]string{"Files/images/disk.img": strings.Repeat("disk", 1<<12)})
	tampered := maps.Clone(files)
	tampered["Files/images/disk.img"] = strings.Repeat("dish", 1<<12)
	unlisted := maps.Clone(files)
	unlisted["Files/images/more.img"] = strings.Repeat("more", 1<<12)
	limits := render.DefaultLimits()
	limits.File = 1 << 12
	renderers := map[string]render.Renderer{"csar": csar.New(csar.Config{Manifests: manifest.New(nil), Charts: manifest.New(nil)})}
	cases := map[string]struct {
		reason  string
		archive []byte
		wrong   string // the file; empty: none
	}{
		"Same":     {"an image has its hash", rendertest.Zip(files), ""},
		"Tampered": {"a changed image is named", rendertest.Zip(tampered), "Files/images/disk.img"},
		"Unlisted": {"an image without a hash is not verified", rendertest.Zip(unlisted), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := catalog.Lint(t.Context(), bytes.NewReader(tc.archive), int64(len(tc.archive)), limits, renderers)
			if tc.wrong == "" {
				if err != nil || p.Kind != "csar" || p.VNFD == nil || p.VNFD.ID != csartest.VNFD {
					t.Errorf("%s: %+v, %v", tc.reason, p, err)
				}
				return
			}
			if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].File != tc.wrong {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	tar := rendertest.TarGz(files)
	if _, err := catalog.Lint(t.Context(), bytes.NewReader(tar), int64(len(tar)), limits, renderers); nf.KindOf(err) != nf.Invalid {
		t.Errorf("a tar whose image cannot be read at its place: %v, want Invalid", err)
	}
}
