package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// TestPassedBy uploads archives with a file that is too large to be read.
func TestPassedBy(t *testing.T) {
	const limit = 1000
	large := strings.Repeat("x", limit+1)
	limits := render.DefaultLimits()
	limits.File = limit
	ids := 0
	b, err := bundle.New(bundle.Config{
		KV: memory.New(), Packages: &shelf{archives: map[string][]byte{}}, Limits: limits, NewID: func() string { ids++; return fmt.Sprint("u", ids) },
	})
	must(t, err)
	_, err = b.CreateDefinition(t.Context(), bundle.Definition{Name: "fw", Version: "1"})
	must(t, err)
	k := bundle.Key{Name: "fw", Version: "1", Profile: "p"}
	_, err = b.CreateProfile(t.Context(), bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	must(t, err)
	_, err = b.CreateTemplate(t.Context(), bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	must(t, err)
	uploads := map[string]func(files map[string]string) error{
		"definition": func(files map[string]string) error {
			return b.UploadDefinition(t.Context(), "fw", "1", reader(files))
		},
		"template": func(files map[string]string) error {
			return b.UploadTemplate(t.Context(), bundle.TemplateKey{Name: "fw", Version: "1", Template: "t"}, reader(files))
		},
		"profile": func(files map[string]string) error { return b.UploadProfile(t.Context(), k, reader(files)) },
	}
	const manifest = "version: v1\ntype:\n  values: values.yaml\n"
	for _, tc := range []struct {
		reason string
		to     string
		files  map[string]string
		kind   nf.Kind // with a text: of the error
		text   string
	}{
		{"a file of the chart is needed", "definition", chart("fw/disk.img", large), nf.TooLarge, "fw/disk.img: is too large to be read with the chart"},
		{"a file beside the chart is not", "definition", chart("disk.img", large), 0, ""},
		{"a file of a template's chart is needed", "template", chart("fw/disk.img", large), nf.TooLarge, "fw/disk.img: is too large to be read with the chart"},
		{"a file beside a template's chart is not", "template", chart("disk.img", large), 0, ""},
		{"a file that a profile names is needed", "profile", map[string]string{"manifest.yaml": manifest, "values.yaml": large}, nf.Invalid, `"values.yaml" is too large`},
		{"so is a profile's manifest", "profile", map[string]string{"manifest.yaml": large}, nf.TooLarge, "manifest.yaml"},
		{"in a folder, too", "profile", map[string]string{"p/manifest.yaml": large}, nf.TooLarge, "manifest.yaml"},
		{"another file of a profile is not", "profile", map[string]string{"manifest.yaml": manifest, "values.yaml": "a: 1\n", "disk.img": large}, 0, ""},
	} {
		err := uploads[tc.to](tc.files)
		if tc.text != "" {
			fails(t, tc.reason, err, tc.kind, tc.text)
		} else if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
	if _, err := b.Compose(t.Context(), k); err != nil {
		t.Errorf("what was accepted can be composed: %v", err)
	}
}
