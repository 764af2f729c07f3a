package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reasons why a kind is not checked against a schema.
var (
	errNotServed  = errors.New("the region publishes no schema of the kind")
	errAggregated = errors.New("the kind is served by an aggregated API server, whose rules are unknown")
	errNoSchema   = errors.New("the definition of the kind has no structural schema")
)

// kind is a compiled schema.
type kind struct {
	native  bool   // a built-in Go type of Kubernetes; otherwise a custom resource
	root    *node  // the node of the object
	old     bool   // the API server is older than 1.35
	status  bool   // it has a status subresource, so values in status are ignored
	rules   *rules // nil if there are none
	unruled error  // why existing rules cannot be evaluated
}

// nodeSize is the approximate size of a node in bytes.
const nodeSize = 400

// maxDocumentNodes is the maximum number of nodes compiled for one document.
// All of Kubernetes' core group takes 2 500.
const maxDocumentNodes = 200_000

// nativePackages are the packages of kinds that every API server decodes into
// the Go types from which the documents are generated.
var nativePackages = []string{
	"io.k8s.api.", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.", "io.k8s.kube-aggregator.pkg.apis.apiregistration.",
}

// known returns a kind that is compiled already, or the reason why it is
// unusable. done is false if the kind is not compiled yet.
func (d *document) known(gvk schema.GroupVersionKind) (k *kind, err error, done bool) {
	s := d.kinds[gvk]
	if s == nil {
		return nil, errNotServed, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.kind, s.err, s.compiled
}

// kind returns the compiled schema of a kind.
func (d *document) kind(gvk schema.GroupVersionKind) (*kind, error) {
	s := d.kinds[gvk]
	if s == nil {
		return nil, errNotServed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.compiled {
		s.kind, s.err = d.compile(gvk, s)
		s.compiled = true
	}
	return s.kind, s.err
}

func (d *document) compile(gvk schema.GroupVersionKind, s *served) (*kind, error) {
	if d.nodes > maxDocumentNodes {
		return nil, fmt.Errorf("more than %d nodes: %w", maxDocumentNodes, errLimit)
	}
	if s.component == customName(gvk) {
		return d.compileCustom(s)
	}
	if !slices.ContainsFunc(nativePackages, func(p string) bool { return strings.HasPrefix(s.component, p) }) {
		return nil, errAggregated
	}
	root, err := d.native(s.component)
	if err != nil {
		return nil, err
	}
	return &kind{native: true, old: d.old, root: root}, nil
}

// native compiles a Go type. After an error it drops all compiled types, as
// some may be incomplete.
func (d *document) native(component string) (*node, error) {
	c := &compiler{doc: d, native: true}
	n, err := c.component(component)
	if err != nil {
		clear(d.types)
	}
	d.charge(c.nodes)
	return n, err
}

// charge counts compiled nodes.
func (d *document) charge(nodes int) {
	d.nodes += nodes
	d.size.Add(int64(nodes) * nodeSize)
}

// customName returns the component name that an API server gives a custom
// resource.
func customName(gvk schema.GroupVersionKind) string {
	group := strings.Split(gvk.Group, ".")
	slices.Reverse(group)
	return fmt.Sprintf("%s.%s.%s", strings.Join(group, "."), gvk.Version, gvk.Kind)
}
