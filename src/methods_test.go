package src_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// mostMethods is the maximum number of methods of a type, including unexported
// ones and those of embedded types of its package.
const mostMethods = 40

// manyMethods are the types that have more methods, with their number, which may
// only become smaller.
var manyMethods = map[string]int{}

func TestMethods(t *testing.T) {
	for _, finding := range checkMethods(countMethods(parseAll(t, os.DirFS("."))), manyMethods) {
		t.Error(finding)
	}
}

// TestCheckMethods proves that the check finds each kind of violation.
func TestCheckMethods(t *testing.T) {
	many := func(receiver string, from, to int) string {
		var out strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&out, "func (x %s) m%d() {}\n", receiver, i)
		}
		return out.String()
	}
	const limit = mostMethods
	cases := map[string]struct {
		reason string
		source string
		listed map[string]int
		want   string // in a finding; empty: none
	}{
		"AtLimit":      {"the limit itself is allowed", many("t", 0, limit), nil, ""},
		"OverLimit":    {"one more is not", many("t", 0, limit+1), nil, "nf.t has 41 methods, more than 40"},
		"Receivers":    {"pointers, values and type parameters are one type", many("*t", 0, 20) + many("t", 20, 30) + many("*t[K]", 30, 41), nil, "nf.t has 41 methods"},
		"TwoTypes":     {"each type is counted alone", many("t", 0, limit) + many("u", 0, limit), nil, ""},
		"Embedded":     {"embedding does not hide methods", "type t struct{ *u }\n" + many("t", 0, 30) + many("u", 30, 41), nil, "nf.t has 41 methods"},
		"Overridden":   {"a method that hides an embedded one counts once", "type t struct{ u }\n" + many("t", 0, 30) + many("u", 0, 40), nil, ""},
		"OnlyEmbedded": {"a type may have only the methods of others", "type t struct{ u; v }\n" + many("u", 0, 30) + many("v", 30, 41), nil, "nf.t has 41 methods"},
		"Circle":       {"types that embed each other are counted once", "type t struct{ *u }\ntype u struct{ *t }\n" + many("t", 0, 40), nil, ""},
		"Field":        {"a field is not embedded", "type t struct{ u *u }\n" + many("t", 0, 40) + many("u", 40, 80), nil, ""},
		"Listed":       {"an exception is allowed", many("t", 0, limit+2), map[string]int{"nf.t": 42}, ""},
		"Grown":        {"an exception does not grow", many("t", 0, limit+3), map[string]int{"nf.t": 42}, "nf.t has 43 methods, and the exception allows 42"},
		"Shrunk":       {"a smaller number becomes the exception", many("t", 0, limit+1), map[string]int{"nf.t": 42}, "nf.t has 41 methods now: lower its exception"},
		"Unnecessary":  {"an exception that is not needed is removed", many("t", 0, limit), map[string]int{"nf.t": 41}, "nf.t has 40 methods: remove its exception"},
		"Gone":         {"an exception for a type that is gone is removed", "", map[string]int{"nf.t": 41}, "nf.t has 0 methods: remove its exception"},
		"NotAFunction": {"functions are not methods", strings.ReplaceAll(many("t", 0, limit+1), "(x t) ", ""), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{"nf/a.go": &fstest.MapFile{Data: []byte("package nf\n" + tc.source)}}
			got := checkMethods(countMethods(parseAll(t, tree)), tc.listed)
			if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
				t.Errorf("%s: found %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// checkMethods returns the types with too many methods, and the exceptions that
// are wrong.
func checkMethods(counts, listed map[string]int) []string {
	var findings []string
	for name, n := range counts {
		if most, ok := listed[name]; ok && n > most {
			findings = append(findings, fmt.Sprintf("%s has %d methods, and the exception allows %d: split the type", name, n, most))
		} else if !ok && n > mostMethods {
			findings = append(findings, fmt.Sprintf("%s has %d methods, more than %d: split the type by responsibility", name, n, mostMethods))
		}
	}
	for name, most := range listed {
		switch n := counts[name]; {
		case n <= mostMethods:
			findings = append(findings, fmt.Sprintf("%s has %d methods: remove its exception", name, n))
		case n < most:
			findings = append(findings, fmt.Sprintf("%s has %d methods now: lower its exception from %d", name, n, most))
		}
	}
	return slices.Sorted(slices.Values(findings))
}

// countMethods returns the number of methods of each type, by folder and name.
// Tests do not count.
func countMethods(files map[string]*ast.File) map[string]int {
	m := methods{own: map[string][]string{}, embedded: map[string][]string{}}
	for name, file := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			m.declare(path.Dir(name)+".", d)
		}
	}
	counts := map[string]int{}
	for _, all := range []map[string][]string{m.own, m.embedded} {
		for key := range all {
			found := map[string]bool{}
			m.collect(key, map[string]bool{}, found)
			counts[key] = len(found)
		}
	}
	return counts
}

// methods are the methods of types, and the types that these embed, by folder
// and name.
type methods struct{ own, embedded map[string][]string }

// declare adds one declaration of a package.
func (m methods) declare(prefix string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			key := prefix + nameOf(d.Recv.List[0].Type)
			m.own[key] = append(m.own[key], d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok {
				for _, name := range embeddedIn(s) {
					m.embedded[prefix+s.Name.Name] = append(m.embedded[prefix+s.Name.Name], prefix+name)
				}
			}
		}
	}
}

// collect adds the names of a type's methods to found.
func (m methods) collect(key string, seen, found map[string]bool) {
	if seen[key] {
		return
	}
	seen[key] = true
	for _, name := range m.own[key] {
		found[name] = true
	}
	for _, name := range m.embedded[key] {
		m.collect(name, seen, found)
	}
}

// embeddedIn returns the types of the same package that a struct embeds.
func embeddedIn(s *ast.TypeSpec) []string {
	fields, ok := s.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var out []string
	for _, f := range fields.Fields.List {
		if name := nameOf(f.Type); len(f.Names) == 0 && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// nameOf returns the name of a type of the same package, without its pointer
// and type parameters; "" for another type.
func nameOf(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return nameOf(t.X)
	case *ast.IndexExpr:
		return nameOf(t.X)
	case *ast.IndexListExpr:
		return nameOf(t.X)
	}
	return ""
}
