package render

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Renderer understands one kind of package.
type Renderer interface {
	// Check reads a package without values, as at upload. Its error is of kind
	// nf.Invalid and carries a violation, with file and line, for everything
	// that is wrong.
	Check(files Files) (Summary, error)

	// Render makes the objects of one instance. It is a pure function of its
	// input. Its error is of kind nf.Invalid with violations naming file, line
	// and variable.
	Render(ctx context.Context, in Input) (Output, error)
}

// Files is the content of a package: clean slash-separated path → bytes.
type Files map[string][]byte

// Summary is what a package says of itself.
type Summary struct {
	Name        string
	Version     string
	Description string
	Variables   []nf.Variable
	Warnings    []string // what is odd but not wrong: files that nothing names
}

// Input is what a package is rendered with.
type Input struct {
	Files    Files
	Builtins map[string]string // namespace, vnf_id, vnf_name, cloud_region_id, cloud_owner
	Inputs   nf.Inputs
}

// Output is what a package renders to.
type Output struct {
	Groups    []Group
	Warnings  []string
	Sensitive []string // names of the inputs that must be masked when shown
}
