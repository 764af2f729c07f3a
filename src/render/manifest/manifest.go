// Package manifest renders packages of plain Kubernetes manifests: YAML or JSON
// files with variables, listed by a metadata.yaml.
//
// The list is ordered or unordered. In a list of kind → files each entry waits
// for the one before it. A map of kind → files is installed in
// render.KindOrder. The variables $name, ${name}, ${name.path} and
// ${name:-default} are replaced in the parsed documents, never in their text. A
// value can therefore neither break nor inject YAML. $$ is a dollar sign. Any
// other $, such as Kubernetes' own $(VAR), stays as it is.
//
// A variable takes its value from the first of these that has its name: the
// built-ins, the parameters, each of the OOF parameters, the network
// parameters.
//
// The package does not know the schema of any kind; the API server checks that.
package manifest

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Renderer is the render.Renderer of manifest packages. The zero value is ready
// for use and does not limit how many packages are read at once.
type Renderer struct {
	gate *render.Gate // nil: no limit
}

var _ render.Renderer = Renderer{}

// New returns a Renderer that reads and renders at most as many packages at
// once as the gate allows.
func New(gate *render.Gate) Renderer { return Renderer{gate} }

// Fit implements render.Renderer. A package of manifests has a metadata.yaml.
func (Renderer) Fit(files render.Files) render.Fit {
	for _, name := range [...]string{"metadata.yaml", "metadata.yml"} {
		if _, found := files[name]; found {
			return render.SureFit
		}
	}
	return render.DefaultFit
}

// Check reads the metadata and every file that it names, and reports all faults
// that do not depend on the values of variables. It returns nf.TooManyRequests if too
// many packages are being read or rendered.
func (m Renderer) Check(ctx context.Context, files render.Files) (render.Summary, error) {
	turn, err := m.gate.Enter(ctx, "")
	if err != nil {
		return render.Summary{}, err
	}
	defer turn.Leave()
	r := &report{}
	p := load(files, r)
	var left []string
	if len(p.documents) == len(p.meta.groups) {
		left = p.checkOrder(r)
	}
	if err := r.err(); err != nil {
		return render.Summary{}, err
	}
	return render.Summary{
		Name: p.meta.name, Version: p.meta.version, Description: p.meta.description,
		Variables: p.shown(), Namespaces: p.meta.namespaces, Warnings: slices.Concat(p.warnings, left),
	}, nil
}

// Render renders the objects of one instance. It returns nf.TooManyRequests if too many
// packages are being read or rendered.
func (m Renderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	turn, err := m.gate.Enter(ctx, "")
	if err != nil {
		return render.Output{}, err
	}
	defer turn.Leave()
	r := &report{}
	p := load(in.Files, r)
	if err := r.err(); err != nil {
		return render.Output{}, err
	}
	if len(in.Inputs.Overrides) > 0 {
		// Manifests have no values to set by path; ignoring the request would
		// hide that.
		return render.Output{}, nf.Violations{{Field: "set", Message: "is for charts; this package has variables, which parameters set"}}
	}
	s := newScope(p, in, r)
	e := newExpander(s, r)
	out := render.Output{Sensitive: p.secretNames().In(in.Inputs), Secrets: p.secretNames().Texts(p.defaults())}
	for i, g := range p.meta.groups {
		if err := ctx.Err(); err != nil {
			return render.Output{}, fmt.Errorf("cannot render package: %w", err)
		}
		objects := e.objects(p.documents[i])
		p.annotate(objects)
		out.Groups = append(out.Groups, g.with(objects))
	}
	out.Networks, out.Volumes, out.Clusters, out.Profiles = e.attachments(p.meta), e.bindings(p.meta), e.clusters(p.meta), e.profiles(p.meta)
	if err := r.err(); err != nil {
		return render.Output{}, err
	}
	out.Warnings = slices.Concat(p.warnings, s.warnings, e.warnings())
	return out, nil
}

// parsedPackage is the content of a package after parsing.
type parsedPackage struct {
	meta      metadata
	documents [][]document // of each group
	uses      map[string]place
	warnings  []string
}

// secretNames returns which variables are declared sensitive.
func (p *parsedPackage) secretNames() render.SecretNames {
	names := render.SecretNames{}
	for _, v := range p.meta.variables {
		names[v.Name] = v.Sensitive
	}
	return names
}

// defaults returns the declared default values.
func (p *parsedPackage) defaults() map[string]any {
	out := map[string]any{}
	for _, v := range p.meta.variables {
		out[v.Name] = v.Default
	}
	return out
}

// shown returns the declarations with the secrets in their defaults masked.
func (p *parsedPackage) shown() []nf.Variable {
	variables := slices.Clone(p.meta.variables)
	for i, v := range variables {
		variables[i].Default = p.secretNames().Mask(v.Default)
	}
	return variables
}

// document is one manifest. It becomes one object when its variables are
// replaced.
type document struct {
	kind  string // the kind that it is listed as, or ""
	root  *yaml.Node
	file  string
	again func() *yaml.Node // reads the root again
}

// load reads a whole package, or only the metadata if that is invalid.
func load(files render.Files, r *report) *parsedPackage {
	rd := &reader{report: r, uses: map[string]place{}, verbatim: true}
	p := &parsedPackage{uses: rd.uses, meta: readMetadata(files, rd)}
	if !r.ok() {
		return p
	}
	rd.templates, rd.verbatim = true, false
	p.useEntries(rd)
	named := map[string]place{p.meta.at.file: p.meta.at}
	for _, g := range p.meta.groups {
		var documents []document
		for _, f := range g.files {
			documents = append(documents, rd.listed(files, f, named)...)
		}
		p.documents = append(p.documents, documents)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, known := named[name]; !known && !isProse(name) {
			p.warnings = append(p.warnings, name+": is named by no entry of "+p.meta.at.file)
		}
	}
	p.warnings = append(capped(p.warnings, "files that no entry names"), p.unused()...)
	p.checkReadiness(r)
	return p
}

// unused returns warnings about declared variables that no file uses.
func (p *parsedPackage) unused() []string {
	var warnings []string
	for _, v := range p.meta.variables {
		if _, used := p.uses[v.Name]; !used {
			at := p.meta.declared[v.Name]
			warnings = append(warnings, fmt.Sprintf("%s:%d: variable %q is declared and never used", at.file, at.line, v.Name))
		}
	}
	return capped(warnings, "variables that are never used")
}

// listed reads one file that the metadata names.
func (rd *reader) listed(files render.Files, f listedFile, named map[string]place) []document {
	name := path.Clean(f.path)
	content, found := files[name]
	first, twice := named[name]
	switch {
	case !found:
		rd.report.add(f.at, "", "file %q is not in the package%s", f.path, rd.report.suggestFile(f.path, files))
		return nil
	case twice:
		rd.report.add(f.at, "", "file %q is named twice, first at line %d", f.path, first.line)
		return nil
	case files.PassedBy(name):
		named[name] = f.at
		rd.report.add(f.at, "", "file %q is too large; a manifest has at most %d bytes", f.path, maxFile)
		return nil
	}
	named[name] = f.at
	documents := rd.manifests(name, content)
	again := reread(name, content)
	for i := range documents {
		documents[i].kind = f.kind
		documents[i].again = func() *yaml.Node { return again()[i].root }
	}
	return documents
}

// manifests reads a file, with each List replaced by its items.
func (rd *reader) manifests(name string, content []byte) []document {
	var documents []document
	for _, root := range rd.read(name, content) {
		items := flatten(root)
		if !rd.begin(root, len(items)-1) {
			return nil
		}
		for _, item := range items {
			documents = append(documents, document{root: item, file: name})
		}
	}
	return documents
}

// flatten returns the items of a List, or else the document.
func flatten(root *yaml.Node) []*yaml.Node {
	items := get(root, "items")
	if k := get(root, "kind"); k == nil || k.Value != "List" || items == nil || items.Kind != yaml.SequenceNode {
		return []*yaml.Node{root}
	}
	var all []*yaml.Node
	for _, item := range items.Content {
		all = append(all, flatten(item)...)
	}
	return all
}

// isProse reports whether a file is documentation.
func isProse(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "README") || strings.HasPrefix(base, "LICENSE") || path.Ext(base) == ".md"
}

// checkOrder reports faults of the documents, of the order of the groups, of the
// attachments, volumes, clusters and compute profiles, and duplicate objects, as far as these do not depend on variables. It
// returns warnings about references to undeclared variables.
func (p *parsedPackage) checkOrder(r *report) []string {
	e := newExpander(emptyScope(p), r)
	groups := make([]render.Group, len(p.meta.groups))
	known := true
	for i, g := range p.meta.groups {
		groups[i] = g.with(e.objects(p.documents[i]))
		known = known && len(groups[i].Objects) == len(p.documents[i])
	}
	attachments, clusters := e.attachments(p.meta), e.clusters(p.meta)
	e.bindings(p.meta)
	e.profiles(p.meta)
	plan, err := render.Order(groups, "")
	if err == nil && known {
		checkWorkloads(attachments, plan, r)
		checkClusters(clusters, plan, r)
	}
	for _, v := range nf.ViolationsOf(err) {
		at := place{v.File, v.Line}
		if v.File == "" {
			at = p.meta.at
		}
		r.add(at, v.Field, "%s", v.Message)
	}
	return e.warnings()
}

// objects returns the objects of documents. It omits an object whose identity
// depends on an unknown value, or in which a fault was reported.
func (e *expander) objects(documents []document) []render.Object {
	var objects []render.Object
	for _, d := range documents {
		e.file = d.file
		switch content := e.value(d.root).(type) {
		case unknown:
		case map[string]any:
			if d.identify(content, e.report) {
				o := &unstructured.Unstructured{Object: content}
				objects = append(objects, render.Object{Unstructured: o, File: d.file, Line: d.root.Line, Lines: e.lines(d)})
			}
		default:
			e.report.add(d.at(), "", "is not an object")
		}
	}
	return objects
}
