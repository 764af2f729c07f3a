package src_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unwatchedAtomics are the packages that may use the functions of sync/atomic although
// the race detector does not see them there.
var unwatchedAtomics = map[string]string{
	"crypto/internal/entropy/v1.0.0":      "a lock for one private buffer",
	"go.mongodb.org/mongo-driver/v2/bson": "a counter",
}

// TestUnwatchedPackages checks that the packages that the Makefile hides from the race
// detector do not start goroutines, and that they synchronize only by types whose methods
// the detector sees. Otherwise it would miss races, or report races that do not exist.
func TestUnwatchedPackages(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?m)^SERIAL := ((?:.*\\\n)*.*)\nWATCHED := (.*)$`).FindSubmatch(makefile)
	if lists == nil {
		t.Fatal("the Makefile has no lists SERIAL and WATCHED")
	}
	args := []string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "-deps", "-test", "./..."}
	built, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	patterns, watched := strings.Fields(strings.ReplaceAll(string(lists[1]), "\\\n", " ")), strings.Fields(string(lists[2]))
	checked := 0
	for line := range strings.Lines(string(built)) {
		pkg := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if slices.Contains(watched, pkg[0]) || !slices.ContainsFunc(patterns, func(p string) bool {
			under, all := strings.CutSuffix(p, "...")
			return p == pkg[0] || all && strings.HasPrefix(pkg[0]+"/", under)
		}) {
			continue
		}
		checked++
		for name := range strings.FieldsSeq(pkg[2]) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg[1], name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range concurrency(file) {
				if found == "go" || unwatchedAtomics[pkg[0]] == "" {
					t.Errorf("%s: %s has %s", pkg[0], name, found)
				}
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d packages were checked", checked)
	}
}

// concurrency returns the statements and calls of a file that TestUnwatchedPackages rejects.
func concurrency(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "go")
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if of, ok := f.X.(*ast.Ident); ok && of.Name == "atomic" {
				found = append(found, "atomic."+f.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestConcurrency(t *testing.T) {
	for source, want := range map[string][]string{
		"go f()":                            {"go"},
		"atomic.StoreUint32(p, 1)":          {"atomic.StoreUint32"},
		"var x atomic.Int32; x.Add(1); f()": nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\nfunc g() { "+source+" }", parser.SkipObjectResolution)
		if got := concurrency(file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
}
