package tosca

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// requirement returns the node that a requirement names, or nil. The value is the name,
// or a mapping with the field node.
func requirement(e entity, names ...string) *yaml.Node {
	for key, value := range named(get(e.node, "requirements")) {
		if slices.Contains(names, key.Value) {
			return cmp.Or(get(value, "node"), value)
		}
	}
	return nil
}

// external returns the requirements of the VNF by the connection points that they expose.
// A requirement without a connection point exposes none.
func (s *scope) external() map[string]string {
	out := map[string]string{}
	for key, value := range named(get(s.main.root, "topology_template", "substitution_mappings", "requirements")) {
		for item := range items(value) {
			if name := scalar(item); name != "" {
				out[name] = key.Value
			}
			break // the second item is the requirement of the connection point
		}
	}
	return out
}

// linkOf returns the virtual link that a connection point names, or nil.
func linkOf(e entity) *yaml.Node {
	to := requirement(e, "virtual_link", "virtualLink", "internal_virtual_link")
	if isNull(to) {
		return nil
	}
	return to
}

// connectionPoint reads a connection point. It may be an external one without a link. As
// in Tacker, one that names other nodes is bound to none.
func (s *scope) connectionPoint(e entity, external map[string]string, f Flavor) ConnectionPoint {
	out := ConnectionPoint{External: external[e.name], Order: s.number(e.file, s.property(e, "order"), "order", -1)}
	if to := requirement(e, "virtual_binding", "virtualBinding", "target"); to != nil {
		if _, found := f.VDUs[scalar(to)]; found {
			out.VDU = scalar(to)
		} else {
			s.r.warn(e.file, to, "the connection point %q is bound to %q, which is not a VDU", e.name, nf.Clip(scalar(to), maxQuote))
		}
	}
	if to := linkOf(e); to != nil {
		if _, found := f.Links[scalar(to)]; found {
			out.Link = scalar(to)
		} else {
			s.r.warn(e.file, to, "the connection point %q has the link %q, which is not a virtual link of the VNF", e.name, nf.Clip(scalar(to), maxQuote))
		}
	}
	return out
}

const (
	typeAffinity     = "tosca.policies.nfv.AffinityRule"
	typeAntiAffinity = "tosca.policies.nfv.AntiAffinityRule"
	typePlacement    = "tosca.groups.nfv.PlacementGroup"
)

// placement reads the rules of affinity. A target is a node or a placement group.
func (s *scope) placement(f *Flavor) {
	groups := map[string]entity{}
	for _, g := range s.groups {
		if s.r.derives(g.typ, typePlacement) {
			groups[g.name] = g
		}
	}
	for _, p := range s.policies {
		anti := s.r.derives(p.typ, typeAntiAffinity)
		if !anti && !s.r.derives(p.typ, typeAffinity) {
			continue
		}
		rule := PlacementRule{Name: p.name, Anti: anti, Scope: s.text(p, "scope")}
		for target := range s.r.list(p.file, get(p.node, "targets"), "targets") {
			if group, isGroup := groups[scalar(target)]; isGroup {
				for member := range s.r.list(group.file, get(group.node, "members"), "members") {
					s.member(&rule, group.file, member, f)
				}
			} else {
				s.member(&rule, p.file, target, f)
			}
		}
		if len(rule.VDUs) > 0 {
			f.Placement = append(f.Placement, rule)
		}
	}
}

// member adds a VDU to a rule. Another node is ignored with a warning.
func (s *scope) member(rule *PlacementRule, file string, of *yaml.Node, f *Flavor) {
	vdu := scalar(of)
	if _, isVDU := f.VDUs[vdu]; !isVDU {
		s.r.warn(file, of, "the rule %q has the target %q, which is neither a VDU nor a group of VDUs", rule.Name, vdu)
	} else if !slices.Contains(rule.VDUs, vdu) {
		rule.VDUs = append(rule.VDUs, vdu)
	}
}
