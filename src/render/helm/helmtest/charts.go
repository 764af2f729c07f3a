// Package helmtest holds charts to test with: one for each shape that public
// charts have. All of them render without any inputs.
//
// They are the examples of the tests of render/helm, which hold what comes out
// of them; those whose output is never twice the same, or too large to be read,
// are in the folder random. The package does not deploy them, and holds nothing
// that the service itself needs.
package helmtest

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

//go:embed charts/*.txtar random/*.txtar
var embedded embed.FS

// Charts returns the charts by their names, each as a package of its own. The
// caller may change what it gets.
func Charts() map[string]render.Files {
	charts := map[string]render.Files{}
	for _, folder := range []string{"charts", "random"} {
		entries, err := embedded.ReadDir(folder)
		must(err)
		for _, e := range entries {
			content, err := embedded.ReadFile(path.Join(folder, e.Name()))
			must(err)
			charts[strings.TrimSuffix(e.Name(), ".txtar")] = Files(txtar.Parse(content))
		}
	}
	return charts
}

// Files returns the files of the package in an example, without what belongs to
// the test: its inputs, and what is wanted.
func Files(example *txtar.Archive) render.Files {
	files := render.Files{}
	for _, f := range example.Files {
		switch f.Name {
		case "inputs.json", "case.json", "want.yaml", "want.err":
		default:
			files[f.Name] = f.Data
		}
	}
	return files
}

// must stops a test whose own charts cannot be read: they are in the binary.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("helmtest: %v", err))
	}
}
