package manifest

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// material returns the files of all examples whose names the pattern matches.
func material(f *testing.F, pattern string) [][]byte {
	f.Helper()
	examples, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(examples) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	var found [][]byte
	for _, example := range examples {
		archive, err := txtar.ParseFile(example)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if matched, _ := filepath.Match(pattern, file.Name); matched && !strings.HasPrefix(file.Name, "want.") {
				found = append(found, file.Data)
			}
		}
	}
	return found
}

// checkViolations holds every refusal to its form.
func checkViolations(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if nf.KindOf(err) != nf.Invalid || nf.ViolationsOf(err) == nil {
		t.Errorf("error of kind %v: %v", nf.KindOf(err), err)
	}
	if size := len(err.Error()); size > 64<<10 {
		t.Errorf("the error is %d bytes long", size)
	}
	for _, v := range nf.ViolationsOf(err) {
		if v.Message == "" || v.Line < 0 || v.Line > 0 && v.File == "" || strings.ContainsAny(v.String(), "\x1b\n\r\x00") {
			t.Errorf("a violation says %q", v)
		}
	}
}

// FuzzMetadata holds what the rest of the package relies on when it is given a
// metadata.yaml that was read without a complaint.
func FuzzMetadata(f *testing.F) {
	for _, content := range material(f, "metadata.y*ml") {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r := &report{}
		rd := &reader{report: r, uses: map[string]place{}, verbatim: true}
		m := readMetadata(render.Files{"metadata.yaml": content}, rd)
		if !r.ok() {
			checkViolations(t, r.err())
			return
		}
		if m.at.line == 0 || len(m.groups) == 0 || len(m.groups) > maxEntries || len(m.variables) > maxVars {
			t.Errorf("%d groups and %d variables, declared at line %d", len(m.groups), len(m.variables), m.at.line)
		}
		names := map[string]bool{}
		for _, g := range m.groups {
			if names[g.name] || !isWord(g.name) {
				t.Errorf("group %q occurs twice, or has no name", g.name)
			}
			names[g.name] = true
			if g.timeout < 0 || g.timeout > nf.MaxTimeout || g.recreate != "" && !g.recreate.Valid() {
				t.Errorf("group %q has the timeout %s and may be recreated %q", g.name, g.timeout, g.recreate)
			}
			if g.wait != "" && g.wait != render.WaitReady && g.wait != render.WaitApplied {
				t.Errorf("group %q waits until it is %q", g.name, g.wait)
			}
			for _, file := range g.files {
				if file.path == "" || file.at.line == 0 || file.kind != "" && !isKind(file.kind) {
					t.Errorf("group %q lists %+v", g.name, file)
				}
			}
		}
		for _, g := range m.groups {
			for _, name := range g.after {
				if !names[name] {
					t.Errorf("group %q waits for %q, which does not exist", g.name, name)
				}
			}
		}
		for i, v := range m.variables {
			same := func(o nf.Variable) bool { return o.Name == v.Name }
			if !isName(v.Name) || !slices.Contains(typeNames, v.Type) || v.Default != nil && !hasType(v.Default, v.Type) ||
				slices.ContainsFunc(m.variables[:i], same) {
				t.Errorf("variable %+v", v)
			}
		}
		for _, text := range []string{m.name, m.version, m.description} {
			if nf.CheckText("", text) != nil || !utf8.ValidString(text) {
				t.Errorf("the package says of itself %q", text)
			}
		}
	})
}

// FuzzManifest compares files of one document with what Kubernetes' own tools
// make of them: a reviewer with kubectl must see the objects that we apply.
func FuzzManifest(f *testing.F) {
	for _, content := range material(f, "*.yaml") {
		f.Add(content)
	}
	f.Add([]byte("a: &a {b: 1, c: [0x1f, 010, 1e3, yes, ~, 2001-12-14]}\nd: {<<: *a, b: !!str 1}\n? e\n: |-\n  f\n"))
	f.Add([]byte("a: b\n---\n- c\n...\n---\nd: e\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := &report{}
		rd := &reader{report: r, uses: map[string]place{}}
		documents := rd.read("m.yaml", content)
		if !r.ok() {
			checkViolations(t, r.err())
			return
		}
		values := 0
		for _, d := range documents {
			values += count(d, map[*yaml.Node]bool{})
		}
		if found, _ := countSeparators(content, maxMarks); values > 3*(found+rd.documents) {
			t.Errorf("%d values, but only %d marks", values, found)
		}
		// The parser does not report the tag !, which makes strings.
		if rd.documents != 1 || len(documents) != 1 || bytes.Contains(content, []byte("!")) {
			return
		}
		want, err := kubectl(string(content))
		if diff := cmp.Diff(want, literal(documents[0])); diff != "" || err != nil {
			t.Errorf("kubectl's error %v (-kubectl +ours):\n%s", err, diff)
		}
	})
}

// count returns how many values a document has, each alias for nothing.
func count(n *yaml.Node, seen map[*yaml.Node]bool) int {
	if seen[n] {
		return 0
	}
	seen[n] = true
	values := 1
	for _, child := range n.Content {
		values += count(child, seen)
	}
	return values
}

// FuzzExpand compares the replacement of variables in a text with one that is
// written in another way, for texts without braces inside of braces.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{
		"a$b-$c", "${a}${b.c}", "$$a ${none:-x} $none", "$(A) $ $1", "${b.c.0:-d}", "kubectl ${x%y} $a.b", "${b.d.0}$a", "$vnf_id", "${d:-}",
	} {
		f.Add(seed, "value", int64(3))
	}
	f.Add("$a", "$b ${b.c} $$", int64(-1))
	reference := regexp.MustCompile(`\$\$|\$([A-Za-z_][A-Za-z0-9_]*)|\$\{([^{}]*)\}`)
	inner := regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Za-z0-9_-]+)*)(:-[^$]*)?$`)
	f.Fuzz(func(t *testing.T, text, a string, b int64) {
		if strings.ContainsAny(regexp.MustCompile(`\$\{[^{}]*\}`).ReplaceAllString(text, ""), "{}") || !utf8.ValidString(text+a) {
			return
		}
		values := map[string]any{"a": a, "b": map[string]any{"c": b, "d": []any{true}}}
		known := map[string]string{"a": a, "b.c": textOf(b), "b.d.0": "true"}
		plainText := true
		want := reference.ReplaceAllStringFunc(text, func(found string) string {
			m := reference.FindStringSubmatch(found)
			if found == "$$" {
				return "$"
			}
			path, fallback := m[1], (*string)(nil)
			if m[1] == "" {
				i := inner.FindStringSubmatch(m[2])
				if i == nil {
					return strings.ReplaceAll(found, "$$", "$")
				}
				if path = i[1] + i[2]; i[3] != "" {
					rest := i[3][2:]
					fallback = &rest
				}
			}
			value, is := known[path]
			if path == "b" || path == "b.d" {
				plainText = false // no text can hold them
			}
			switch {
			case is:
				return value
			case fallback != nil:
				return *fallback
			}
			return found
		})
		if !plainText {
			return
		}
		r := &report{}
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: text, Line: 1}
		s := newScope(&parsedPackage{}, render.Input{Inputs: nf.Inputs{Parameters: values}}, r)
		e := newExpander(s, r)
		got := e.value(n)
		if diff := cmp.Diff(any(want), got); diff != "" || !r.ok() {
			t.Errorf("%q with $a=%q, ${b.c}=%d: %v (-want +got):\n%s", text, a, b, r.found, diff)
		}
	})
}

// FuzzCheck holds what the engine relies on: what was checked without values is
// rendered or refused in the same form, the same each time, and can be kept.
func FuzzCheck(f *testing.F) {
	f.Add([]byte("resources: [{manifest: m.yaml}]"), []byte(head+"data: {a: $b, *c : d}"), false)
	f.Add([]byte("resources: {crd: m.json}\nvariables: {b: {default: 1}}"), []byte(`{"kind": "${b:-x}", "a": [1.5, null]}`), true)
	f.Add([]byte("resources: [{manifest: m.yaml}]"), []byte("kind: List\nitems: [&a {<<: *a}]"), false)
	f.Add([]byte("resources: [{manifest: m.yaml, recreate: ifNeeded}]"), []byte(head+"annotations: {k8splugin.io/recreate: $a}"), false)
	for _, content := range append(material(f, "*.yaml"), material(f, "*.json")...) {
		f.Add([]byte("resources: [{manifest: m.yaml, timeout: 5m}]"), content, bytes.HasPrefix(content, []byte("{")))
	}
	f.Fuzz(func(t *testing.T, metadata, content []byte, asJSON bool) {
		files := render.Files{"metadata.yaml": metadata, "m.yaml": content}
		if asJSON {
			files["m.json"] = content
		}
		_, err := Renderer{}.Check(t.Context(), files)
		checkViolations(t, err)
		in := render.Input{Files: files, Inputs: nf.Inputs{Parameters: map[string]any{"a": "x", "b": 3, "c": []any{"y"}}}}
		out, err := Renderer{}.Render(t.Context(), in)
		checkViolations(t, err)
		if err != nil {
			return
		}
		again, err := Renderer{}.Render(t.Context(), in)
		sameLines := cmp.Comparer(func(a, b render.Lines) bool {
			return (a == nil) == (b == nil) && (a == nil || a("metadata.name") == b("metadata.name"))
		})
		if diff := cmp.Diff(out, again, sameLines); diff != "" || err != nil {
			t.Errorf("rendered again: %v (-first +second):\n%s", err, diff)
		}
		plan, err := render.Order(out.Groups, "ns")
		checkViolations(t, err)
		if err != nil {
			return
		}
		encoded, err := render.Encode(plan)
		if err != nil {
			t.Fatalf("what was rendered cannot be kept: %v", err)
		}
		decoded, err := render.Decode(encoded)
		if diff := cmp.Diff(plan, decoded, cmpopts.IgnoreTypes(render.Lines(nil))); diff != "" || err != nil {
			t.Errorf("what was kept is another plan: %v (-plan +decoded):\n%s", err, diff)
		}
	})
}
