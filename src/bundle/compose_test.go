package bundle_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const values = "type: {values: over.yaml}\n"

func TestComposeValues(t *testing.T) {
	t.Parallel()
	subcharts := "dependencies:\n- {name: db}\n- {name: db, alias: spare}\n"
	cases := map[string]struct {
		reason string
		head   string // of Chart.yaml
		base   string
		over   string
		want   string // JSON
	}{
		"Maps":      {reason: "maps are merged", base: "a: {b: 1, c: 2}", over: "a: {c: 3, d: 4}", want: `{"a":{"b":1,"c":3,"d":4}}`},
		"Lists":     {reason: "lists are replaced", base: "a: [1, 2]", over: "a: [3]", want: `{"a":[3]}`},
		"Null":      {reason: "null takes away", base: "a: {b: 1, c: 2}\nd: 5", over: "a: {b: null}\nd: null", want: `{"a":{"c":2}}`},
		"NullNew":   {reason: "null takes away what is not there, too", base: "a: 1", over: "b: {c: null, d: 1}", want: `{"a":1,"b":{"d":1}}`},
		"Scalar":    {reason: "a scalar replaces a map", base: "a: {b: 1}", over: "a: x", want: `{"a":"x"}`},
		"Map":       {reason: "a map replaces a scalar", base: "a: x", over: "a: {b: 1}", want: `{"a":{"b":1}}`},
		"Subchart":  {reason: "what a subchart has is its own", head: subcharts, base: "db: {a: 1}", over: "db: {a: null, b: {c: null, d: 1}}", want: `{"db":{"b":{"d":1}}}`},
		"Big":       {reason: "numbers keep their digits", base: "a: 9007199254740993", over: "b: 18446744073709551615", want: `{"a":9007199254740993,"b":18446744073709551615}`},
		"Words":     {reason: "what was a text stays one", base: "a: 'yes'\nb: '1'", over: "c: '010'\nd: '<&>'", want: `{"a":"yes","b":"1","c":"010","d":"<&>"}`},
		"NoValues":  {reason: "a chart may have none", base: "-", over: "a: 1", want: `{"a":1}`},
		"EmptyOver": {reason: "nothing changes nothing, not even the writing", base: "a: 1 # as it was", over: "# nothing\n", want: "a: 1 # as it was"},
		"NullOver":  {reason: "a file of null is empty", base: "a: 1", over: "null", want: "a: 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			files := chart("fw/Chart.yaml", "name: fw\n"+tc.head, "fw/values.yaml", tc.base,
				"fw/charts/cache/Chart.yaml", "name: cache\n", "fw/charts/queue-1.2.3.tgz", "x")
			if tc.base == "-" {
				delete(files, "fw/values.yaml")
			}
			f.define(t, files)
			c, err := f.Compose(t.Context(), f.profile(t, map[string]string{"manifest.yaml": values, "over.yaml": tc.over}))
			must(t, err)
			got := f.files(t, c.Package)["fw/values.yaml"]
			if tc.want[0] == '{' {
				got = compact(t, got)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// compact returns JSON without its white space, with the digits it has.
func compact(t *testing.T, text string) string {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("the values are not JSON: %s", text)
	}
	return regexp.MustCompile(`[\s]+`).ReplaceAllString(text, "")
}

func TestComposeFiles(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		overlay map[string]string
		want    map[string]string // of the files that are not the chart's own
		text    string            // of an error at Compose
	}{
		"Replace": {
			reason:  "a file of the chart is overwritten",
			overlay: map[string]string{"manifest.yaml": "type: {configresource: [{filepath: cm, chartpath: fw/templates/cm.yaml}]}", "cm": "kind: New\n"},
			want:    map[string]string{"fw/templates/cm.yaml": "kind: New\n"},
		},
		"Add": {
			reason:  "a file is added in a folder of the chart, that of a subchart as well",
			overlay: map[string]string{"manifest.yaml": "type: {configresource: [{filepath: d/cm, chartpath: ./fw/charts/db/templates/x.yaml}]}", "d/cm": "new"},
			want:    map[string]string{"fw/charts/db/templates/x.yaml": "new"},
		},
		"Folder": {
			reason:  "everything may lie in one folder",
			overlay: map[string]string{"prof/manifest.yaml": "type: {configresource: [{filepath: cm, chartpath: fw/x}]}", "prof/cm": "new"},
			want:    map[string]string{"fw/x": "new"},
		},
		"NoFolder": {
			reason:  "the folder must be there",
			overlay: map[string]string{"manifest.yaml": "type: {configresource: [{filepath: cm, chartpath: fw/new/x.yaml}]}", "cm": "new"},
			text:    `no folder "fw/new"`,
		},
		"OtherChart": {
			reason:  "a file of another chart has no place here",
			overlay: map[string]string{"manifest.yaml": "type: {configresource: [{filepath: cm, chartpath: nat/x.yaml}]}", "cm": "new"},
			text:    "nat",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			own := chart("fw/charts/db/Chart.yaml", "name: db\n", "fw/charts/db/templates/db.yaml", "kind: X\n")
			f.define(t, own)
			c, err := f.Compose(t.Context(), f.profile(t, tc.overlay))
			if tc.text != "" {
				fails(t, tc.reason, err, nf.Invalid, tc.text)
				return
			}
			must(t, err)
			maps.Copy(own, tc.want)
			if diff := cmp.Diff(own, f.files(t, c.Package)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManifestIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		manifest string
		text     string
	}{
		"NotYAML":        {"it must be readable", "version: v1\ntype:\n\tvalues: f", "manifest.yaml:3: is not a profile's manifest: found character that cannot start any token"},
		"NotManifest":    {"its fields have their types", "type: {values: [f]}", "manifest.yaml: is not a profile's manifest: type.values: a string is needed, not an array"},
		"NoValues":       {"a file that is named is there", "type: {values: gone.yaml}", "gone.yaml"},
		"NoFile":         {"a file that is named is there", "type: {configresource: [{filepath: gone, chartpath: fw/x}]}", "gone"},
		"ValuesUp":       {"no file outside the archive is read", "type: {values: ../../etc/passwd}", "parent"},
		"ValuesRoot":     {"no file outside the archive is read", "type: {values: /etc/passwd}", "relative"},
		"FileUp":         {"no file outside the archive is read", "type: {configresource: [{filepath: a/../../b, chartpath: fw/x}]}", "parent"},
		"ChartUp":        {"no file outside the chart is written", "type: {configresource: [{filepath: f, chartpath: fw/../../x}]}", "parent"},
		"ChartRoot":      {"no file outside the chart is written", "type: {configresource: [{filepath: f, chartpath: /x}]}", "relative"},
		"ChartDot":       {"a folder is no file", "type: {configresource: [{filepath: f, chartpath: .}]}", "no file"},
		"ChartNone":      {"a file goes somewhere", "type: {configresource: [{filepath: f}]}", "chartpath"},
		"ChartBeside":    {"the path begins with the chart's folder", "type: {configresource: [{filepath: f, chartpath: x.yaml}]}", "folder"},
		"BadValues":      {"values are a map", "type: {values: f}", "f: is not a file of values: an object is needed, not an array"},
		"EveryViolation": {"all that is wrong is told at once", "type: {values: gone, configresource: [{filepath: lost, chartpath: /}]}", "lost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFixture(t), t.Context()
			f.define(t, chart())
			_, err := f.CreateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
			must(t, err)
			err = f.UploadProfile(ctx, bundle.Key{Name: "fw", Version: "1", Profile: "p"},
				reader(map[string]string{"manifest.yaml": tc.manifest, "f": "- a list\n"}))
			fails(t, tc.reason, err, nf.Invalid, tc.text)
		})
	}
}

func TestComposeNeedsEverything(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	k := bundle.Key{Name: "fw", Version: "1", Profile: "p"}
	_, err := f.Compose(ctx, k)
	fails(t, "no profile", err, nf.NotFound, "profile")
	_, err = f.CreateDefinition(ctx, bundle.Definition{Name: "fw", Version: "1"})
	must(t, err)
	_, err = f.CreateProfile(ctx, bundle.Profile{Definition: "fw", Version: "1", Name: "p"})
	must(t, err)
	_, err = f.Compose(ctx, k)
	fails(t, "no chart", err, nf.Conflict, "definition")
	must(t, f.UploadDefinition(ctx, "fw", "1", reader(chart())))
	_, err = f.Compose(ctx, k)
	fails(t, "no overlay", err, nf.Conflict, "profile")
	k.Profile = "default"
	c, err := f.Compose(ctx, k)
	must(t, err)
	if diff := cmp.Diff(chart(), f.files(t, c.Package)); diff != "" {
		t.Errorf("the default profile changes nothing (-want +got):\n%s", diff)
	}
}

func TestComposedPackageIsItsContent(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	f.define(t, chart())
	k := f.profile(t, map[string]string{"manifest.yaml": values, "over.yaml": "a: 1"})
	first, err := f.Compose(ctx, k)
	must(t, err)
	if !regexp.MustCompile(`^rb-[0-9a-f]{16}$`).MatchString(first.Package) || first.Definition.Chart != "fw" || first.Profile.Name != "p" {
		t.Errorf("composed: %+v", first)
	}
	archive := f.shelf.archives[first.Package]
	again, err := f.Compose(ctx, k)
	must(t, err)
	if again.Package != first.Package || f.shelf.uploads != 1 {
		t.Errorf("the same again is %s after %d uploads", again.Package, f.shelf.uploads)
	}
	delete(f.shelf.archives, first.Package)
	_, err = f.Compose(ctx, k)
	must(t, err)
	if !equal(archive, f.shelf.archives[first.Package]) {
		t.Error("the same layers do not give the same bytes")
	}
	f.shelf.archives[first.Package] = []byte("forged")
	_, err = f.Compose(ctx, k)
	must(t, err)
	if !equal(archive, f.shelf.archives[first.Package]) {
		t.Error("what somebody else put under the id was taken for ours")
	}
	must(t, f.UploadProfile(ctx, k, reader(map[string]string{"manifest.yaml": values, "over.yaml": "a: 2"})))
	other, err := f.Compose(ctx, k)
	must(t, err)
	if other.Package == first.Package {
		t.Error("another overlay makes the same package")
	}
}

func TestComposeTemplate(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	f.define(t, chart())
	k := f.profile(t, map[string]string{
		"manifest.yaml": "type: {values: over.yaml, configresource: [{filepath: over.yaml, chartpath: fw/x.yaml}]}", "over.yaml": "a: 1",
	})
	_, err := f.ComposeTemplate(ctx, k, "t")
	fails(t, "no template", err, nf.NotFound, "t")
	_, err = f.CreateTemplate(ctx, bundle.Template{Definition: "fw", Version: "1", Name: "t"})
	must(t, err)
	base, err := f.Compose(ctx, k)
	must(t, err)
	id, err := f.ComposeTemplate(ctx, k, "t")
	must(t, err)
	if id != base.Package {
		t.Errorf("without content the template is %s, want the definition's chart %s", id, base.Package)
	}
	must(t, f.UploadTemplate(ctx, bundle.TemplateKey{Name: "fw", Version: "1", Template: "t"},
		reader(map[string]string{"day2/Chart.yaml": "name: day2\n", "day2/values.yaml": "b: 2"})))
	id, err = f.ComposeTemplate(ctx, k, "t")
	must(t, err)
	files := f.files(t, id)
	if got := compact(t, files["day2/values.yaml"]); got != `{"a":1,"b":2}` || len(files) != 2 {
		t.Errorf("the template's own chart: %v", files)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	f.define(t, chart())
	k := f.profile(t, map[string]string{"manifest.yaml": values, "over.yaml": "a: 0"})
	ids := make([]string, 4)
	for i := range ids {
		must(t, f.UploadProfile(ctx, k, reader(map[string]string{"manifest.yaml": values, "over.yaml": "a: " + string(rune('1'+i))})))
		c, err := f.Compose(ctx, k)
		must(t, err)
		ids[i] = c.Package
	}
	f.shelf.used[ids[0]] = true
	used := func(id string) bool { return id == ids[1] }
	must(t, f.Sweep(ctx, used))
	if len(f.shelf.archives) != 4 {
		t.Errorf("what was composed a moment ago was swept: %d are left", len(f.shelf.archives))
	}
	f.now = f.now.Add(2 * time.Hour)
	for range 2 {
		must(t, f.Sweep(ctx, used))
	}
	for i, want := range []bool{true, true, false, true} {
		if _, there := f.shelf.archives[ids[i]]; there != want {
			t.Errorf("package %d is there: %t, want %t (0: held, 1: used, 2: nobody's, 3: composed now)", i, there, want)
		}
	}
	delete(f.shelf.used, ids[0])
	must(t, f.RemoveProfile(ctx, k))
	must(t, f.RemoveDefinition(ctx, "fw", "1"))
	must(t, f.Sweep(ctx, func(string) bool { return false }))
	if left := f.keys(t, ""); len(left) > 0 || len(f.shelf.archives) > 0 {
		t.Errorf("left behind: %v, %d packages", left, len(f.shelf.archives))
	}
}
