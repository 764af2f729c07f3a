package render

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Fit says how well the files of a package fit a kind.
type Fit int

// The fits, from the worst to the best.
const (
	NoFit      Fit = iota // not of the kind
	DefaultFit            // no file of any kind: the errors of this kind help its author
	LikelyFit             // a file of the kind, which packages of other kinds may also have
	SureFit               // a file that packages of other kinds do not have
)

// Renderer reads and renders one kind of package.
type Renderer interface {
	// Fit returns how well files fit the kind, by their names alone. The renderer
	// that fits best reads the package.
	Fit(files Files) Fit

	// Check reads a package without values, as on upload. It returns nf.Invalid
	// with one violation for each fault, which names file and line.
	Check(ctx context.Context, files Files) (Summary, error)

	// Render renders the objects of one instance. It is a pure function of its
	// input. It returns nf.Invalid with violations that name file, line and
	// variable.
	Render(ctx context.Context, in Input) (Output, error)
}

// Adopter is a Renderer of packages that other tools may have deployed already.
type Adopter interface {
	Renderer

	// Released returns the content of the release in.Release.Name in in.Region,
	// the inputs that it was created with, and the annotations or labels that
	// identify its objects. It returns nf.NotFound if the release does not
	// exist, and nf.Conflict if it is of another package or is being changed.
	Released(ctx context.Context, in Input) (Output, nf.Inputs, nf.AdoptionSelector, error)
}

// Verifier is a Renderer of packages that declare digests of their files.
type Verifier interface {
	Renderer

	// Verify compares the files that Open has passed by with their digests. Check
	// compares the others. It reads each file with open, as a stream. It returns
	// nf.Invalid with the name of each file that differs, and an error of open
	// unchanged.
	Verify(ctx context.Context, files Files, open func(name string) (io.ReadCloser, error)) error
}

// Files is the content of a package: clean slash-separated path → bytes. A file
// that Open has passed by has nil: it exists, and is too large to be read.
type Files map[string][]byte

// PassedBy reports whether a file exists without its content.
func (f Files) PassedBy(name string) bool {
	content, exists := f[name]
	return exists && content == nil
}

// Size returns the total size of the files in memory in bytes.
func (f Files) Size() int64 {
	size := int64(0)
	for _, content := range f {
		size += int64(len(content))
	}
	return size
}

// Summary describes a package, as the package itself declares it.
type Summary struct {
	Name        string
	Version     string
	Description string
	Variables   []nf.Variable
	Namespaces  []string // in which its objects may be in addition to the instance's; valid according to nf.CheckNamespaces
	Warnings    []string // problems that are not errors, such as files that no entry names
	VNFD        *nf.VNFD // of a CSAR; nil: it has none
}

// Input is the input of one rendering.
type Input struct {
	Files    Files
	Builtins map[string]string // namespace, vnf_id, vnf_name, cloud_region_id, cloud_owner
	Inputs   nf.Inputs
	Release  Release
	Region   Region // nil: an empty region with this service's own Kubernetes version
	Strict   bool   // parameters that have no effect are violations, not warnings
	Lint     bool   // values may be missing: a chart's functions required and fail warn, and its objects are then not read
}

// RegionID returns the id of the region that the package is rendered for, or ""
// if there is none.
func (in Input) RegionID() string {
	if in.Region == nil {
		return ""
	}
	return in.Builtins["cloud_region_id"]
}

// Release describes an installation to its chart.
type Release struct {
	Name      string // DNS label
	Namespace string
	Revision  int  // from 1
	Upgrade   bool // there is an earlier revision
}

// Region answers queries of a package about the region that it is rendered for.
type Region interface {
	// Capabilities returns the version and the APIs of its API server.
	Capabilities(ctx context.Context) (nf.Capabilities, error)
	// Lookup returns an object or, without a name, a list of objects as an
	// object with items. It returns nil if the object does not exist or its
	// kind is not served.
	Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error)
}

// Output is the result of rendering a package.
type Output struct {
	Groups    []Group
	Hooks     []Hook
	Networks  []nf.Connection              // attachments of the workloads to networks: Attachment, Field, File and Lines
	Volumes   []nf.Binding                 // uses of volumes by the claims, valid according to nf.CheckBindings
	Clusters  []nf.DeclaredCluster         // that become cloud regions, unless the request says otherwise
	Profiles  map[string]nf.ComputeProfile // that a request can give workloads
	Warnings  []string
	Notes     string   // text of the package for its users; empty: none
	Sensitive []string // names of the inputs that must be masked when shown
	Secrets   []string // texts of the package that must be masked when shown: its defaults of sensitive inputs
}
