package bundle_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

func TestDefinitionLife(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	d, err := f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1", Labels: map[string]string{"vf_module_model_name": "a b/c"}})
	must(t, err)
	if d.Chart != "" || !d.Created.Equal(f.now) {
		t.Errorf("created: %+v", d)
	}
	_, err = f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"})
	fails(t, "a name and version are taken once", err, nf.Exists, "fw")

	p, err := f.Profile(ctx, bundle.Key{Name: "fw", Version: "1", Profile: "default"})
	must(t, err)
	if p.Namespace != "default" || p.Release != "default" || !p.Bare {
		t.Errorf("the profile that comes with it: %+v", p)
	}

	must(t, f.UploadDefinition(ctx, "fw", "1", reader(chart())))
	d, err = f.Definition(ctx, "fw", "1")
	must(t, err)
	if d.Chart != "fw" {
		t.Errorf("the chart that was found: %q", d.Chart)
	}
	d, err = f.UpdateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1", Description: "new"})
	must(t, err)
	if d.Chart != "fw" || d.Description != "new" || d.Labels != nil || d.Content.Digest == "" {
		t.Errorf("updated: %+v", d)
	}
	_, err = f.UpdateDefinition(ctx, bundle.Definition{Name: "fw", Version: "2"})
	fails(t, "what is not there is not made", err, nf.NotFound, "2")

	for range 2 {
		must(t, f.RemoveDefinition(ctx, "fw", "1"))
	}
	if left := f.keys(t, ""); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDefaultProfileIsFresh removes a definition whose default profile was
// changed, and one whose removal was cut short.
func TestDefaultProfileIsFresh(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	key := bundle.Key{Name: "fw", Version: "1", Profile: "default"}
	f.define(t, chart())
	_, err := f.UpdateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "default", Namespace: "other"})
	must(t, err)
	must(t, f.UploadProfile(ctx, key, reader(map[string]string{"manifest.yaml": "version: v1\n"})))
	must(t, f.kv.Delete(ctx, "onap/definitions/fw/1", -1))
	must(t, f.RemoveDefinition(ctx, "fw", "1"))
	_, err = f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"})
	must(t, err)
	p, err := f.Profile(ctx, key)
	must(t, err)
	if p.Namespace != "default" || p.Content.Digest != "" {
		t.Errorf("the profile of the definition before: %+v", p)
	}
}

func TestUploadDefinition(t *testing.T) {
	t.Parallel()
	nested := func(names ...string) map[string]string {
		files := map[string]string{}
		for _, name := range names {
			files[name+"/Chart.yaml"] = "name: " + name + "\n"
		}
		return files
	}
	cases := map[string]struct {
		reason  string
		named   string
		archive []byte
		chart   string
		text    string // of nf.Invalid
	}{
		"Found":        {reason: "the only folder is it", archive: rendertest.TarGz(chart()), chart: "fw"},
		"First":        {reason: "by the folder's name, and not by that of its files", archive: rendertest.TarGz(nested("fw-b", "fw")), chart: "fw"},
		"Named":        {reason: "what is named is taken", named: "fw-b", archive: rendertest.TarGz(nested("fw-b", "fw")), chart: "fw-b"},
		"Misnamed":     {reason: "better refused now than at every instance", named: "nat", archive: rendertest.TarGz(chart()), chart: "nat", text: "nat"},
		"OtherFolders": {reason: "a folder without a chart is none", archive: rendertest.TarGz(chart("aa/README.md", "x")), chart: "fw"},
		"Metadata":     {reason: "a chart may hold what else marks a package", archive: rendertest.TarGz(chart("fw/metadata.yaml", "a: b\n")), chart: "fw"},
		"NoChart":      {reason: "there is nothing to render", archive: rendertest.TarGz(map[string]string{"a/b": "c"}), text: "Chart.yaml"},
		"Deep":         {reason: "a chart lies at the top", archive: rendertest.TarGz(map[string]string{"a/b/Chart.yaml": "name: b\n"}), text: "Chart.yaml"},
		"Zip":          {reason: "ONAP's bundles are gzipped tars", archive: rendertest.Zip(chart()), text: "gzip"},
		"Garbage":      {reason: "it is no archive", archive: []byte("\x1f\x8bx"), text: "archive"},
		"Escape":       {reason: "an archive stays in its place", archive: rendertest.TarGz(chart("../x", "y")), text: "parent"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFixture(t), t.Context()
			_, err := f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1", Chart: tc.named})
			must(t, err)
			err = f.UploadDefinition(ctx, "fw", "1", bytes.NewReader(tc.archive))
			d, got := f.Definition(ctx, "fw", "1")
			must(t, got)
			if tc.text != "" {
				fails(t, tc.reason, err, nf.Invalid, tc.text)
				if left := f.keys(t, "blobs/"); len(left) > 0 {
					t.Errorf("%s: left behind: %v", tc.reason, left)
				}
			} else {
				must(t, err)
			}
			if d.Chart != tc.chart {
				t.Errorf("%s: the chart is %q, want %q", tc.reason, d.Chart, tc.chart)
			}
		})
	}
}

func TestReplacedContentIsLetGo(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	f.define(t, chart())
	k := f.profile(t, map[string]string{"manifest.yaml": "version: v1\n"})
	template := bundle.TemplateKey{Name: "fw", Version: "1", Template: "t"}
	_, err := f.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	must(t, err)
	must(t, f.UploadTemplate(ctx, template, reader(map[string]string{"t/Chart.yaml": "name: t\n"})))
	before := len(f.keys(t, ""))
	must(t, f.UploadDefinition(ctx, "fw", "1", reader(chart("fw/README.md", "new"))))
	must(t, f.UploadDefinition(ctx, "fw", "1", reader(chart("fw/README.md", "new"))))
	must(t, f.UploadProfile(ctx, k, reader(map[string]string{"manifest.yaml": "version: v2\n"})))
	must(t, f.UploadTemplate(ctx, template, reader(map[string]string{"t2/Chart.yaml": "name: t2\n"})))
	if after := f.keys(t, ""); len(after) != before {
		t.Errorf("there were %d keys before, and now there are %v", before, after)
	}
	must(t, f.RemoveTemplate(ctx, template))
	must(t, f.RemoveProfile(ctx, k))
	must(t, f.RemoveDefinition(ctx, "fw", "1"))
	if left := f.keys(t, ""); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	fails(t, "an upload needs its definition", f.UploadDefinition(ctx, "fw", "1", reader(chart())), nf.NotFound, "fw")
	fails(t, "an upload needs its profile", f.UploadProfile(ctx, k, reader(chart())), nf.NotFound, "p")
	fails(t, "an upload needs its template", f.UploadTemplate(ctx, template, reader(chart())), nf.NotFound, "t")
}

// TestNamesDoNotMeet creates definitions whose names are made to be taken for
// each other.
func TestNamesDoNotMeet(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	long := strings.Repeat("x", 200)
	pairs := [][2]string{
		{"a/b", "c"}, {"a", "b/c"}, {"a%2Fb", "c"}, {"..", "."}, {"a", "b"}, {"ab", ""}, {"~", "1"}, {"%7E", "1"},
		{long, "1"}, {long + "y", "1"}, {"é", "1"}, {"$x", "日本"}, {"a b", "1"},
	}
	kept := 0
	for _, p := range pairs {
		_, err := f.CreateDefinition(ctx, bundle.Definition{Name: p[0], Version: p[1]})
		if p[1] == "" {
			fails(t, "a version is a name", err, nf.Invalid, "rb-version")
			continue
		}
		must(t, err)
		kept++
	}
	all, err := f.Definitions(ctx, "")
	must(t, err)
	if len(all) != kept {
		t.Errorf("%d definitions were created, and %d are there", kept, len(all))
	}
	one, err := f.Definitions(ctx, "a")
	must(t, err)
	var versions []string
	for _, d := range one {
		versions = append(versions, d.Version)
	}
	if diff := cmp.Diff([]string{"b", "b/c"}, versions); diff != "" {
		t.Errorf("the versions of one name (-want +got):\n%s", diff)
	}
	for reason, name := range map[string]string{"what cannot be read": "a\x00b", "no text": "a\xff", "too long": strings.Repeat("x", 257)} {
		_, err := f.CreateDefinition(ctx, bundle.Definition{Name: name, Version: "1"})
		fails(t, reason, err, nf.Invalid, "rb-name")
	}
}

func TestTemplateLife(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	_, err := f.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	fails(t, "a template belongs to a definition", err, nf.NotFound, "fw")
	f.define(t, chart())
	_, err = f.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t", Chart: "forged"})
	must(t, err)
	_, err = f.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	fails(t, "a name is taken once", err, nf.Exists, "t")
	changed, err := f.UpdateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t", Description: "new"})
	must(t, err)
	if changed.Description != "new" || changed.Chart != "" {
		t.Errorf("updated: %+v", changed)
	}
	all, err := f.Templates(ctx, "fw", "1")
	must(t, err)
	if len(all) != 1 {
		t.Errorf("templates: %+v", all)
	}
	other, err := f.Templates(ctx, "fw", "10")
	must(t, err)
	if len(other) != 0 {
		t.Errorf("the templates of another version: %+v", other)
	}
}

func TestProfileLife(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	_, err := f.CreateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	fails(t, "a profile belongs to a definition", err, nf.NotFound, "fw")
	f.define(t, chart())
	p, err := f.CreateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p", Bare: true})
	must(t, err)
	if p.Release != "p" || p.Bare {
		t.Errorf("created: %+v", p)
	}
	_, err = f.CreateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	fails(t, "a name is taken once", err, nf.Exists, "p")
	_, err = f.UpdateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "q"})
	fails(t, "what is not there is not made", err, nf.NotFound, "q")
	must(t, f.UploadProfile(ctx, p.Key(), reader(map[string]string{"manifest.yaml": "version: v1\n"})))
	changed, err := f.UpdateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p", Namespace: "ns", Release: "r"})
	must(t, err)
	if changed.Namespace != "ns" || changed.Release != "r" || changed.Content.Digest == "" {
		t.Errorf("updated: %+v", changed)
	}
	all, err := f.Profiles(ctx, "fw", "1")
	must(t, err)
	if len(all) != 2 {
		t.Errorf("profiles: %+v", all)
	}
}
