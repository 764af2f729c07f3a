package tosca

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ReadVNFD reads the identity of the VNF, its flavors, its software images and the files
// of the descriptor that begins with one. It does not read the topologies of the flavors.
// The warnings name parts that are not read. ReadVNFD returns nf.Invalid with a violation
// for each fault.
func ReadVNFD(files map[string][]byte, entry string) (out nf.VNFD, warnings []string, err error) {
	r, err := load(files, entry)
	if err != nil {
		return nf.VNFD{}, nil, err
	}
	for _, t := range r.templates {
		out.Files = append(out.Files, t.file)
	}
	s := &scope{r: r, main: r.templates[0], parts: r.templates}
	vnf, found := s.identified()
	if !found {
		r.fault(s.main.file, nil, "has no node template with the property descriptor_id, whose type derives from %s", typeVNF)
		return nf.VNFD{}, nil, r.err()
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
		value := s.property(vnf, p.name)
		if value == nil || value.Kind != yaml.ScalarNode || value.Value == "" || len(value.Value) > maxText || nf.CheckText(p.name, value.Value) != nil {
			r.fault(vnf.file, vnf.node, "the VNF lacks the property %s, a text of at most %d bytes", p.name, maxText)
			continue
		}
		*p.into = value.Value
	}
	out.Managers = listOf(s.property(vnf, "vnfm_info"))
	out.Flavors, out.Images = s.flavors(vnf), s.images()
	return out, r.warnings, r.err()
}

// identified returns the node template of the VNF. Some descriptors have it in the
// substitution mappings only.
func (s *scope) identified() (entity, bool) {
	for _, t := range s.parts {
		for key, node := range pairs(get(t.root, "topology_template", "node_templates")) {
			e := entity{key.Value, t.file, scalar(get(node, "type")), key, node}
			if s.property(e, "descriptor_id") != nil && s.r.mayBeVNF(e.typ) {
				return e, true
			}
		}
	}
	for _, t := range s.parts {
		if node := get(t.root, "topology_template", "substitution_mappings"); get(node, "properties", "descriptor_id") != nil {
			return entity{"", t.file, scalar(cmp.Or(get(node, "type"), get(node, "node_type"))), node, node}, true
		}
	}
	return entity{}, false
}

// mayBeVNF reports whether a node type is that of a VNF. A type that is not in the CSAR
// may be one.
func (r *reader) mayBeVNF(name string) bool {
	for range maxChain {
		of, known := r.types[name]
		if name == typeVNF || !known {
			return name != ""
		}
		name = scalar(get(of, "derived_from"))
	}
	return false
}

// flavors returns the deployment flavors that the descriptor has a template for, sorted.
func (s *scope) flavors(vnf entity) []string {
	found := map[string]bool{}
	add := func(n *yaml.Node) {
		if text := scalar(n); text != "" && len(text) <= maxText && nf.CheckText("flavour_id", text) == nil {
			found[text] = true
		}
	}
	for _, t := range s.parts {
		add(s.resolve(t.flavor()))
	}
	add(s.property(vnf, "flavour_id"))
	out := make([]string, 0, len(found))
	for flavor := range found {
		out = append(out, flavor)
	}
	slices.Sort(out)
	return out
}

// listOf returns a text, or the texts of a list.
func listOf(n *yaml.Node) []string {
	var out []string
	if text := scalar(n); text != "" {
		out = append(out, nf.Clip(text, maxText))
	}
	for item := range items(n) {
		if text := scalar(item); text != "" && len(out) < maxFaults {
			out = append(out, nf.Clip(text, maxText))
		}
	}
	return out
}
