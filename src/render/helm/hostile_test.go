package helm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

func TestBombs(t *testing.T) {
	const work = 16 << 20
	few, errWork := errWork(work/8), errWork(work)
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
		want     *limitError
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
		"Deeper":       {"a value as deep as memory", "{{ $d := dict }}{{ range until 100000 }}{{ $d = dict \"a\" $d }}{{ end }}{{ $x := quote $d }}", errWork},
		"Calls":        {"templates that call two others, and so on", calls.String() + "{{ define \"t60\" }}x{{ end }}{{ include \"t0\" . }}", errWork},
		"Recursion":    {"a template that calls itself", "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}", errStack},
		"Tpl":          {"a text that is a template of itself", "{{ $t := \"{{ tpl .t . }}\" }}{{ tpl $t (dict \"t\" $t \"Template\" .Template) }}", errWork},
		"TplLoop":      {"a loop in a text", "{{ tpl \"{{ range 100000000000 }}{{ end }}\" . }}", errWork},
		"TplDoubleTpl": {"a loop in a text in a text", "{{ tpl \"{{ tpl \\\"{{ range 100000000000 }}{{ end }}\\\" . }}\" . }}", errWork},
		"Parse":        {"texts to parse", "{{ fromYaml (repeat 50000000 \"[],\") | len }}", errWork},
		"ParseItems":   {"texts to parse, with an alias", "{{ fromYaml (printf \"[&a x,*a,%s]\" (repeat 3500000 \"a,\")) | len }}", errWork},
		"Named":        {"one argument printed again and again", "{{ $x := repeat 1000000 \"x\" }}{{ printf (repeat 10000 \"%[1]s\") $x | len }}", errWork},
		"Separator":    {"much between little", "{{ join (repeat 1000000 \"x\") (until 100000) | len }}", errWork},
		"Split":        {"a table of pieces", "{{ split \",\" (repeat 10000000 \",\") | len }}", errWork},
		"SplitList":    {"a list of letters", "{{ splitList \"\" (repeat 10000000 \",\") | len }}", errWork},
		"Overflow":     {"a list whose numbers start again", "{{ untilStep 9223372036854775800 9223372036854775807 100 | len }}", errWork},
		"Numbers":      {"a list as YAML", "{{ toYaml (until 1000000) | len }}", errWork},
		"Nested":       {"a value as deep as may be, indented", "{{ $l := until 10000 }}{{ range until 400 }}{{ $l = list $l }}{{ end }}{{ toPrettyJson $l | len }}", errWork},
		"CircleKey":    {"a key that holds itself", "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $x := dict $d 1 }}", errDepth},
		"CircleOctal":  {"a number that holds itself", "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $x := toDecimal $d }}", errDepth},
		"CircleCert":   {"an address that holds itself", "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $x := genSelfSignedCert \"a\" (list $d) nil 1 }}", errDepth},
		"Circles": {"two values that hold themselves, compared",
			"{{ $a := dict }}{{ $b := dict }}{{ $_ := set $a \"a\" (dict \"a\" $a) }}{{ $_ := set $b \"a\" (dict \"a\" (dict \"a\" $b)) }}{{ deepEqual $a $b }}", errDepth},
		"Pattern":    {"a pattern that is large", "{{ regexMatch (repeat 40 \"(((x{10}){10}){10})\") (repeat 1000000 \"x\") }}", errWork},
		"Classes":    {"a pattern of large classes", "{{ regexMatch (repeat 10000 \"\\\\pL\") \"x\" }}", errWork},
		"Uniq":       {"each compared with each", "{{ uniq (until 100000) | len }}", errWork},
		"Trim":       {"each letter compared with each", "{{ trimAll (repeat 100000 \"é\") (repeat 100000 \"x\") | len }}", errWork},
		"Keys":       {"keys", "{{ range until 1000 }}{{ $x := genPrivateKey \"ed25519\" }}{{ end }}", errWork},
		"LongKey":    {"a key that is long", "{{ $x := genCAWithKey \"a\" 1 (repeat 100000 \"x\") }}", errWork},
		"TplActions": {"a text of many actions", "{{ tpl (repeat 100000 \"{{.}}\") 1 | len }}", errWork},
		"FileKept":   {"the chart's own files, kept", "{{ $l := list }}{{ range until 1000 }}{{ $l = append $l $.Files.AsSecrets }}{{ end }}", few},
		"FileTested": {"the chart's own files, for nothing", "{{ range until 1000 }}{{ if $.Files.AsSecrets }}{{ end }}{{ end }}", few},
		"Compared":   {"a text that is compared again and again", "{{ $x := repeat 1000000 \"x\" }}{{ range until 1000 }}{{ if eq $x $x }}{{ end }}{{ end }}", errWork},
		"TOMLPath":   {"a key of many parts", "{{ fromToml (printf \"%sa = 1\" (repeat 10000 \"a.\")) | len }}", errWork},
		"TOMLTable":  {"a table whose name has many parts", "{{ fromToml (printf \"[%sa]\" (repeat 10000 \"a.\")) | len }}", errWork},
		"TOMLNested": {"tables in tables", "{{ fromToml (printf \"a=%s1%s\" (repeat 10000 \"{a=\") (repeat 10000 \"}\")) | len }}", errWork},
		"TOMLNames":  {"names of tables, each in those of its own", "{{ $k := repeat 1000 \"k\" }}{{ $d := dict \"a\" 1 }}{{ range until 400 }}{{ $d = dict $k $d }}{{ end }}{{ toToml $d | len }}", errWork},
		"Glob":       {"a pattern of names of files", "{{ .Files.Glob (repeat 9000 \"?\") | len }}", errWork},
		"GlobText":   {"the same, as it is written", "{{ .Files.Glob \"" + strings.Repeat("?", 9000) + "\" | len }}", errWork},
		"GlobPiped":  {"the same, before a bar", "{{ repeat 9000 \"?\" | .Files.Glob | len }}", errWork},
		"File":       {"the chart's own files", "{{ range until 1000 }}{{ ($.Files.Glob \"*\").AsSecrets }}{{ end }}", few},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := one(tc.template)
			files["big"] = []byte(strings.Repeat("x", 128<<10))
			limit := work
			if tc.want == few {
				limit = work / 8 // the encoders of these files are slow
			}
			var err error
			allocated := rendertest.Allocated(func() { _, err = Renderer{work: limit}.Render(t.Context(), input(files)) })
			want := nf.Violations{{File: "c/templates/a.yaml", Line: 1, Message: tc.want.Error()}}
			if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != tc.want.kind {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if allocated > 32*uint64(limit) {
				t.Errorf("%s takes %d MiB in all", tc.reason, allocated>>20)
			}
		})
	}
}

// TestLargeFiles has what is too large to be read.
func TestLargeFiles(t *testing.T) {
	subchart := func(dependencies, values string) map[string]string {
		return map[string]string{
			"Chart.yaml":           "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n" + dependencies,
			"charts/s/Chart.yaml":  "apiVersion: v2\nname: s\nversion: 1.0.0\n",
			"charts/s/values.yaml": values,
		}
	}
	numbered := func(format string, times int) string {
		var b strings.Builder
		for i := range times {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   string
	}{
		"Alias":      {"a text that a file refers to again and again", map[string]string{"values.yaml": "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"}, "aliases expanded"},
		"Laughs":     {"references to references", map[string]string{"values.yaml": "a: &a " + strings.Repeat("x", 1000) + "\n" + "b: &b [" + strings.Repeat("*a,", 200) + "]\nc: [" + strings.Repeat("*b,", 200) + "]\n"}, "aliases expanded"},
		"Itself":     {"a list that holds itself", map[string]string{"values.yaml": "a: &a [*a]\n"}, "aliases expanded"},
		"Documents":  {"the same in a second document", map[string]string{"values.yaml": "c: d\n---\na: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"}, "aliases expanded"},
		"CRD":        {"the same in another file", map[string]string{"crds/a.yaml": "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"}, "aliases expanded"},
		"Names":      {"one subchart under many names", subchart(numbered("- {name: s, version: 1.0.0, repository: '', alias: a%d}\n", 2000), "l:\n"+strings.Repeat("- a\n", 10_000)), "a copy for each alias"},
		"Imports":    {"values that are imported again and again", subchart("- name: s\n  version: 1.0.0\n  import-values:\n"+numbered("  - {child: l, parent: p%d}\n", 2000), "l:\n"+numbered("  k%d: 1\n", 10_000)), "a copy for each alias"},
		"Conditions": {"conditions in conditions", map[string]string{"templates/a.yaml": strings.Repeat("{{if 1}}", 100_000) + strings.Repeat("{{end}}", 100_000)}, "nests more than 200"},
		"Brackets":   {"calls in calls", map[string]string{"templates/a.yaml": "{{ " + strings.Repeat("tpl (", 100_000) + strings.Repeat(")", 100_000) + " }}"}, "nests more than 1000"},
		"Path":       {"methods of methods", map[string]string{"templates/a.yaml": "{{ .Capabilities" + strings.Repeat(".Copy", 100_000) + " }}"}, "64 steps"},
		"Actions":    {"many actions", map[string]string{"templates/a.yaml": strings.Repeat("{{.}}", 200_000)}, "100000 actions"},
		"Words":      {"many words", map[string]string{"templates/a.yaml": "{{ list" + strings.Repeat(" .", 500_000) + " }}{{ . }}"}, "400000 operands"},
		"Templates":  {"many templates that are not", map[string]string{"templates/a.yaml": strings.Repeat("{{.}}", 90_000), "templates/b.yaml": strings.Repeat("{{.}}", 90_000)}, "parsed templates"},
		"Lines":      {"a file of empty lines, each of which Files.Lines makes an item", map[string]string{"big": strings.Repeat("\n", 9<<20)}, "6291456 lines and characters that are escaped"},
		"Escapes":    {"files of characters that Files.AsConfig escapes", map[string]string{"a": strings.Repeat("\x00\xff<>&", 1<<20), "b": strings.Repeat("\x01é", 4<<20-9)}, "6291456 lines and characters that are escaped"},
		"Numbers":    {"numbers with a million digits", map[string]string{"values.schema.json": `{"minimum": 1e999999}`}, "exponent of more than 3 digits"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := one(configMap)
			for path, content := range tc.files {
				files[path] = []byte(content)
			}
			var err error
			allocated := rendertest.Allocated(func() { _, err = Renderer{}.Check(t.Context(), files) })
			if nf.KindOf(err) != nf.Invalid || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if allocated > 256<<20 {
				t.Errorf("%s takes %d MiB in all", tc.reason, allocated>>20)
			}
			if _, again := (Renderer{}).Render(t.Context(), input(files)); fmt.Sprint(again) != strings.Replace(fmt.Sprint(err), "check", "render", 1) {
				t.Errorf("%s: checked %v, rendered %v", tc.reason, err, again)
			}
		})
	}
}

func TestLargeOutput(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		kind     nf.Kind
		want     string
	}{
		"Text":      {"what comes out is bounded", "{{ range until 50 }}{{ repeat 1000000 \"x\" }}{{ end }}", nf.TooLarge, "Chart.yaml: the templates generate more than 16777216 bytes of objects"},
		"Documents": {"so is the number of documents", strings.Repeat("---\n"+configMap, 6000), nf.Invalid, "5000 documents"},
		"Marks":     {"so is what a document can consist of", configMap + "data: [{{ repeat 1000000 \",\" }}]", nf.Invalid, "has more than 262144 separators"},
		"AllMarks":  {"so is what all of them can", strings.Repeat("---\n"+configMap+"data: {{ repeat 200000 \",\" | quote }}\n", 6), nf.Invalid, "1048576 separators"},
		"Values":    {"so is what all of them do", strings.Repeat("---\n"+configMap+"data: [{{ repeat 200000 \"a,\" }}]\n", 4), nf.Invalid, "524288 values"},
		"Deep":      {"nothing is nested too deep", configMap + "data: {{ repeat 600 \"[\" }}{{ repeat 600 \"]\" }}\n", nf.Invalid, "500 deep"},
		"Alias":     {"aliases are counted as what they stand for", configMap + "a: &a {{ repeat 100000 \"x\" }}\nb: [{{ repeat 10000 \"*a,\" }}]\n", nf.Invalid, "aliases expanded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Renderer{}.Render(t.Context(), input(one(tc.template)))
			if nf.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
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
	if err == nil || !strings.Contains(err.Error(), errComparisons.Error()) {
		t.Errorf("alternatives of alternatives: %v", err)
	}
	if _, err := (Renderer{}).Check(t.Context(), files); err != nil {
		t.Errorf("what is marked is looked for: %v", err)
	}
}
