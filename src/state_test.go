package src_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestNoState holds every package to the rule on package variables: sentinel
// errors, embedded files and constant tables only. A variable is constant when
// it gets its value where it is declared and nothing changes it; state has an
// owner that is passed.
func TestNoState(t *testing.T) {
	for _, finding := range checkState(t, os.DirFS(".")) {
		t.Error(finding)
	}
}

func TestCheckState(t *testing.T) {
	cases := map[string]struct {
		reason string
		source string
		want   string // in a finding; empty: nothing is found
	}{
		"Sentinel":  {"a sentinel error is a constant", `var errGone = errors.New("gone"); func f() error { return errGone }`, ""},
		"Table":     {"a table that is only read is a constant", `var kinds = map[string]int{"a": 1}; func f() int { return kinds["a"] }`, ""},
		"Embed":     {"an embedded file has its value from the compiler", "//go:embed x\nvar page []byte", ""},
		"Contract":  {"a contract is checked by a variable without a name", `var _ error = (*t)(nil)`, ""},
		"Unset":     {"a variable without a value waits for one", `var cache map[string]int`, "a.go declares cache without a value"},
		"Lock":      {"a lock guards state", `var mu sync.Mutex`, "mu"},
		"Group":     {"each of a group is looked at", "var (\n\ta = 1\n\tb int\n)", "declares b"},
		"Assigned":  {"what is assigned changes", `var level = 1; func f() { level = 2 }`, "a.go changes level"},
		"Counted":   {"what is counted changes", `var calls = 0; func f() { calls++ }`, "changes calls"},
		"Element":   {"a map is changed by its elements", `var m = map[int]int{}; func f() { m[1] = 2 }`, "changes m"},
		"Field":     {"a struct is changed by its fields", `var s = t{}; func f() { s.a.b = 2 }`, "changes s"},
		"Deleted":   {"what is taken out of a map changes it", `var m = map[int]int{}; func f() { delete(m, 1) }`, "changes m"},
		"Shared":    {"whoever has the address may change it", `var n = 1; func f() *int { return &n }`, "changes n"},
		"Atomic":    {"an atomic value is there to change", `var n = atomic.Int64{}`, "n holds sync"},
		"Pool":      {"a pool is state, whatever it holds", `var pool = &sync.Pool{}`, "pool holds sync"},
		"Local":     {"a function's own variable is its own", `func f() { n := 1; n = 2; _ = n }`, ""},
		"OtherName": {"a field of that name is another's", `var n = 1; func f(t *t) { t.n = n }`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			findings := checkState(t, houseOf(tc.source))
			if !found(findings, tc.want) {
				t.Errorf("%s: found %q, want %q", tc.reason, findings, tc.want)
			}
		})
	}
}

// houseOf returns a tree of one package with one file.
func houseOf(source string) fs.FS {
	return fstest.MapFS{"nf/a.go": {Data: []byte("package nf\n" + source)}}
}

// found reports whether a text is in one of the findings, or, if it is empty, that
// there is no finding.
func found(findings []string, want string) bool {
	if want == "" {
		return len(findings) == 0
	}
	return strings.Contains(strings.Join(findings, "\n"), want)
}

func TestCheckStateAcrossFiles(t *testing.T) {
	house := fstest.MapFS{
		"nf/a.go":    {Data: []byte("package nf; var level = 1")},
		"nf/b.go":    {Data: []byte("package nf; func f() { level = 2 }")},
		"store/b.go": {Data: []byte("package store; func f(level int) { level = 2 }")},
	}
	got := checkState(t, house)
	if len(got) != 1 || !strings.HasPrefix(got[0], "nf/b.go changes level") {
		t.Errorf("found %q, want that nf/b.go changes level, and nothing in store", got)
	}
}

// checkState returns the package variables of a tree that are state.
func checkState(t *testing.T, tree fs.FS) []string {
	t.Helper()
	packages := make(map[string]map[string]*ast.File) // by folder and file
	for name, file := range parseAll(t, tree) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		dir := path.Dir(name)
		if packages[dir] == nil {
			packages[dir] = make(map[string]*ast.File)
		}
		packages[dir][name] = file
	}
	var findings []string
	for _, files := range packages {
		variables := make(map[string]bool)
		for name, file := range files {
			findings = append(findings, checkDeclarations(name, file, variables)...)
		}
		for name, file := range files {
			findings = append(findings, checkChanges(name, file, variables)...)
		}
	}
	return slices.Sorted(slices.Values(findings))
}

// checkDeclarations looks at how package variables get their values, and notes
// their names.
func checkDeclarations(name string, file *ast.File, variables map[string]bool) []string {
	var findings []string
	for spec, embedded := range packageVariables(file) {
		for _, v := range spec.Names {
			switch {
			case v.Name == "_" || embedded:
				continue
			case len(spec.Values) == 0:
				findings = append(findings, fmt.Sprintf("%s declares %s without a value: it can only be state", name, v.Name))
			case slices.ContainsFunc(spec.Values, synchronised):
				findings = append(findings, fmt.Sprintf("%s: %s holds sync or sync/atomic: it can only be state", name, v.Name))
			}
			variables[v.Name] = true
		}
	}
	return findings
}

// packageVariables returns the variables declared at the top of a file, and
// whether the compiler embeds a file in them.
func packageVariables(file *ast.File) map[*ast.ValueSpec]bool {
	variables := make(map[*ast.ValueSpec]bool)
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, s := range group.Specs {
			if spec, ok := s.(*ast.ValueSpec); ok {
				variables[spec] = embeds(group.Doc) || embeds(spec.Doc)
			}
		}
	}
	return variables
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// synchronised reports whether a value is made of what guards or is state.
func synchronised(value ast.Expr) bool {
	found := false
	ast.Inspect(value, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := s.X.(*ast.Ident)
		found = found || ok && (pkg.Name == "sync" || pkg.Name == "atomic")
		return true
	})
	return found
}

// checkChanges finds where package variables are changed, or handed out by
// their address. It goes by names: a local variable that is named like one of
// its package is better named otherwise.
func checkChanges(name string, file *ast.File, variables map[string]bool) []string {
	changed := make(map[string]bool)
	note := func(e ast.Expr) {
		if v := root(e); variables[v] {
			changed[v] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if n.Tok != token.DEFINE {
					note(left)
				}
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				note(n.X)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) {
				note(n.Args[0])
			}
		}
		return true
	})
	var findings []string
	for v := range maps.Keys(changed) {
		findings = append(findings, fmt.Sprintf("%s changes %s, or hands out its address: give state an owner and pass it", name, v))
	}
	return findings
}

// root is the variable that an expression leads into: a for a.b[i].
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	}
	return ""
}
