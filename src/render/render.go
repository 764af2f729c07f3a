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
	Check(ctx context.Context, files Files) (Summary, error)

	// Render makes the objects of one instance. It is a pure function of its
	// input. Its error is of kind nf.Invalid with violations naming file, line
	// and variable.
	Render(ctx context.Context, in Input) (Output, error)
}

// Adopter is a Renderer whose packages others may have brought up.
type Adopter interface {
	Renderer

	// Released returns what the release that in.Release names consists of in
	// in.Region, with the inputs that it was made with, and the marks by which
	// its objects are known. It is nf.NotFound when there is no such release, and
	// nf.Conflict when it is not of this package, or in the middle of a change.
	Released(ctx context.Context, in Input) (Output, nf.Inputs, nf.Claim, error)
}

// Files is the content of a package: clean slash-separated path → bytes.
type Files map[string][]byte

// Summary is what a package says of itself.
type Summary struct {
	Name        string
	Version     string
	Description string
	Variables   []nf.Variable
	Namespaces  []string // that its objects may be in, besides the instance's own; as nf.CheckNamespaces allows
	Warnings    []string // what is odd but not wrong: files that nothing names
}

// Input is what a package is rendered with.
type Input struct {
	Files    Files
	Builtins map[string]string // namespace, vnf_id, vnf_name, cloud_region_id, cloud_owner
	Inputs   nf.Inputs
	Release  Release
	Region   Region // nil: one of this service's own Kubernetes version, with nothing in it
}

// Release is what a chart knows of its installation.
type Release struct {
	Name      string // DNS label
	Namespace string
	Revision  int  // from 1
	Upgrade   bool // there was one before
}

// Region is what a package may ask of the region that it is rendered for.
type Region interface {
	// Capabilities returns what its API server can do.
	Capabilities(ctx context.Context) (nf.Capabilities, error)
	// Lookup returns an object as it is, or, without a name, a list of them as
	// an object with items. What does not exist, or is of a kind that is not
	// served, is nil.
	Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error)
}

// Output is what a package renders to.
type Output struct {
	Groups    []Group
	Hooks     []Hook
	Warnings  []string
	Sensitive []string // names of the inputs that must be masked when shown
}
