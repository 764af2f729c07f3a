// Package helmtest provides charts for tests: one for each shape that public
// charts have. All of them render without inputs.
//
// They are the examples of the tests of render/helm, with their expected
// output. Charts whose output differs each time, or is too large to be read,
// are in the folder random. The package does not deploy charts, and contains
// nothing that the service itself needs.
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

// Charts returns the charts by name, each as a package. The caller may change
// the result.
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

// Files returns the files of the package in an example, without the inputs and
// the expected output of the test.
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

// must panics if the package's own charts, which are in the binary, cannot be
// read.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("helmtest: %v", err))
	}
}
