package src_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkImport compares one import with the layers.
func checkImport(dir, name string, spec *ast.ImportSpec) []string {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	if ours, ok := strings.CutPrefix(imported, module); ok {
		f := floors[dir]
		if slices.Contains(f.imports, ours) || slices.Contains(f.imports, "*") {
			return nil
		}
		return []string{fmt.Sprintf("%s imports our %s; %s may import %q: %s", name, ours, dir, f.imports, f.reason)}
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return nil // the standard library
	}
	if slices.Contains(bare, dir) {
		return []string{fmt.Sprintf("%s imports %s, but %s needs the standard library only", name, imported, dir)}
	}
	// The longest name is the most specific one.
	longest := slices.SortedFunc(maps.Keys(outside), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, prefix := range longest {
		if !below(imported, prefix) {
			continue
		}
		where := outside[prefix]
		allowed := func(folder string) bool { return folder == "*" || below(dir, folder) }
		if slices.ContainsFunc(where.folders, allowed) {
			return nil
		}
		return []string{fmt.Sprintf("%s imports %s, which only %q may: %s", name, imported, where.folders, where.reason)}
	}
	return []string{fmt.Sprintf("%s imports %s, which no package may import: add a new module to arch_test.go, with its reason", name, imported)}
}

// checkPackages compares the packages that are there with those that are meant
// to be.
func checkPackages(comments map[string]int) []string {
	var findings []string
	for dir, n := range comments {
		if _, ok := floors[dir]; !ok {
			findings = append(findings, dir+" is in no floor: add it to arch_test.go, with the reason for what it may import")
		}
		if n != 1 {
			findings = append(findings, fmt.Sprintf("%s has %d package comments, want one", dir, n))
		}
	}
	for dir := range floors {
		if _, ok := comments[dir]; !ok {
			findings = append(findings, dir+" is not there, but has a floor in arch_test.go")
		}
	}
	return findings
}

// below reports whether a slash-separated path is a folder or in it.
func below(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
