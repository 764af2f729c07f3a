package csar

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// vnfType is the node type that those of VNFs derive from.
const vnfType = "tosca.nodes.nfv.VNF"

// descriptor is a VNF descriptor: one service template and those that it imports.
type descriptor struct {
	r         *reader
	templates []template
	types     map[string]*yaml.Node // node types by name
}

// template is one file of the descriptor.
type template struct {
	file string
	root *yaml.Node
}

// descriptor reads the VNF descriptor that begins with a file.
func (r *reader) descriptor(entry string) {
	d := &descriptor{r: r, types: map[string]*yaml.Node{}}
	d.load(entry, "", map[string]bool{})
	if len(r.faults) > 0 {
		return
	}
	for _, t := range d.templates {
		r.out.VNFD.Files = append(r.out.VNFD.Files, t.file)
	}
	d.read()
}

// load reads a file and the files that it imports.
func (d *descriptor) load(name, from string, seen map[string]bool) {
	if seen[name] || len(d.r.faults) > 0 {
		return
	}
	if seen[name] = true; len(seen) > maxFiles {
		d.r.fault(from, 0, "imports more than %d files", maxFiles)
		return
	}
	root := d.parse(name)
	if root == nil {
		return
	}
	if get(root, "tosca_definitions_version") == nil {
		d.r.fault(name, 1, "lacks tosca_definitions_version, so it is not a TOSCA service template")
		return
	}
	d.templates = append(d.templates, template{name, root})
	for key, value := range pairs(get(root, "node_types")) {
		if _, twice := d.types[key.Value]; !twice {
			d.types[key.Value] = value
		}
	}
	for _, item := range imports(get(root, "imports")) {
		d.follow(item, name, seen)
	}
}

// follow loads an imported file. A file outside the CSAR is not read.
func (d *descriptor) follow(item *yaml.Node, from string, seen map[string]bool) {
	if isURL(item.Value) {
		d.r.warn("%s:%d: the import %q is not in the CSAR, and is not read", from, item.Line, nf.Clip(item.Value, maxText))
		return
	}
	name, ok := clean(path.Join(path.Dir(from), item.Value))
	if _, found := d.r.files[name]; !ok || !found {
		d.r.fault(from, item.Line, "imports %q, which is not in the CSAR", nf.Clip(item.Value, maxText))
		return
	}
	d.load(name, from, seen)
}

// imports returns the files of a list of imports. An entry is a file, or a mapping with
// the field file, or a mapping of a name to one of both.
func imports(list *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range list.Content {
		item = aliased(item)
		if file := get(item, "file"); file != nil {
			item = file
		} else if item.Kind == yaml.MappingNode && len(item.Content) == 2 {
			if item = aliased(item.Content[1]); item.Kind == yaml.MappingNode {
				item = get(item, "file")
			}
		}
		if item != nil && item.Kind == yaml.ScalarNode {
			out = append(out, item)
		}
	}
	return out
}

// parse returns the mapping that a file consists of, or nil after a fault.
func (d *descriptor) parse(name string) *yaml.Node {
	content, ok := d.r.content(name, maxStructure)
	if !ok {
		return nil
	}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	err := decoder.Decode(&doc)
	if err == nil {
		if more := decoder.Decode(new(yaml.Node)); !errors.Is(more, io.EOF) {
			d.r.fault(name, 0, "must be one YAML document")
			return nil
		}
	}
	if err != nil {
		line, message := syntax.YAML(err)
		d.r.fault(name, line, "is not YAML: %s", nf.Clip(message, maxText))
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		d.r.fault(name, 1, "must be one YAML mapping")
		return nil
	}
	return doc.Content[0]
}

// read reads the identity of the VNF and its flavors.
func (d *descriptor) read() {
	out, at := &d.r.out.VNFD, d.templates[0].file
	vnf, in := d.vnf()
	if vnf == nil {
		d.r.fault(at, 0, "has no node template with the property descriptor_id, whose type derives from %s", vnfType)
		return
	}
	for _, p := range []struct {
		name string
		into *string
	}{
		{"descriptor_id", &out.ID},
		{"provider", &out.Provider},
		{"product_name", &out.Product},
		{"software_version", &out.SoftwareVersion},
		{"descriptor_version", &out.Version},
	} {
		value := d.property(vnf, p.name)
		if value == nil || value.Kind != yaml.ScalarNode || value.Value == "" || len(value.Value) > maxText || nf.CheckText(p.name, value.Value) != nil {
			d.r.fault(in, vnf.Line, "the VNF lacks the property %s, a text of at most %d bytes", p.name, maxText)
			continue
		}
		*p.into = value.Value
	}
	out.Managers = texts(d.property(vnf, "vnfm_info"))
	out.Flavors, out.Images = d.flavors(vnf), d.images()
}

// vnf returns the node template of the VNF and its file. Some descriptors have it in the
// substitution mappings only.
func (d *descriptor) vnf() (*yaml.Node, string) {
	for _, t := range d.templates {
		for _, node := range pairs(get(get(t.root, "topology_template"), "node_templates")) {
			if d.property(node, "descriptor_id") != nil && d.derives(scalar(get(node, "type"))) {
				return node, t.file
			}
		}
	}
	for _, t := range d.templates {
		if node := get(get(t.root, "topology_template"), "substitution_mappings"); get(get(node, "properties"), "descriptor_id") != nil {
			return node, t.file
		}
	}
	return nil, ""
}

// derives reports whether a node type is that of a VNF. A type that is not in the CSAR
// may be one.
func (d *descriptor) derives(name string) bool {
	for range maxFiles {
		of, known := d.types[name]
		if name == vnfType || !known {
			return name != ""
		}
		name = scalar(get(of, "derived_from"))
	}
	return false
}

// property returns a property of a node: its own value, the default of the input that it
// is got from, or the default of its type; nil if there is none.
func (d *descriptor) property(node *yaml.Node, name string) *yaml.Node {
	value := get(get(node, "properties"), name)
	if input := get(value, "get_input"); input != nil {
		value = d.input(scalar(input))
	}
	if value != nil {
		return value
	}
	of := scalar(cmp.Or(get(node, "type"), get(node, "node_type")))
	for range maxFiles {
		typed, known := d.types[of]
		if !known {
			break
		}
		if value := get(get(get(typed, "properties"), name), "default"); value != nil {
			return value
		}
		of = scalar(get(typed, "derived_from"))
	}
	return nil
}

// input returns the default of an input.
func (d *descriptor) input(name string) *yaml.Node {
	for _, t := range d.templates {
		if value := get(get(get(get(t.root, "topology_template"), "inputs"), name), "default"); value != nil {
			return value
		}
	}
	return nil
}

// flavors returns the deployment flavors that the descriptor has a template for, sorted.
func (d *descriptor) flavors(vnf *yaml.Node) []string {
	found := map[string]bool{}
	add := func(n *yaml.Node) {
		if text := scalar(n); text != "" && len(text) <= maxText && nf.CheckText("flavour_id", text) == nil {
			found[text] = true
		}
	}
	for _, t := range d.templates {
		add(get(get(get(get(t.root, "topology_template"), "substitution_mappings"), "properties"), "flavour_id"))
	}
	add(d.property(vnf, "flavour_id"))
	out := make([]string, 0, len(found))
	for flavor := range found {
		out = append(out, flavor)
	}
	slices.Sort(out)
	return out
}

// texts returns a text, or the texts of a list.
func texts(n *yaml.Node) []string {
	var out []string
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		out = append(out, nf.Clip(n.Value, maxText))
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content[:min(len(n.Content), maxFaults)] {
			if text := scalar(aliased(item)); text != "" {
				out = append(out, nf.Clip(text, maxText))
			}
		}
	}
	return out
}
