package catalog_test

import (
	"bytes"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// kind fits as it is told.
type kind struct {
	anything

	fit render.Fit
}

func (k kind) Fit(render.Files) render.Fit { return k.fit }

func TestKindOfPackage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		fits   map[string]render.Fit
		want   string // "": none
	}{
		"Best":    {"the kind that fits best", map[string]render.Fit{"a": render.LikelyFit, "b": render.SureFit, "c": render.DefaultFit}, "b"},
		"Default": {"one that helps its author", map[string]render.Fit{"a": render.NoFit, "b": render.DefaultFit}, "b"},
		"Equal":   {"the first by name", map[string]render.Fit{"b": render.SureFit, "a": render.SureFit}, "a"},
		"None":    {"a package of no kind is refused", map[string]render.Fit{"a": render.NoFit}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renderers := map[string]render.Renderer{}
			for name, fit := range tc.fits {
				renderers[name] = kind{anything{func() {}}, fit}
			}
			archive := rendertest.Zip(map[string]string{"a": "b"})
			p, err := catalog.Lint(t.Context(), bytes.NewReader(archive), int64(len(archive)), render.DefaultLimits(), renderers)
			if p.Kind != tc.want || tc.want == "" && nf.KindOf(err) != nf.Unsupported || tc.want != "" && err != nil {
				t.Errorf("%s: kind %q, %v", tc.reason, p.Kind, err)
			}
		})
	}
}
