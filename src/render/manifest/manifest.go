// Package manifest renders packages of plain Kubernetes manifests: YAML or JSON
// files, listed in order by a metadata.yaml, with variables in them.
//
// The list is ordered (a list of kind → files, each entry a group that waits
// for the one before it) or not (a map of kind → files, installed in
// render.KindOrder). Variables, $name, ${name}, ${name.path} and
// ${name:-default}, are replaced in the parsed documents, never in their text,
// so that a value can neither break nor inject YAML; $$ is a dollar, and any
// other $, such as Kubernetes' own $(VAR), stays.
//
// Values are looked for in the built-ins, the parameters, each of the OOF
// parameters and the network parameters; the first that has the name wins.
//
// The package does not know the schema of any kind; that is the API server's.
package manifest

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Renderer is the render.Renderer of manifest packages. The zero value is
// ready for use.
type Renderer struct{}

var _ render.Renderer = Renderer{}

// Check reads the metadata and every file that it names, and finds all that is
// wrong whatever the variables' values will be.
func (Renderer) Check(_ context.Context, files render.Files) (render.Summary, error) {
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

// Render makes the objects of one instance.
func (Renderer) Render(ctx context.Context, in render.Input) (render.Output, error) {
	r := &report{}
	p := load(in.Files, r)
	if err := r.err(); err != nil {
		return render.Output{}, err
	}
	if len(in.Inputs.Overrides) > 0 {
		// There are no values to set by path: to ignore what was asked for would be silence.
		return render.Output{}, nf.Violations{{Field: "set", Message: "is for charts; this package has variables, which parameters set"}}
	}
	s := newScope(p, in, r)
	e := newExpander(s, r)
	out := render.Output{Sensitive: p.secretNames().In(in.Inputs)}
	for i, g := range p.meta.groups {
		if err := ctx.Err(); err != nil {
			return render.Output{}, fmt.Errorf("cannot render package: %w", err)
		}
		out.Groups = append(out.Groups, g.with(e.objects(p.documents[i])))
	}
	if err := r.err(); err != nil {
		return render.Output{}, err
	}
	out.Warnings = slices.Concat(p.warnings, s.warnings, e.warnings())
	return out, nil
}

// pack is a package as it was read.
type pack struct {
	meta      metadata
	documents [][]document // of each group
	uses      map[string]place
	warnings  []string
}

// secretNames returns what the declarations say of names.
func (p *pack) secretNames() render.SecretNames {
	names := render.SecretNames{}
	for _, v := range p.meta.variables {
		names[v.Name] = v.Sensitive
	}
	return names
}

// shown returns the declarations with the secrets inside of defaults masked.
func (p *pack) shown() []nf.Variable {
	variables := slices.Clone(p.meta.variables)
	for i, v := range variables {
		variables[i].Default = p.secretNames().Mask(v.Default)
	}
	return variables
}

// document is one manifest: one object, once its variables are replaced.
type document struct {
	kind string // what it was listed as, or ""
	root *node
}

// load reads a whole package; the metadata alone if that is wrong.
func load(files render.Files, r *report) *pack {
	rd := &reader{report: r, uses: map[string]place{}, verbatim: true}
	p := &pack{uses: rd.uses, meta: readMetadata(files, rd)}
	if !r.ok() {
		return p
	}
	rd.templates, rd.verbatim = true, false
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
	return p
}

// unused warns of the variables that are declared and that no file has.
func (p *pack) unused() []string {
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
		rd.report.add(f.at, "", "file %q is not in the package%s", f.path, rd.report.meantFile(f.path, files))
		return nil
	case twice:
		rd.report.add(f.at, "", "file %q is named twice, first at line %d", f.path, first.line)
		return nil
	}
	named[name] = f.at
	var documents []document
	for _, root := range rd.read(name, content) {
		inside := flatten(root, f.kind)
		if !rd.begin(root.at, len(inside)-1) {
			return nil
		}
		documents = append(documents, inside...)
	}
	return documents
}

// flatten replaces a List by what it lists.
func flatten(root *node, kind string) []document {
	items := root.get("items")
	if k := root.get("kind"); k == nil || k.text != "List" || items == nil || items.kind != list {
		return []document{{kind: kind, root: root}}
	}
	var documents []document
	for _, item := range items.items {
		documents = append(documents, flatten(item, kind)...)
	}
	return documents
}

// isProse reports whether a file is for people only.
func isProse(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "README") || strings.HasPrefix(base, "LICENSE") || path.Ext(base) == ".md"
}

// checkOrder finds what is wrong with the documents, with the order of the
// groups, and with objects that are there twice, as far as that does not
// depend on variables. It returns the warnings of references to variables that
// are not declared.
func (p *pack) checkOrder(r *report) []string {
	e := newExpander(blankScope(p), r)
	groups := make([]render.Group, len(p.meta.groups))
	for i, g := range p.meta.groups {
		groups[i] = g.with(e.objects(p.documents[i]))
	}
	_, err := render.Order(groups, "")
	for _, v := range nf.ViolationsOf(err) {
		at := place{v.File, v.Line}
		if v.File == "" {
			at = p.meta.at
		}
		r.add(at, v.Field, "%s", v.Message)
	}
	return e.warnings()
}

// objects makes the objects of documents. One that depends on an unknown value
// for what it is, or that is reported, is left out.
func (e *expander) objects(documents []document) []render.Object {
	var objects []render.Object
	for _, d := range documents {
		switch content := e.value(d.root).(type) {
		case unknown:
		case map[string]any:
			if d.identify(content, e.report) {
				o := &unstructured.Unstructured{Object: content}
				objects = append(objects, render.Object{Unstructured: o, File: d.root.at.file, Line: d.root.at.line})
			}
		default:
			e.report.add(d.root.at, "", "is not an object")
		}
	}
	return objects
}
