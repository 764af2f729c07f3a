package helm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// input renders files as a first revision.
func input(files render.Files) render.Input {
	return render.Input{Files: files, Release: render.Release{Name: "rel", Namespace: "ns", Revision: 1}}
}

// one makes a chart of one template.
func one(template string) render.Files {
	return render.Files{"Chart.yaml": []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n"), "templates/a.yaml": []byte(template)}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestLikeHelm holds what the templates of all charts print against what they
// print without being instrumented, with none of Helm's functions replaced.
func TestLikeHelm(t *testing.T) {
	for name, files := range helmtest.Charts() {
		if name == "certificates" || name == "passwords" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed := func(run func(source, common.Values) (map[string]string, error)) map[string]string {
				r := &report{}
				s, _ := load(files, r)
				top := resolve(s, map[string]any{}, common.ReleaseOptions{Name: "rel", Namespace: "ns", IsInstall: true}, nil, r)
				out, err := run(s, top)
				if err = errors.Join(err, r.err("render")); err != nil {
					t.Fatal(err)
				}
				return out
			}
			want := printed(func(s source, v common.Values) (map[string]string, error) { return engine.Render(s.Chart, v) })
			got := printed(func(s source, v common.Values) (map[string]string, error) {
				return execute(s, v, &meter{ctx: t.Context(), limit: maxWork}, nil, &report{})
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-Helm +ours):\n%s", diff)
			}
		})
	}
}

// TestFunctionsLikeHelm holds the functions that are replaced against Helm's.
func TestFunctionsLikeHelm(t *testing.T) {
	data := "$d := dict \"b\" (list 1 2.5 \"x\" nil true) \"a\" (dict \"n\" 12345678901 \"t\" \"two\\nlines\") }}{{ "
	for _, call := range []string{
		"toYaml $d", "mustToYaml $d", "toYamlPretty $d", "toJson $d", "mustToJson $d", "toPrettyJson $d", "toRawJson $d",
		`toToml (dict "a" 1 "b" (dict "c" "d"))`, `toToml (list 1)`, `mustToToml (dict "a" 1)`, `mustToToml 1`,
		`fromYaml "a: 1" | toJson`, `fromYaml "a: [" | toJson`, `fromYamlArray "[1, a]" | toJson`, `fromYamlArray "{" | toJson`,
		`fromJson "{\"a\": 1}" | toJson`, `fromJson "[" | toJson`, `fromJsonArray "[1]" | toJson`, `fromJsonArray "{" | toJson`,
		`mustFromJson "[1, {}]" | toJson`, `mustFromJson "["`, `fromToml "a = 1" | toJson`, `fromToml "=" | toJson`,
		`printf "%5d|%-4s|%*d|%v" 1 "a" 6 2 $d`, `print 1 2 "a" nil`, `println "a" 1`, `html "<a>"`, `js "'"`, `urlquery "a b"`,
		`repeat 3 "ab"`, `repeat -1 "ab"`, `"ab" | repeat 0`, `replace "a" "bb" "banana"`, `replace "" "-" "abc"`,
		`indent 2 "a\nb"`, `nindent 3 "a\nb"`, `indent -1 "a"`, `until 4`, `until 0`, `until -3`, `untilStep 0 10 3`, `untilStep 10 0 -4`, `untilStep 0 5 0`,
		`seq 5`, `seq -2`, `seq 2 4`, `seq 4 2`, `seq 0 2 10`, `seq 10 -5 0`, `seq`, `wrapWith 3 "--" "ab cd efghij"`, `wrapWith 0 "-" "ab"`,
		`regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"`, `mustRegexReplaceAll "(" "a" "b"`, `regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}"`, `mustRegexReplaceAllLiteral "a" "banana" "$"`,
		`quote "a" 1 nil $d`, `squote "a" nil`, `cat "a" nil 1`, `toString $d`, `toStrings (list 1 "a")`, `join "," (list 1 "b")`, `sortAlpha (list "b" "a")`,
		`merge (dict "a" 1) (dict "a" 2 "b" 3) | toJson`, `mergeOverwrite (dict "a" 1) (dict "a" 2) | toJson`, `mustMerge (dict) $d | toJson`, `deepCopy $d | toJson`,
		`len (randAlphaNum 8)`, `len (randBytes 8)`, `len (randAscii 0)`, `$d`, `.Values`, `.Release`, `.Files`, `.Capabilities.KubeVersion`, `.Chart.Name`, `.Capabilities.HelmVersion`, `nil | default "x"`, `.Values.no.such | quote`,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			printed := func(run func(source, common.Values) (map[string]string, error)) (map[string]string, error) {
				s, _ := load(one("{{ "+data+call+" }}"), &report{})
				return run(s, resolve(s, map[string]any{"v": 1.5}, common.ReleaseOptions{Name: "rel"}, nil, &report{}))
			}
			want, wantErr := printed(func(s source, v common.Values) (map[string]string, error) { return engine.Render(s.Chart, v) })
			got, err := printed(func(s source, v common.Values) (map[string]string, error) {
				r := &report{}
				out, err := execute(s, v, &meter{ctx: t.Context(), limit: maxWork}, nil, r)
				return out, errors.Join(err, r.err("render"))
			})
			if (err == nil) != (wantErr == nil) {
				t.Errorf("Helm fails with %v, we with %v", wantErr, err)
			}
			if wantErr == nil && err == nil {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-Helm +ours):\n%s", diff)
				}
			}
		})
	}
}

func TestBombs(t *testing.T) {
	const work = 16 << 20
	errWork := fmt.Errorf("the templates make more than %d bytes of text and values", work)
	double := "{{ $x := \"xxxxxxxx\" }}{{ range until 60 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}"
	nested := "{{ $d := dict }}{{ range until 60 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}"
	deepest := "{{ $d := dict }}{{ range until 20000 }}{{ $d = dict \"a\" $d }}{{ end }}"
	var calls strings.Builder
	for i := range 60 {
		fmt.Fprintf(&calls, "{{ define \"t%d\" }}{{ if include \"t%d\" . }}{{ include \"t%d\" . }}{{ end }}{{ end }}", i, i+1, i+1)
	}
	cases := map[string]struct {
		reason   string
		template string
		want     error
	}{
		"Loop":         {"an empty loop", "{{ range 100000000000000 }}{{ end }}", errWork},
		"Loops":        {"loops in loops", "{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}", errWork},
		"Text":         {"text that is printed again and again", "{{ range until 1000000 }}" + strings.Repeat("x", 1000) + "{{ end }}", errWork},
		"Value":        {"a value that is printed again and again", "{{ $x := repeat 100000 \"x\" }}{{ range until 100000 }}{{ $x }}{{ end }}", errWork},
		"Until":        {"a long list", "{{ until 100000000000 }}", errWork},
		"UntilStep":    {"a long list", "{{ untilStep -9223372036854775807 9223372036854775807 1 | len }}", errWork},
		"Seq":          {"a long text of numbers", "{{ seq 1 100000000000 | len }}", errWork},
		"Repeat":       {"a long text", "{{ repeat 100000000000 \"x\" | len }}", errWork},
		"Random":       {"a long random text", "{{ randAlphaNum 100000000000 | len }}", errWork},
		"Indent":       {"a long indent", "{{ indent 100000000000 \"x\" | len }}", errWork},
		"Width":        {"wide numbers", "{{ printf \"" + strings.Repeat("%1000000d", 500) + "\" 1 | len }}", errWork},
		"WidthStar":    {"wide numbers", "{{ printf \"" + strings.Repeat("%*d", 500) + "\" 1 | len }}", errWork},
		"Replace":      {"much for little", "{{ $x := repeat 1000000 \"x\" }}{{ replace \"x\" $x $x | len }}", errWork},
		"Regex":        {"much for little", "{{ $x := repeat 100000 \"x\" }}{{ regexReplaceAll \"x\" $x $x | len }}", errWork},
		"RegexGroups":  {"much for little", "{{ regexReplaceAll \".*\" (repeat 1000000 \"x\") (repeat 10000 \"$0\") | len }}", errWork},
		"Wrap":         {"much for little", "{{ wrapWith 1 (repeat 1000000 \"-\") (repeat 1000000 \"x\") | len }}", errWork},
		"Join":         {"one text in a list often", "{{ $x := repeat 1000000 \"x\" }}{{ $l := list }}{{ range until 1000 }}{{ $l = append $l $x }}{{ end }}{{ join \"\" $l | len }}", errWork},
		"Double":       {"a text that doubles", double, errWork},
		"Lists":        {"a list that doubles", "{{ $l := list 1 }}{{ range until 60 }}{{ $l = concat $l $l }}{{ end }}", errWork},
		"Laughs":       {"a value that holds another twice, and so on", nested + "{{ toYaml $d | len }}", errWork},
		"LaughsPrint":  {"the same, printed", nested + "{{ $d }}", errWork},
		"LaughsMerge":  {"the same, merged", nested + "{{ merge (dict) $d | len }}", errWork},
		"Circle":       {"a value that holds itself", "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $d }}", errDepth},
		"CircleYAML":   {"the same, encoded", "{{ $d := dict }}{{ $_ := set $d \"a\" (list $d) }}{{ toYamlPretty $d }}", errDepth},
		"CircleMerge":  {"the same, made by merging", "{{ $d := dict }}{{ $_ := mergeOverwrite $d (dict \"a\" $d) }}{{ deepCopy $d | len }}", errDepth},
		"Deep":         {"a value as deep as a stack", deepest + "{{ toJson $d | len }}", errDepth},
		"Calls":        {"templates that call two others, and so on", calls.String() + "{{ define \"t60\" }}x{{ end }}{{ include \"t0\" . }}", errWork},
		"Recursion":    {"a template that calls itself", "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}", errStack},
		"Tpl":          {"a text that is a template of itself", "{{ $t := \"{{ tpl .t . }}\" }}{{ tpl $t (dict \"t\" $t \"Template\" .Template) }}", errStack},
		"TplLoop":      {"a loop in a text", "{{ tpl \"{{ range 100000000000 }}{{ end }}\" . }}", errWork},
		"TplDoubleTpl": {"a loop in a text in a text", "{{ tpl \"{{ tpl \\\"{{ range 100000000000 }}{{ end }}\\\" . }}\" . }}", errWork},
		"Parse":        {"texts to parse", "{{ fromYaml (repeat 50000000 \"[],\") | len }}", errWork},
		"File":         {"the chart's own files", "{{ range until 1000 }}{{ ($.Files.Glob \"*\").AsSecrets }}{{ end }}", errWork},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := one(tc.template)
			files["big"] = []byte(strings.Repeat("x", 128<<10))
			var err error
			allocated := rendertest.Allocated(func() { _, err = Renderer{work: work}.Render(t.Context(), input(files)) })
			want := nf.Violations{{File: "Chart.yaml", Message: tc.want.Error()}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if allocated > 2<<30 {
				t.Errorf("%s takes %d MiB in all", tc.reason, allocated>>20)
			}
		})
	}
}

func TestLargeOutput(t *testing.T) {
	_, err := Renderer{}.Render(t.Context(), input(one("{{ range until 50 }}{{ repeat 1000000 \"x\" }}{{ end }}")))
	if found := nf.ViolationsOf(err); len(found) != 1 || !strings.Contains(found[0].Message, "33554432") {
		t.Errorf("50 MB of objects: %v", err)
	}
	_, err = Renderer{}.Render(t.Context(), input(one("{{ range until 6000 }}---\n{{ end }}"+strings.Repeat("---\n"+configMap, 6000))))
	if err == nil || !strings.Contains(err.Error(), "5000 documents") {
		t.Errorf("6000 documents: %v", err)
	}
	_, err = Renderer{}.Render(t.Context(), input(one(configMap+"data: [{{ repeat 2000000 \",\" }}]")))
	if err == nil || !strings.Contains(err.Error(), "1048576 commas") {
		t.Errorf("two million values: %v", err)
	}
}

func TestSchemaBomb(t *testing.T) {
	parts := []string{`"p0": {"type": "string"}`}
	for i := range 60 {
		parts = append(parts, fmt.Sprintf(`"p%d": {"anyOf": [{"$ref": "#/definitions/p%d"}, {"$ref": "#/definitions/p%d"}]}`, i+1, i, i))
	}
	files := one(configMap)
	files[schemaFile] = fmt.Appendf(nil, `{"properties": {"a": {"$ref": "#/definitions/p60"}}, "definitions": {%s}}`, strings.Join(parts, ", "))
	in := input(files)
	in.Inputs.Parameters = map[string]any{"a": 1}
	_, err := Renderer{}.Render(t.Context(), in)
	if err == nil || !strings.Contains(err.Error(), errJudged.Error()) {
		t.Errorf("alternatives of alternatives: %v", err)
	}
	if _, err := (Renderer{}).Check(t.Context(), files); err != nil {
		t.Errorf("what is marked is looked for: %v", err)
	}
}

func TestRenderHeedsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := &stopping{cancel: cancel}
	in := input(one("{{ $_ := lookup \"v1\" \"Node\" \"\" \"\" }}{{ range 100000000000 }}{{ end }}"))
	in.Region = stop
	if _, err := (Renderer{}).Render(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a rendering that is cancelled on the way returns %v", err)
	}
}

// stopping is a region that ends a rendering when it is asked.
type stopping struct {
	region
	cancel func()
}

func (s *stopping) Lookup(context.Context, nf.Ref) (map[string]any, error) {
	s.cancel()
	return nil, nil
}

func TestRegionAway(t *testing.T) {
	in := input(one("{{ lookup \"v1\" \"Node\" \"\" \"\" }}"))
	in.Region = &region{Version: "v1.37.1", err: nf.E(nf.Unreachable, "reach", "region", nil)}
	if _, err := (Renderer{}).Render(t.Context(), in); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a region that is away makes the error %v", err)
	}
}

func TestLookupGivesCopies(t *testing.T) {
	object := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"k": int64(1)}}
	in := input(one("{{ $s := lookup \"v1\" \"Secret\" \"\" \"s\" }}{{ $_ := set $s.data \"k\" \"changed\" }}" + configMap + "data: {k: {{ $s.data.k }}}\n"))
	in.Region = &region{Version: "v1.37.1", Objects: []map[string]any{object}}
	out, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Groups[0].Objects[0].Object["data"].(map[string]any)["k"]; got != "changed" {
		t.Errorf("a template cannot change what it was given: %v", got)
	}
	if got := object["data"].(map[string]any)["k"]; got != int64(1) {
		t.Errorf("a template has changed what the region holds to %v", got)
	}
}

// TestRandom looks at what is never twice the same.
func TestRandom(t *testing.T) {
	charts := helmtest.Charts()
	render := func(name string) map[string]any {
		out, err := Renderer{}.Render(t.Context(), input(charts[name]))
		if err != nil {
			t.Fatal(err)
		}
		o := out.Groups[0].Objects[0].Object
		fields, _ := o["stringData"].(map[string]any)
		if fields == nil {
			fields, _ = o["data"].(map[string]any)
		}
		return fields
	}
	if one, two := render("passwords"), render("passwords"); len(one["password"].(string)) != 24 || one["password"] == two["password"] || one["id"] == two["id"] {
		t.Errorf("passwords %v and %v", one, two)
	}
	for name, value := range render("certificates") {
		text, err := base64.StdEncoding.DecodeString(value.(string))
		if err != nil || !strings.HasPrefix(string(text), "-----BEGIN ") {
			t.Errorf("%s is %q: %v", name, text, err)
		}
	}
}

func TestBig(t *testing.T) {
	out, err := Renderer{}.Render(t.Context(), input(helmtest.Charts()["big"]))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, o := range out.Groups[0].Objects {
		size += len(o.Object["data"].(map[string]any)["big"].(string))
	}
	if len(out.Groups[0].Objects) != 4 || size != 4*400_000 {
		t.Errorf("%d objects of %d bytes", len(out.Groups[0].Objects), size)
	}
}

// TestPackagedDependency has a dependency as `helm package` leaves it: an
// archive in the charts folder, in which there is another one.
func TestPackagedDependency(t *testing.T) {
	metadata := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	template := func(name string) string { return strings.Replace(configMap, "name: a", "name: "+name, 1) }
	inner := rendertest.TarGz(map[string]string{"inner/Chart.yaml": metadata("inner"), "inner/templates/a.yaml": template("inner")})
	outer := rendertest.TarGz(map[string]string{
		"outer/Chart.yaml":       metadata("outer") + "dependencies: [{name: inner, version: '*', repository: ''}]\n",
		"outer/templates/a.yaml": template("outer"), "outer/charts/inner-1.0.0.tgz": string(inner),
	})
	files := render.Files{
		"c/Chart.yaml":             []byte(metadata("c") + "dependencies: [{name: outer, version: ^1.0.0, repository: '', alias: given}]\n"),
		"c/charts/outer-1.0.0.tgz": outer, "c/charts/_ignored.tgz": []byte("x"), "c/templates/a.yaml": []byte(template("c")),
	}
	before := maps.Clone(files)
	if _, err := (Renderer{}).Check(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	out, err := Renderer{}.Render(t.Context(), input(files))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range out.Groups[0].Objects {
		got = append(got, o.File+" "+o.GetName())
	}
	slices.Sort(got)
	want := []string{"c/charts/given/charts/inner/templates/a.yaml inner", "c/charts/given/templates/a.yaml outer", "c/templates/a.yaml c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, files); diff != "" {
		t.Errorf("the input has changed (-want +got):\n%s", diff)
	}
}

func TestPackagedDependencyRefused(t *testing.T) {
	matryoshka := rendertest.TarGz(map[string]string{"x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"})
	for range maxNested + 1 {
		matryoshka = rendertest.TarGz(map[string]string{"x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "x/charts/x.tgz": string(matryoshka)})
	}
	cases := map[string]struct {
		reason  string
		archive []byte
		want    string
	}{
		"Broken":     {"what is no archive", []byte("x"), "charts/s.tgz: is neither a zip nor a gzipped tar archive"},
		"NoChart":    {"an archive without a chart", rendertest.TarGz(map[string]string{"a/b": "c"}), "charts/s.tgz: holds no chart: there is no Chart.yaml, neither at the top nor in a folder"},
		"Bomb":       {"an archive that unpacks to much", rendertest.TarGz(map[string]string{"s/Chart.yaml": "", "s/big": strings.Repeat("x", 20<<20)}), "charts/s.tgz: s/big: "},
		"Matryoshka": {"archives in archives", matryoshka, "is an archive in more than 8 others"},
		"Traversal":  {"a path out of the archive", rendertest.TarGz(map[string]string{"../Chart.yaml": "x"}), "charts/s.tgz: ../Chart.yaml: is a path through a parent folder"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := one(configMap)
			files["charts/s.tgz"] = tc.archive
			_, err := Renderer{}.Check(t.Context(), files)
			if nf.KindOf(err) != nf.Invalid || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestRenderIsPure(t *testing.T) {
	parameters := map[string]any{"sub": map[string]any{"list": []any{map[string]any{"a": 1.0}}}}
	in := input(one("{{ $_ := set .Values.sub \"x\" \"changed\" }}{{ $_ := set (index .Values.sub.list 0) \"a\" 2 }}" + configMap + "data: {}\n"))
	in.Inputs = nf.Inputs{Parameters: parameters, Overrides: map[string]string{"sub.list[0].b": "3"}}
	first, err := Renderer{}.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"sub": map[string]any{"list": []any{map[string]any{"a": 1.0}}}}
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Errorf("the parameters have changed (-want +got):\n%s", diff)
	}
	second, err := Renderer{}.Render(t.Context(), in)
	if diff := cmp.Diff(first, second); diff != "" || err != nil {
		t.Errorf("the second time differs: %v\n%s", err, diff)
	}
}

// TestSecrets relies on every secret of the examples being called hunter2.
func TestSecrets(t *testing.T) {
	examples, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, example := range examples {
		archive, err := txtar.ParseFile(example)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			switch secret := strings.Contains(string(f.Data), "hunter2"); {
			case secret && (f.Name == "inputs.json" || f.Name == caseFile):
				given++
			case secret:
				t.Errorf("%s: the secret is in %s", example, f.Name)
			}
		}
	}
	if given < 6 {
		t.Errorf("only %d examples have a secret", given)
	}
}
