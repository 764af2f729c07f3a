package tosca

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// NSD is what a network service descriptor (ETSI SOL001, chapter 7) says about a network
// service.
type NSD struct {
	ID      string
	Name    string
	Flavor  string // deployment flavor
	Members []NSDMember
	Links   []string // virtual links that members are connected to, sorted
}

// NSDMember is a VNF of a network service.
type NSDMember struct {
	Name   string // of the node template, as a DNS label; with a number if its profile has several
	VNFD   string
	Flavor string
	Level  string   // instantiation level; empty: the default of the flavor
	Group  int      // after those of its dependencies, from 1
	Links  []string // virtual links that it is connected to, sorted
	Line   int      // of the node template
}

// The types of an NSD. The lists have the names of several versions of SOL001 and of
// Tacker.
const (
	typeNS     = "tosca.nodes.nfv.NS"
	typeNSLink = "tosca.nodes.nfv.NsVirtualLink"
	typeSap    = "tosca.nodes.nfv.Sap"
	typePNF    = "tosca.nodes.nfv.PNF"
)

var typesForwarding = []string{
	"tosca.nodes.nfv.NFP", "tosca.nodes.nfv.FP", "tosca.nodes.nfv.FP.TackerV2", "tosca.nodes.nfv.FP.Tacker", "tosca.nodes.nfv.Forwarding", "tosca.nodes.nfv.Forwarder",
	"tosca.nodes.nfv.NfpPosition", "tosca.nodes.nfv.NfpPositionElement", "tosca.nodes.nfv.VNFFG",
	"tosca.groups.nfv.VNFFG", "tosca.groups.nfv.NFP", "tosca.policies.nfv.NfpRule", "tosca.policies.nfv.Nfp",
}

const (
	maxProfile  = nf.MaxMembers
	forwardGone = "the service does not steer traffic between VNFs, so forwarding graphs are not supported; remove it"
)

// ReadNSD reads a network service descriptor of one file. Files that it imports are not
// read: types that derive from those of SOL001 must be in the descriptor. It returns
// nf.Invalid with a violation for each fault, also for each part that a network service
// would lose: a forwarding graph, a scaling aspect, a PNF or a nested network service.
// Bit rates of virtual links and SAPs are not used.
func ReadNSD(file string, text []byte) (NSD, error) {
	r := &reader{files: map[string][]byte{file: text}, types: map[string]*yaml.Node{}, alone: true}
	if r.load(file, map[string]*template{}); len(r.faults) > 0 {
		return NSD{}, r.nsdError()
	}
	s := &scope{r: r, main: r.templates[0], parts: r.templates}
	s.fill()
	n := nsdReader{scope: s, links: map[string]string{}, networks: map[string]bool{}, members: map[string]*nsdProfile{}}
	out := n.read()
	return out, r.nsdError()
}

func (r *reader) nsdError() error {
	if len(r.faults) == 0 {
		return nil
	}
	return nf.E(nf.Invalid, "read", "the network service descriptor", r.faults)
}

// nsdReader reads the topology of an NSD.
type nsdReader struct {
	scope    *scope
	service  *entity
	links    map[string]string      // names of networks by node template
	networks map[string]bool        // the names
	members  map[string]*nsdProfile // by node template
}

// nsdProfile is a VNF of the descriptor with its requirements.
type nsdProfile struct {
	entity

	member NSDMember
	number int
	after  []string // node templates that it depends on
	state  int      // of ordered: 1 while it is being ordered, and 2 after
}

func (n *nsdReader) read() NSD {
	for _, e := range n.scope.nodes {
		n.node(e)
	}
	for _, e := range slices.Concat(n.scope.groups, n.scope.policies) {
		if n.scope.r.derives(e.typ, typesForwarding...) {
			n.scope.r.fault(e.file, e.key, "%s has the type %s: %s", quoted(e.name), quoted(e.typ), forwardGone)
			continue
		}
		n.scope.r.fault(e.file, e.key, "%s has the type %s, which is not supported in a network service", quoted(e.name), quoted(e.typ))
	}
	if n.service == nil {
		n.scope.r.fault(n.scope.main.file, get(n.scope.main.root, "topology_template"), "has no node template whose type derives from %s", typeNS)
		return NSD{}
	}
	out := NSD{ID: n.required(*n.service, "descriptor_id"), Name: n.scope.text(*n.service, "name"), Flavor: n.scope.text(*n.service, "flavour_id")}
	if len(n.members) == 0 {
		n.scope.r.fault(n.service.file, n.service.key, "the network service has no VNF")
	}
	for _, e := range n.scope.nodes {
		if p := n.members[e.name]; p != nil {
			n.connect(p)
		}
	}
	for _, e := range n.scope.nodes {
		if p := n.members[e.name]; p != nil {
			n.order(p)
			out.Members = append(out.Members, p.all()...)
			out.Links = append(out.Links, p.member.Links...)
		}
	}
	if len(out.Members) > nf.MaxMembers {
		n.scope.r.fault(n.service.file, n.service.key, "the network service has %d VNFs, and at most %d are allowed", len(out.Members), nf.MaxMembers)
	}
	n.unique(out.Members)
	slices.Sort(out.Links)
	out.Links = slices.Compact(out.Links)
	return out
}

// node reads a node template, without its requirements.
func (n *nsdReader) node(e entity) {
	refuse := func(why string) {
		n.scope.r.fault(e.file, e.key, "%s has the type %s: %s", quoted(e.name), quoted(e.typ), why)
	}
	switch {
	case n.scope.r.derives(e.typ, typesForwarding...):
		refuse(forwardGone)
	case n.scope.r.derives(e.typ, typeNSLink):
		network := n.label(e)
		if n.networks[network] {
			n.scope.r.fault(e.file, e.key, "the network %s of %s is also that of another virtual link", network, quoted(e.name))
		}
		n.links[e.name], n.networks[network] = network, true
	case n.scope.r.derives(e.typ, typeSap): // where the users of the service connect; the network is its virtual link
	case n.scope.r.derives(e.typ, typePNF):
		refuse("PNFs are not supported")
	case n.isService(e) && n.service != nil:
		refuse("a network service in another one is not supported")
	case n.isService(e):
		n.service = &e
	case n.scope.r.mayBeVNF(e.typ) && n.scope.property(e, "descriptor_id") != nil:
		n.members[e.name] = n.profile(e)
	default:
		refuse("it is not a VNF with the property descriptor_id, and such nodes are not supported in a network service")
	}
}

// isService reports whether a node is the network service. Its type is often in a file
// that the descriptor imports.
func (n *nsdReader) isService(e entity) bool {
	return n.scope.r.derives(e.typ, typeNS) || e.typ != "" && e.typ == n.scope.nodeType() || n.scope.property(e, "designer") != nil && n.scope.r.types[e.typ] == nil
}

// profile reads the VNF of a node template.
func (n *nsdReader) profile(e entity) *nsdProfile {
	p := &nsdProfile{entity: e, number: 1, member: NSDMember{Line: e.key.Line, Name: n.label(e), VNFD: n.required(e, "descriptor_id"), Flavor: n.scope.text(e, "flavour_id")}}
	profile := n.scope.property(e, "vnf_profile")
	if isNull(profile) {
		return p
	}
	if level := n.scope.resolve(get(profile, "instantiation_level")); !isNull(level) {
		if level.Kind != yaml.ScalarNode || len(level.Value) > maxText || nf.CheckText("instantiation_level", level.Value) != nil {
			n.scope.r.fault(e.file, level, "instantiation_level must be a text of at most %d bytes", maxText)
		} else {
			p.member.Level = level.Value
		}
	}
	if number := n.scope.resolve(get(profile, "min_number_of_instances")); !isNull(number) {
		var err error
		if p.number, err = strconv.Atoi(scalar(number)); err != nil || p.number < 1 || p.number > maxProfile {
			n.scope.r.fault(e.file, number, "min_number_of_instances must be a number from 1 to %d, because that many instances are created", maxProfile)
			p.number = 1
		}
	}
	return p
}

// label returns the name of a node template as a DNS label.
func (n *nsdReader) label(e entity) string {
	out := asLabel(e.name)
	if !isLabel(out) {
		n.scope.r.fault(e.file, e.key, "the name %s must have at most 63 letters, digits and hyphens", quoted(e.name))
	}
	return out
}

// required returns a property that must be there.
func (n *nsdReader) required(e entity, name string) string {
	if value := n.scope.property(e, name); isNull(value) || value.Kind == yaml.ScalarNode && value.Value == "" {
		n.scope.r.fault(e.file, e.key, "%s lacks the property %s", quoted(e.name), name)
		return ""
	}
	return n.scope.text(e, name)
}

// connect reads the requirements of a VNF: each leads to a virtual link, or to a VNF that
// it depends on.
func (n *nsdReader) connect(p *nsdProfile) {
	for key, value := range named(get(p.entity.node, "requirements")) {
		target := scalar(cmp.Or(get(value, "node"), value))
		link, isLink := n.links[target]
		switch {
		case isLink:
			p.member.Links = append(p.member.Links, link)
		case n.members[target] != nil && target != p.name:
			p.after = append(p.after, target)
		default:
			n.scope.r.fault(p.file, key, "the requirement %s of %s names %s, which is not a virtual link or another VNF of the descriptor", quoted(key.Value), quoted(p.name), quoted(target))
		}
	}
	slices.Sort(p.member.Links)
	p.member.Links = slices.Compact(p.member.Links)
}

// order sets the group of a VNF: 1, or that after the ones it depends on.
func (n *nsdReader) order(p *nsdProfile) int {
	switch p.state {
	case 1:
		n.scope.r.fault(p.file, p.key, "%s depends on itself", quoted(p.name))
		return 0
	case 2:
		return p.member.Group
	}
	p.state, p.member.Group = 1, 1
	for _, name := range p.after {
		p.member.Group = max(p.member.Group, n.order(n.members[name])+1)
	}
	p.state = 2
	return p.member.Group
}

// all returns the members that a profile describes.
func (p *nsdProfile) all() []NSDMember {
	if p.number == 1 {
		return []NSDMember{p.member}
	}
	out := make([]NSDMember, p.number)
	for i := range out {
		out[i] = p.member
		out[i].Name = fmt.Sprintf("%s-%d", p.member.Name, i+1)
	}
	return out
}

// unique refuses members of one name.
func (n *nsdReader) unique(all []NSDMember) {
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.Name] {
			n.scope.r.fault(n.service.file, n.service.key, "two VNFs have the name %s", m.Name)
		}
		seen[m.Name] = true
	}
}

// quoted returns a name of the descriptor in a message.
func quoted(text string) string {
	return strconv.Quote(nf.Clip(strings.ToValidUTF8(text, "?"), maxQuote))
}
