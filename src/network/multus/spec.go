package multus

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The fields of a specification that are the driver's. All others are those of
// the main plugin.
const (
	chainField        = "chain"
	versionField      = "cni_version"
	capabilitiesField = "capabilities"
	resourceField     = "resource_name"
	nodeLocalField    = "node_local"
	fixedField        = "fixed"
	existingField     = "existing"
)

var driverFields = []string{chainField, versionField, capabilitiesField, resourceField, nodeLocalField, fixedField}

// The capabilities that attachments can use.
const (
	canIPs       = "ips"
	canMAC       = "mac"
	canBandwidth = "bandwidth"
)

var (
	resourceValue = schema.Matching(schema.ResourcePattern, "the name of an extended resource, such as intel.com/sriov")
	resourceName  = schema.Optional(resourceValue)

	// common are the fields of a specification with a main plugin.
	common = map[string]schema.Field{
		"type": schema.Required(schema.Text), "ipam": schema.Optional(addressing), chainField: schema.Optional(schema.List(schema.Variant(chained, func(s schema.Shape) schema.Shape { return s }))),
		versionField:      schema.Filled(schema.Word(cniVersions...), defaultVersion),
		capabilitiesField: schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{canIPs: schema.Optional(schema.Boolean), canMAC: schema.Optional(schema.Boolean), canBandwidth: schema.Optional(schema.Boolean)}})),
		resourceField:     resourceName, nodeLocalField: flag, fixedField: schema.Optional(schema.List(address)),
	}

	// existingForm is a definition that someone else has made.
	existingForm = schema.Shape{Fields: map[string]schema.Field{
		existingField: schema.Required(schema.Object(schema.Shape{Fields: map[string]schema.Field{
			"namespace": schema.Required(schema.Matching(schema.LabelPattern, "the name of a namespace")),
			"name":      schema.Required(schema.Matching(schema.LabelPattern, "the name of a NetworkAttachmentDefinition without dots: multus does not find others")),
		}})),
		capabilitiesField: schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{canIPs: flag, canMAC: flag, canBandwidth: flag}})),
		resourceField:     resourceName,
	}}

	// rawForm is a configuration of CNI, of any plugin.
	rawForm = schema.Shape{Fields: map[string]schema.Field{"raw": schema.Required(rawConfig), resourceField: resourceName, nodeLocalField: flag}}
)

// addressing checks the IPAM of a plugin. An empty one is no IPAM.
func addressing(c *schema.Checker, path string, v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	m, _ := schema.Variant(ipams, func(i ipam) schema.Shape { return i.shape })(c, path, v).(map[string]any)
	if m == nil {
		return nil
	}
	if check := ipams[m["type"].(string)].check; check != nil {
		check(c, path, m)
	}
	return m
}

// masterField is the interface of the nodes on which a plugin makes its own.
const masterField = "master"

// resolved returns a specification with the interface of the region in place of its name
// there: {"region_interface": "oam"}.
func resolved(c *schema.Checker, given map[string]any, region nf.NetworkRegion) map[string]any {
	named, isObject := given[masterField].(map[string]any)
	if !isObject {
		return given
	}
	given = maps.Clone(given)
	delete(given, masterField)
	name, isText := named["region_interface"].(string)
	switch link := region.Interfaces[name]; {
	case !isText || len(named) != 1:
		c.Fault("spec."+masterField, `must be the name of an interface, or {"region_interface": NAME}`)
	case link == "":
		known := strings.Join(schema.SortedKeys(region.Interfaces), ", ")
		c.Fault("spec."+masterField+".region_interface", "the region names no interface %q; its names: %s", nf.Clip(name, 64), cmp.Or(known, "none"))
	default:
		given[masterField] = link
	}
	return given
}

// check checks a specification, and returns its canonical form.
func (d Driver) check(c *schema.Checker, given map[string]any) map[string]any {
	if d.device == "" {
		return checkSpec(c, given)
	}
	given = maps.Clone(given)
	given["type"] = d.device
	return checkMain(c, given, devices[d.device])
}

func checkSpec(c *schema.Checker, given map[string]any) map[string]any {
	var forms []string
	for _, form := range []string{"type", existingField, "raw"} {
		if given[form] != nil {
			forms = append(forms, form)
		}
	}
	switch {
	case len(forms) == 0:
		c.Fault("spec.type", "is required: one of %s; or use existing or raw", strings.Join(schema.SortedKeys(plugins), ", "))
		return nil
	case len(forms) > 1:
		c.Fault("spec."+forms[1], "cannot be used with %s", forms[0])
		return nil
	}
	switch forms[0] {
	case existingField:
		return existingForm.Check(c, "spec", given)
	case "raw":
		return rawForm.Check(c, "spec", given)
	}
	return checkTyped(c, given)
}

// checkTyped checks a specification with a main plugin.
func checkTyped(c *schema.Checker, given map[string]any) map[string]any {
	kind, _ := given["type"].(string)
	p, known := plugins[kind]
	if !known {
		c.Fault("spec.type", "must be one of %s, got %s; for another plugin, use raw", strings.Join(schema.SortedKeys(plugins), ", "), schema.Shown(given["type"]))
		return nil
	}
	return checkMain(c, given, p)
}

// checkMain checks a specification with the given main plugin.
func checkMain(c *schema.Checker, given map[string]any, p plugin) map[string]any {
	s := p.shape
	s.Fields = maps.Clone(common)
	maps.Copy(s.Fields, p.shape.Fields)
	out := s.Check(c, "spec", given)
	checkChain(c, out)
	switch asked, isObject := given["ipam"].(map[string]any); {
	case given["ipam"] == nil || isObject && len(asked) == 0:
		if p.needsIPAM {
			c.Fault("spec.ipam", "is required: %s fails without an address", given["type"])
		}
	case out["ipam"] == nil: // it is wrong: the rest depends on it
		return out
	}
	checkFixed(c, out)
	checkCapabilities(c, out)
	if out[nodeLocalField] == true && ipamOf(out)["type"] != hostLocal {
		c.Fault("spec."+nodeLocalField, "has an effect only with the IPAM %s", hostLocal)
	}
	return out
}

// checkChain checks the chained plugins together.
func checkChain(c *schema.Checker, spec map[string]any) {
	seen := map[any]bool{}
	for i, link := range schema.ListOf(spec, chainField) {
		m, _ := link.(map[string]any)
		path := fmt.Sprintf("spec.chain[%d].type", i)
		if m != nil && seen[m["type"]] {
			c.Fault(path, "%s is in the chain already", m["type"])
		}
		if m["type"] == firewall && spec[versionField] == firewallVersion {
			c.Fault(path, "firewall does not work with cni_version %s", firewallVersion)
		}
		seen[m["type"]] = true
	}
}

// checkFixed checks the addresses that are kept for attachments, and sorts them.
func checkFixed(c *schema.Checker, spec map[string]any) {
	fixed := schema.ListOf(spec, fixedField)
	if len(fixed) == 0 {
		return
	}
	ipam := ipamOf(spec)
	if ipam["type"] != whereabouts {
		c.Fault("spec."+fixedField, "has an effect only with the IPAM %s; with others, attachments name addresses without it", whereabouts)
		return
	}
	ranges := rangesOf(ipam)
	for i, v := range fixed {
		path := fmt.Sprintf("spec.%s[%d]", fixedField, i)
		a := addressIn(map[string]any{path: v}, path)
		if !a.IsValid() {
			continue
		}
		if slices.Contains(fixed[:i], v) {
			c.Fault(path, "%s is in the list already", a)
		}
		if subnetOf(ranges, a) == (netip.Prefix{}) {
			c.Fault(path, "%s is outside of the ranges of the IPAM", a)
		}
	}
	slices.SortFunc(fixed, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// subnetOf returns the subnet of the ranges with the address, or the zero value.
func subnetOf(ranges []span, a netip.Addr) netip.Prefix {
	for _, r := range ranges {
		if r.subnet.Contains(a) {
			return r.subnet
		}
	}
	return netip.Prefix{}
}

// checkCapabilities checks the capabilities that a specification asks for. Those
// that the plugins have in any case are dropped.
func checkCapabilities(c *schema.Checker, spec map[string]any) {
	asked, _ := spec[capabilitiesField].(map[string]any)
	has := abilities(spec)
	for _, name := range schema.SortedKeys(asked) {
		switch {
		case asked[name] == true && !has[name]:
			c.Fault(schema.Member("spec."+capabilitiesField, name), "the plugins do not take it: %s", reasonAgainst(spec, name))
		case asked[name] == has[name]:
			delete(asked, name)
		}
	}
	if len(asked) == 0 {
		delete(spec, capabilitiesField)
	}
}

// rawConfig checks a configuration of any plugin, or a list of them.
func rawConfig(c *schema.Checker, path string, v any) any {
	given, ok := v.(map[string]any)
	if !ok {
		c.Fault(path, "must be an object, got %s", schema.TypeOf(v))
		return nil
	}
	out := maps.Clone(given)
	if out["cniVersion"] == nil {
		out["cniVersion"] = defaultVersion
	}
	schema.Word(cniVersions...)(c, path+".cniVersion", out["cniVersion"])
	if out["name"] != nil {
		c.Fault(path+".name", "is not allowed: the name is that of the network")
	}
	if out["plugins"] == nil {
		schema.Text(c, path+".type", out["type"])
		return out
	}
	if out["type"] != nil {
		c.Fault(path+".type", "cannot be used with plugins")
	}
	all, _ := out["plugins"].([]any)
	if len(all) == 0 {
		c.Fault(path+".plugins", "must be a list with at least one plugin")
	}
	for i, p := range all {
		m, ok := p.(map[string]any)
		if !ok {
			c.Fault(fmt.Sprintf("%s.plugins[%d]", path, i), "must be an object, got %s", schema.TypeOf(p))
			continue
		}
		schema.Text(c, fmt.Sprintf("%s.plugins[%d].type", path, i), m["type"])
	}
	return out
}
