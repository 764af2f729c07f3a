package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// mostMemory is what any package may take, as a multiple of what its archive
// may have.
func mostMemory() uint64 { return 8*uint64(render.DefaultLimits().Archive) + 16<<20 }

// times repeats a text as often as its limit allows and once more.
func times(limit int, text string) string { return strings.Repeat(text, limit+1) }

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostileManifests checks that a hostile file is refused with its line, and
// in little memory: 32 MiB, unless a case needs more to be seen through.
func TestHostileManifests(t *testing.T) {
	laughs := "a0: &a0 [lol]\n"
	for i := range 40 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	wide := "a: &a {" + numbered(2000, "k%d: v, ") + "}\n"
	long := strings.Repeat("x", 1<<17)
	const tooLarge, tooMany = "makes the package too large, its aliases written out", "brings the package to more than 5000 documents"
	const apart = "brings the package to more than 262144 commas, colons and what else sets values apart"
	deepYAML := func(open, end string) string {
		return "data: " + strings.Repeat(open, 9000) + strings.Repeat(end, 9000)
	}
	cases := map[string]struct {
		reason  string
		file    string // m.yaml when empty
		content string
		line    int
		message string
		most    uint64 // MiB; 0: 32
	}{
		"deep lists":       {"lists in lists", "", head + deepYAML("[", "]"), 1, "is nested more than 200 deep", 0},
		"deep mappings":    {"mappings in mappings", "", head + deepYAML("{a: ", "}"), 1, "is nested more than 200 deep", 0},
		"deep blocks":      {"lists in lists, without brackets", "", head + "data:\n" + strings.Repeat("- ", 9000) + "x", 1, "is nested more than 200 deep", 0},
		"deeper":           {"deeper than the parser goes", "", head + "data: " + strings.Repeat("[", 10_001), 4, "is not YAML: exceeded max depth of 10000", 0},
		"deep JSON":        {"lists in lists", "m.json", "\n" + strings.Repeat("[", 10_000), 2, "is not JSON: it is nested too deep", 0},
		"deep JSON keys":   {"mappings in mappings", "m.json", strings.Repeat(`{"a":`, 10_000), 1, "is not JSON: it is nested too deep", 0},
		"laughs":           {"aliases of aliases, 9 to the power of 40", "", head + laughs, 1, tooLarge, 0},
		"merged often":     {"one mapping merged often", "", head + wide + "b:\n" + strings.Repeat("- {<<: [*a, *a, *a, *a]}\n", 200), 1, tooLarge, 0},
		"self":             {"an anchor in itself", "", head + "data:\n  a: &a\n    b: [*a]", 6, `alias "a" is inside its own anchor`, 0},
		"self merged":      {"an anchor in itself", "", head + "data: &a\n  <<: *a", 5, `alias "a" is inside its own anchor`, 0},
		"no anchor":        {"an alias of nothing", "", head + "data: *a", 4, `is not YAML: unknown anchor 'a' referenced`, 0},
		"merge of text":    {"only mappings are merged", "", head + "data:\n  <<: text", 5, "<< needs a mapping or a list of mappings", 0},
		"merged twice":     {"mappings merged where the key is written again", "", head + wide + "b:\n" + strings.Repeat("  k: {<<: ["+strings.Repeat("*a,", 100)+"]}\n", 500), 1, tooLarge, 0},
		"key of an alias":  {"a long text as a key, again and again", "", head + "k: &k " + long + "\ndata:\n" + strings.Repeat("  *k : v\n", 1000), 7, `key "` + long[:maxQuote] + `…" is written twice, first at line 6`, 0},
		"scalar":           {"a scalar larger than a file may be", "", head + "data: " + strings.Repeat(long, 33), 0, "has more than 4194304 bytes", 0},
		"digits":           {"a number with more digits than anybody writes", "", head + "data: !!int 0x" + long, 4, `"0x` + long[:maxQuote-2] + `…" is not of the type !!int`, 0},
		"flow":             {"many short values", "", head + "data: [" + times(maxMarks, "a,"), 4, apart, 0},
		"flow mappings":    {"many short mappings", "", head + "data: [" + times(maxMarks, "{a},"), 4, apart, 0},
		"dashes":           {"many short lines", "", head + times(maxMarks, "-\n"), 262139, apart, 0},
		"break of lines":   {"lines that end as few do", "", head + times(maxMarks, "-\u2028"), 4, apart, 0},
		"pairs":            {"many short pairs", "", head + times(maxMarks/2, "?\n:\n"), 262139, apart, 0},
		"dollars":          {"many references", "", head + "data: " + times(maxMarks, "$a"), 4, apart, 0},
		"JSON values":      {"many short values", "m.json", "[" + times(maxMarks, "[],"), 1, apart, 0},
		"documents":        {"a million documents", "", times(1_000_000, "---\n"), 262141, apart, 0},
		"some documents":   {"five thousand documents beside the metadata", "", times(maxDocuments, "--- a\n"), maxDocuments, tooMany, 0},
		"ended documents":  {"and those that have an end", "", times(maxDocuments, "---\na\n...\n"), 3*(maxDocuments-1) + 1, tooMany, 0},
		"empty documents":  {"and those without anything", "", times(maxDocuments, "---\n"), maxDocuments, tooMany, 0},
		"JSON documents":   {"a million documents", "m.json", times(1_000_000, "1\n"), maxDocuments, tooMany, 0},
		"listed":           {"as many as items of a list", "", "kind: List\nitems: [" + times(maxDocuments, "{},") + "{}]", 1, tooMany, 0},
		"UTF-8":            {"what is no text", "", head + "data: \"a\xffb\"", 4, "is not UTF-8", 0},
		"UTF-16":           {"what is text for others, who see other values", "", "\xff\xfea\x00:\x00 \x00b\x00", 1, "is not UTF-8", 0},
		"overlong":         {"a slash that is not written as one", "", head + "data: \xc0\xaf", 4, "is not UTF-8", 0},
		"surrogate":        {"half a character", "", head + "data: \xed\xa0\x80", 4, "is not UTF-8", 0},
		"NUL":              {"an end that is none", "", head + "data: a\x00b", 4, "is not YAML: control characters are not allowed", 0},
		"mark":             {"a byte order mark before a key makes it another key", "", head + "---\n\ufeffapiVersion: v1\nkind: Secret\nmetadata: {name: a}", 5, "is missing", 0},
		"tab":              {"a tab is no indentation", "", head + "data:\n\ta: b", 5, "is not YAML: found character that cannot start any token (the line is indented with a tab; use spaces)", 0},
		"twice":            {"a key that occurs twice", "", head + "data:\n  a: b\n  \"a\": c", 6, `key "a" is written twice, first at line 5`, 0},
		"twice as numbers": {"a key that is the same for Kubernetes", "", head + "data: {1: a,\n 0x1: b}", 5, `key "1" is written twice, first at line 4`, 0},
		"twice in JSON":    {"a key that occurs twice, however it is written", "m.json", "{\"a\": 1,\n\"\\u0061\": 2}", 2, `key "a" is written twice, first at line 1`, 0},
		"large number":     {"a number that no JSON reader can hold", "m.json", "{\"a\":\n1e999}", 2, "is not JSON: a number is out of range", 0},
		"half":             {"half a character would become another one", "m.json", "{\"a\":\n\"\\ud83d\"}", 2, "is not JSON: a string contains half of a surrogate pair, which is not a character", 0},
		"other half":       {"be it a key", "m.json", "{\"\\uDE00\": 1}", 1, "is not JSON: a string contains half of a surrogate pair, which is not a character", 0},
		"half in YAML":     {"in YAML, too", "", head + "data: \"\\ud83d\"", 4, "is not YAML: found invalid Unicode character escape code", 0},
		"JSON mark":        {"a byte order mark is not JSON", "m.json", "\ufeff{}", 1, "is not JSON: column 1: '\\ufeff' cannot be here", 0},
		"JSON tail":        {"text behind a document", "m.json", "{}\nx", 2, "is not JSON: column 1: 'x' cannot be here", 0},
		"object tag":       {"YAML of a language", "", head + "data: !!python/object/apply:os.system [ls]", 4, `tag "!!python/object/apply:os.system" is not supported`, 0},
		"binary tag":       {"a type that JSON has not", "", head + "data: !!binary aGk=", 4, `tag "!!binary" is not supported`, 0},
		"terminal":         {"what would command a terminal", "", head + "data:\n  \"\\e[2J\": a\n  \"\\e[2J\": b", 6, "key \"\\x1b[2J\" is written twice, first at line 5", 0},
		"path":             {"a name that would be another path", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ../../nodes/n", 4, objectName, 0},
		"dots":             {"a name that would be another path", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ..", 4, objectName, 0},
		"escaped path":     {"a name that would be another path", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a%2Fb", 4, objectName, 0},
		"broken name":      {"a name of two lines", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: \"a\\nb\"", 4, objectName, 0},
		"long name":        {"a name that no cluster takes", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + long[:254], 4, objectName, 0},
		"namespace":        {"a namespace that would be another path", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: kube-system/../x", 5, "is not a valid namespace name", 0},
		"kind":             {"a kind that would be another path", "", "apiVersion: v1\nkind: ../x\nmetadata:\n  name: a", 2, "is not a valid kind", 0},
		"version":          {"a version that would be another path", "", "apiVersion: a/b/c\nkind: Secret\nmetadata:\n  name: a", 1, "is not of the form version or group/version", 0},
		"half version":     {"a group without a version", "", "apiVersion: apps/\nkind: Secret\nmetadata:\n  name: a", 1, "is not of the form version or group/version", 0},
		"made by us":       {"a namespace that would be removed as one of the service's", "", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels:\n    k8splugin.io/created-by: k8splugin", 6, "is set by the service", 0},
		"left by us":       {"an object that would be taken for one that was left", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  annotations: {k8splugin.io/orphaned-from: x}", 5, "is set by the service", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "m.yaml"
			}
			files := pkg(tc.content, file)
			var err error
			used := rendertest.Allocated(func() { _, err = Renderer{}.Check(t.Context(), files) })
			found := nf.ViolationsOf(err)
			if len(found) == 0 || nf.KindOf(err) != nf.Invalid {
				t.Fatalf("%s: %v error: %v", tc.reason, nf.KindOf(err), err)
			}
			found[0].Field = ""
			if diff := cmp.Diff(nf.Violation{File: file, Line: tc.line, Message: tc.message}, found[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if most := max(tc.most, 32) << 20; used > most {
				t.Errorf("%s: refusing it takes %d KiB", tc.reason, used>>10)
			}
			if size := len(err.Error()); size > 32<<10 {
				t.Errorf("%s: the error is %d bytes long", tc.reason, size)
			}
		})
	}
}

const objectName = "is not a valid object name: it must have 1 to 253 printable characters without / and %, and must not be . or .."

func TestHostileMetadata(t *testing.T) {
	long := strings.Repeat("x", 2000)
	cases := map[string]struct {
		reason   string
		metadata string
		want     nf.Violation
	}{
		"size":         {"metadata is recorded with the package", "name: a\n" + strings.Repeat("#", maxMetadata), nf.Violation{Message: "has more than 262144 bytes"}},
		"description":  {"so is what it says of itself", "description: " + long, nf.Violation{Line: 1, Field: "description", Message: "is longer than 1024 bytes"}},
		"terminal":     {"and people read it", "name: \"\\e[2J\"", nf.Violation{Line: 1, Field: "name", Message: "contains control characters"}},
		"entries":      {"each entry is a stage of its own", "resources:\n" + times(maxEntries, "- job: []\n"), nf.Violation{Line: maxEntries + 2, Field: "resources", Message: "has more than 1000 entries"}},
		"kinds":        {"be they in a map", "resources:\n" + numbered(maxEntries+1, "  k%d: []\n"), nf.Violation{Line: maxEntries + 2, Field: "resources", Message: "has more than 1000 entries"}},
		"variables":    {"each variable is checked with each request", "resources: {job: x.yaml}\nvariables:\n" + numbered(maxVars+1, "  v%d:\n"), nf.Violation{Line: maxVars + 3, Field: "variables", Message: "are more than 1000"}},
		"variable":     {"a variable has a name", "resources: {job: x.yaml}\nvariables:\n  " + long[:129] + ":", nf.Violation{Line: 3, Field: "variables", Message: "a name must be 128 letters, digits and underscores at most, and not begin with a digit"}},
		"entry":        {"operations call an entry by its name", "resources:\n- name: " + long[:129] + "\n  job: x.yaml", nf.Violation{Line: 2, Field: "name", Message: "must be 1 to 128 printable characters"}},
		"entry's line": {"in one line", "resources:\n- name: \"a\\nb\"\n  job: x.yaml", nf.Violation{Line: 2, Field: "name", Message: "must be 1 to 128 printable characters"}},
		"kind":         {"a misspelt option is no kind", "resources:\n- depends-on: x\n  job: x.yaml", nf.Violation{Line: 2, Message: `unknown key "depends-on" (did you mean dependsOn?); allowed: name, dependsOn, timeout, wait, recreate, a kind`}},
		"twice":        {"which of the two is meant?", "resources:\n- job: x.yaml\n  timeout: 1s\n  timeout: 2s", nf.Violation{Line: 4, Message: `key "timeout" is written twice, first at line 3`}},
		"outside":      {"files are those of the package", "resources:\n- job: ../../etc/passwd", nf.Violation{Line: 2, Message: `file "../../etc/passwd" is not in the package`}},
		"absolute":     {"files are those of the package", "resources:\n- job: /etc/passwd", nf.Violation{Line: 2, Message: `file "/etc/passwd" is not in the package`}},
		"itself":       {"the metadata is no manifest", "resources:\n- job: ./metadata.yaml", nf.Violation{Line: 2, Message: `file "./metadata.yaml" is named twice, first at line 1`}},
		"documents":    {"there is one", "name: a\n---\nname: b", nf.Violation{Message: "must be one mapping"}},
		"timeout":      {"no operation takes longer than a day", "resources:\n- job: x.yaml\n  timeout: 24h1s", nf.Violation{Line: 3, Field: "timeout", Message: "must be a duration above zero, such as 90s or 5m, and at most 24h"}},
		"overflow":     {"no number is too large to be refused", "resources:\n- job: x.yaml\n  timeout: 9223372036854775808ns", nf.Violation{Line: 3, Field: "timeout", Message: "must be a duration above zero, such as 90s or 5m, and at most 24h"}},
		"negative":     {"time goes on", "resources:\n- job: x.yaml\n  timeout: -5m", nf.Violation{Line: 3, Field: "timeout", Message: "must be a duration above zero, such as 90s or 5m, and at most 24h"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			used := rendertest.Allocated(func() { _, err = Renderer{}.Check(t.Context(), render.Files{"metadata.yaml": []byte(tc.metadata)}) })
			found := nf.ViolationsOf(err)
			tc.want.File = "metadata.yaml"
			if len(found) == 0 || nf.KindOf(err) != nf.Invalid {
				t.Fatalf("%s: %v error: %v", tc.reason, nf.KindOf(err), err)
			}
			if diff := cmp.Diff(tc.want, found[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if used > 16<<20 {
				t.Errorf("%s: refusing it takes %d KiB", tc.reason, used>>10)
			}
		})
	}
}

// TestLargestPackages checks that what is accepted takes a bounded amount of
// memory, too: each package is as large as one of its kind may be.
func TestLargestPackages(t *testing.T) {
	apart := func(unit string, marks int) string { return strings.Repeat(unit, maxMarks/marks-100) }
	cases := map[string]struct{ reason, content string }{
		"pairs":      {"lists of pairs", "data: [" + apart("a: b,", 2) + "]"},
		"references": {"a text of references", "data: " + apart("$a", 1)},
		"documents":  {"documents", strings.Repeat("---\n", maxDocuments-2)},
		"aliases":    {"aliases of a long text", "data: [&a " + strings.Repeat("x", 1<<16) + strings.Repeat(", *a", 470) + "]"},
		"text":       {"one text", "data: |\n" + strings.Repeat("  a: [b, c]\n", maxMarks/5)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := pkg(head + tc.content)
			var err error
			if used := rendertest.Allocated(func() { _, err = Renderer{}.Check(t.Context(), files) }); err != nil || used > mostMemory()/2 {
				t.Errorf("%s take %d MiB: %v", tc.reason, used>>20, err)
			}
		})
	}
}

// TestRepeatedReferences uses a large value far too often. Nothing may be
// copied that has no place in the result: it would be copied for hours.
func TestRepeatedReferences(t *testing.T) {
	object := map[string]any{}
	for i := range 3000 {
		object[fmt.Sprint("key", i)] = float64(i)
	}
	cases := map[string]struct{ reason, content, message string }{
		"whole":  {"as a value", strings.Repeat("- $object\n", 5000), "brings the values with variables to more than 67108864 bytes"},
		"inside": {"where it cannot be", strings.Repeat("- a $object\n", 5000), `variable "object" is an object, which cannot be part of a text`},
		"field":  {"for one of its fields", strings.Repeat("- a ${object.key1} $object\n", 2500), `variable "object" is an object, which cannot be part of a text`},
		"alias":  {"through an alias", "- &a $object\n" + strings.Repeat("- *a\n", 5000), "brings the values with variables to more than 67108864 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := render.Input{Files: pkg(head + "data:\n" + tc.content), Inputs: nf.Inputs{Parameters: map[string]any{"object": object}}}
			var err error
			used := rendertest.Allocated(func() { _, err = Renderer{}.Render(t.Context(), in) })
			if found := nf.ViolationsOf(err); len(found) == 0 || found[0].Message != tc.message || found[0].Line == 0 {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if used > mostMemory() {
				t.Errorf("%s: it takes %d MiB", tc.reason, used>>20)
			}
		})
	}
}

func TestManyUnnamedFiles(t *testing.T) {
	files := pkg(head)
	for i := range 4000 {
		files[fmt.Sprintf("%s/%d", strings.Repeat("n", 200), i)] = nil
	}
	summary, err := Renderer{}.Check(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(summary.Warnings); n != maxShown+1 || summary.Warnings[maxShown] != "and 3950 more files that no entry names" {
		t.Errorf("a record holds %d warnings, the last is %q", n, summary.Warnings[n-1])
	}
}

func TestManyUndeclaredParameters(t *testing.T) {
	parameters := map[string]any{}
	for i := range 1000 {
		parameters[fmt.Sprintf("p%04d%s", i, strings.Repeat("x", 1000))] = 1
	}
	files := pkg(head)
	files["metadata.yaml"] = append(files["metadata.yaml"], "\nvariables:"...)
	out, err := Renderer{}.Render(t.Context(), render.Input{Files: files, Inputs: nf.Inputs{Parameters: parameters}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.Warnings); n != maxShown+1 || len(out.Warnings[0]) > 2*maxQuote || out.Warnings[maxShown] != "and 950 more parameters that change nothing" {
		t.Errorf("a record holds %d warnings, the last is %q", n, out.Warnings[n-1])
	}
}

// TestSecretNames checks that what sounds secret is masked wherever it was
// given, unless the package says that it is none.
func TestSecretNames(t *testing.T) {
	files := pkg(head)
	files["metadata.yaml"] = append(files["metadata.yaml"], "\nvariables: {token_count: {type: integer}, pin: {sensitive: true}}"...)
	in := render.Input{Files: files, Builtins: map[string]string{"vnf_name": "x"}, Inputs: nf.Inputs{
		Parameters: map[string]any{"token_count": 1, "db": map[string]any{"users": []any{map[string]any{"API-Key": "k", "token_count": 2}}}, "port": 1},
		OOF:        []map[string]any{{"site_password": "p", "site": "s"}},
		Network:    map[string]any{"vpn": map[string]any{"passphrase": "p"}, "private_key": nil},
	}}
	out, err := Renderer{}.Render(t.Context(), in)
	if diff := cmp.Diff([]string{"API-Key", "passphrase", "pin", "site_password"}, out.Sensitive); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestSecretDefaults checks that a secret inside of a default is not shown with
// the declaration.
func TestSecretDefaults(t *testing.T) {
	files := pkg(head + "data: $db\n")
	files["metadata.yaml"] = append(files["metadata.yaml"], "\nvariables: {db: {default: {user: a, password: hunter2, token_count: 1}}, token_count: {type: integer}}"...)
	summary, err := Renderer{}.Check(t.Context(), files)
	want := []nf.Variable{
		{Name: "db", Type: "object", Default: map[string]any{"user": "a", "password": nf.Masked, "token_count": int64(1)}}, {Name: "token_count", Type: "integer"},
	}
	if diff := cmp.Diff(want, summary.Variables); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	out, err := Renderer{}.Render(t.Context(), render.Input{Files: files})
	if err != nil || out.Groups[0].Objects[0].Object["data"].(map[string]any)["password"] != "hunter2" {
		t.Errorf("the default is rendered as it is: %v, %v", out, err)
	}
	if diff := cmp.Diff([]string{"hunter2"}, out.Secrets); diff != "" {
		t.Errorf("and is masked where the object is shown (-want +got):\n%s", diff)
	}
}
