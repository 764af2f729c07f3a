package tosca

import (
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The types of nodes that Read uses.
const (
	typeVNF        = "tosca.nodes.nfv.VNF"
	typeCompute    = "tosca.nodes.nfv.Vdu.Compute"
	typeDeployable = "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit"
	typeTackerVDU  = "tosca.nodes.nfv.VDU.Tacker"
)

var (
	typesVDU  = []string{typeCompute, typeDeployable, typeTackerVDU, "tosca.nodes.nfv.VDU"}
	typesCP   = []string{"tosca.nodes.nfv.VduCp", "tosca.nodes.nfv.VnfExtCp", "tosca.nodes.nfv.VirtualCp", "tosca.nodes.nfv.Cp", "tosca.nodes.nfv.CP", "tosca.nodes.nfv.CP.Tacker"}
	typesLink = []string{"tosca.nodes.nfv.VnfVirtualLink", "tosca.nodes.nfv.VL"}
)

// Read reads the VNF descriptor that begins with a file. The files are those of a CSAR by
// their clean paths; one whose content is nil is too large to be read. Read returns
// nf.Invalid with a violation for each fault.
func Read(files map[string][]byte, entry string) (Topology, error) {
	out, _, err := read(files, entry)
	return out, err
}

// read returns the topology, and the parts of the descriptor by flavor.
func read(files map[string][]byte, entry string) (Topology, map[string]*scope, error) {
	r, err := load(files, entry)
	if err != nil {
		return Topology{}, nil, err
	}
	out, parts := Topology{Flavors: map[string]Flavor{}}, map[string]*scope{}
	for _, t := range r.templates {
		out.Files = append(out.Files, t.file)
	}
	for _, s := range r.scopes() {
		if parts[s.id] != nil {
			r.fault(s.main.file, nil, "describes the flavor %q, which %s describes, too", s.id, parts[s.id].main.file)
			continue
		}
		out.Flavors[s.id], parts[s.id] = s.flavor(), s
	}
	out.Warnings = r.warnings
	return out, parts, r.err()
}

// scope is the part of the descriptor that one flavor consists of.
type scope struct {
	r        *reader
	id       string
	main     *template
	parts    []*template // main first
	nodes    []entity
	groups   []entity
	policies []entity
	vnf      *entity // nil: there is none
	inputs   map[string]*yaml.Node
	deltas   map[string]map[string]map[string]int // pods by aspect, delta and VDU
}

// entity is a node template, a group or a policy.
type entity struct {
	name, file, typ string
	key, node       *yaml.Node
}

// scopes returns the flavors of the descriptor. A file that names a flavor is one,
// together with the files that it imports and that do not name another. If no file names
// one, all files together are one.
func (r *reader) scopes() []*scope {
	var out []*scope
	for _, t := range r.templates {
		if id := t.flavor(); id != nil {
			s := &scope{r: r, main: t}
			s.add(t, map[*template]bool{})
			s.fill()
			if s.id = scalar(s.resolve(id)); s.id == "" || len(s.id) > maxText || nf.CheckText("flavour_id", s.id) != nil {
				r.fault(t.file, id, "flavour_id must be a text of at most %d bytes", maxText)
				continue
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 || len(r.faults) > 0 {
		return out
	}
	s := &scope{r: r, main: r.templates[0], parts: r.templates}
	s.fill()
	if s.id = DefaultFlavor; s.vnf != nil {
		if id := scalar(s.property(*s.vnf, "flavour_id")); id != "" && len(id) <= maxText && nf.CheckText("flavour_id", id) == nil {
			s.id = id
		}
	}
	if s.id == DefaultFlavor && !slices.ContainsFunc(s.nodes, s.isVDU) {
		return nil
	}
	return []*scope{s}
}

// flavor returns the id of the flavor that a file names, or nil.
func (t *template) flavor() *yaml.Node {
	return get(t.root, "topology_template", "substitution_mappings", "properties", "flavour_id")
}

// add adds a file and the files that it imports.
func (s *scope) add(t *template, seen map[*template]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	s.parts = append(s.parts, t)
	for _, of := range t.imports {
		if of.flavor() == nil {
			s.add(of, seen)
		}
	}
}

// fill collects the node templates, groups and policies of the files.
func (s *scope) fill() {
	seen := map[string]bool{}
	collect := func(t *template, section string, into *[]entity) {
		for key, node := range named(get(t.root, "topology_template", section)) {
			if key.Kind != yaml.ScalarNode || len(key.Value) > maxText || nf.CheckText(section, key.Value) != nil {
				s.r.fault(t.file, key, "a name in %s must be a text of at most %d bytes", section, maxText)
				continue
			}
			if len(*into) == maxNamed {
				s.r.fault(t.file, key, "%s has more than %d entries", section, maxNamed)
				return
			}
			if seen[section+"/"+key.Value] {
				s.r.fault(t.file, key, "%s has the name %q twice", section, key.Value)
				continue
			}
			seen[section+"/"+key.Value] = true
			*into = append(*into, entity{key.Value, t.file, scalar(get(node, "type")), key, node})
		}
	}
	for _, t := range s.parts {
		collect(t, "node_templates", &s.nodes)
		collect(t, "groups", &s.groups)
		collect(t, "policies", &s.policies)
	}
	for i, e := range s.nodes {
		if s.r.derives(e.typ, typeVNF) && s.vnf == nil {
			s.vnf = &s.nodes[i]
		}
	}
}

func (s *scope) isVDU(e entity) bool { return s.r.derives(e.typ, typesVDU...) }

// resolve returns the value that get_input stands for, or the value itself.
func (s *scope) resolve(value *yaml.Node) *yaml.Node {
	for range maxChain {
		input := get(value, "get_input")
		if input == nil {
			return value
		}
		value = s.input(scalar(input))
	}
	return nil
}

// input returns the value of an input: the property of the same name of the node that
// the flavor substitutes, or else its default.
func (s *scope) input(name string) *yaml.Node {
	value, known := s.inputs[name]
	if !known {
		if value = s.findInput(name); s.inputs == nil {
			s.inputs = map[string]*yaml.Node{}
		}
		s.inputs[name] = value
	}
	return value
}

func (s *scope) findInput(name string) *yaml.Node {
	for _, t := range s.r.templates {
		if slices.Contains(s.parts, t) {
			continue
		}
		for _, node := range pairs(get(t.root, "topology_template", "node_templates")) {
			value := get(node, "properties", name)
			if of := scalar(get(node, "type")); value != nil && of != "" && of == s.nodeType() && get(value, "get_input") == nil {
				return value
			}
		}
	}
	for _, t := range s.parts {
		if value := get(t.root, "topology_template", "inputs", name, "default"); value != nil {
			return value
		}
	}
	return nil
}

func (s *scope) nodeType() string {
	return scalar(get(s.main.root, "topology_template", "substitution_mappings", "node_type"))
}

// property returns a property: its own value, or the default of its type; nil if there is
// none.
func (s *scope) property(e entity, name string) *yaml.Node {
	if value := s.resolve(get(e.node, "properties", name)); value != nil {
		return value
	}
	return s.r.definition(e.typ, "properties", name, "default")
}

// list yields the items of a property that is a list. It faults any other value but null.
func (s *scope) list(e entity, property string) iter.Seq[*yaml.Node] {
	return s.r.list(e.file, s.property(e, property), property)
}

// mapping yields the keys and values of a property that is a mapping. It faults any other
// value but null.
func (s *scope) mapping(e entity, property string) iter.Seq2[*yaml.Node, *yaml.Node] {
	return s.r.mapping(e.file, s.property(e, property), property)
}

// text returns a property that is a text of one line, or "" if there is none.
func (s *scope) text(e entity, name string) string {
	value := s.property(e, name)
	if isNull(value) {
		return ""
	}
	if value.Kind != yaml.ScalarNode || len(value.Value) > maxText || nf.CheckText(name, value.Value) != nil {
		s.r.fault(e.file, value, "%s must be a text of at most %d bytes", name, maxText)
		return ""
	}
	return value.Value
}

// flavor reads the flavor.
func (s *scope) flavor() Flavor {
	f := Flavor{
		ID: s.id, NodeType: s.nodeType(), VDUs: map[string]VDU{}, Levels: map[string]Level{}, Aspects: map[string]Aspect{},
		ConnectionPoints: map[string]ConnectionPoint{}, Links: map[string]Link{}, Scripts: map[string]Script{},
	}
	if s.vnf != nil {
		f.Description = s.description(*s.vnf, "flavour_description")
		s.scripts(f.Scripts)
	}
	for _, e := range s.nodes {
		switch {
		case s.isVDU(e) && len(f.VDUs) == maxVDUs:
			s.r.fault(e.file, e.key, "the flavor %q has more than %d VDUs", s.id, maxVDUs)
			return f
		case s.isVDU(e):
			f.VDUs[e.name] = s.vdu(e)
		case s.r.derives(e.typ, typesLink...):
			f.Links[e.name] = Link{Network: s.text(e, "network_name"), Description: s.description(e, "description")}
		}
	}
	external := s.external()
	for _, e := range s.nodes {
		if s.r.derives(e.typ, typesCP...) {
			f.ConnectionPoints[e.name] = s.connectionPoint(e, external, f)
		}
	}
	s.scaling(&f)
	s.placement(&f)
	return f
}

// description returns a text of any lines, cut to the limit.
func (s *scope) description(e entity, name string) string {
	return nf.Clip(scalar(s.property(e, name)), maxText)
}

// vdu reads a VDU.
func (s *scope) vdu(e entity) VDU {
	out := VDU{Name: s.text(e, "name"), Description: s.description(e, "description"), Initial: -1, File: e.file, Line: e.key.Line}
	if out.Name == "" {
		out.Name = e.name
	}
	switch { // the names that Translate gives
	case s.r.derives(e.typ, typeTackerVDU):
		out.Name, out.Workload = "svc-"+asLabel(e.name), kindDeployment
	case s.r.derives(e.typ, typeDeployable):
		out.Name = asLabel(out.Name)
	}
	out.Compute = nf.Clip(scalar(s.resolve(get(e.node, "capabilities", "virtual_compute", "properties",
		"requested_additional_capabilities", "properties", "requested_additional_capability_name"))), maxText)
	profile := s.property(e, "vdu_profile")
	out.Min = s.number(e.file, get(profile, "min_number_of_instances"), "min_number_of_instances", 0)
	out.Max = s.number(e.file, get(profile, "max_number_of_instances"), "max_number_of_instances", 0)
	if profile != nil && out.Min > out.Max && out.Max > 0 {
		s.r.fault(e.file, profile, "min_number_of_instances %d is greater than max_number_of_instances %d", out.Min, out.Max)
	}
	if mcio := s.property(e, "mcio_identification_data"); mcio != nil {
		out.Workload = nf.Clip(scalar(s.resolve(get(mcio, "type"))), maxText)
		if name := scalar(s.resolve(get(mcio, "name"))); name != "" {
			out.Name = nf.Clip(name, maxText)
		}
	}
	return out
}

const maxNumber = 100_000

// number returns a whole number of at least 0, or a default if there is none.
func (s *scope) number(file string, value *yaml.Node, what string, absent int) int {
	value = s.resolve(value)
	if isNull(value) {
		return absent
	}
	var n int
	if value.Kind != yaml.ScalarNode || value.Decode(&n) != nil || n < 0 || n > maxNumber {
		s.r.fault(file, value, "%s must be a whole number of at most %d", what, maxNumber)
		return absent
	}
	return n
}
