package multus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

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
)

var driverFields = []string{chainField, versionField, capabilitiesField, resourceField, nodeLocalField, fixedField}

// The capabilities that attachments can use.
const (
	canIPs       = "ips"
	canMAC       = "mac"
	canBandwidth = "bandwidth"
)

var (
	resourceName = optional(matching(resourcePattern, "the name of an extended resource, such as intel.com/sriov"))

	// common are the fields of a specification with a main plugin.
	common = map[string]field{
		"type": required(text), "ipam": optional(addressing), chainField: optional(list(variant(chained, func(s shape) shape { return s }))),
		versionField:      filled(word(cniVersions...), defaultVersion),
		capabilitiesField: optional(object(shape{fields: map[string]field{canIPs: optional(boolean), canMAC: optional(boolean), canBandwidth: optional(boolean)}})),
		resourceField:     resourceName, nodeLocalField: flag, fixedField: optional(list(address)),
	}

	// existingForm is a definition that someone else has made.
	existingForm = shape{fields: map[string]field{
		"existing": required(object(shape{fields: map[string]field{
			"namespace": required(matching(labelPattern, "the name of a namespace")),
			"name":      required(matching(labelPattern, "the name of a NetworkAttachmentDefinition without dots: multus does not find others")),
		}})),
		capabilitiesField: optional(object(shape{fields: map[string]field{canIPs: flag, canMAC: flag, canBandwidth: flag}})),
		resourceField:     resourceName,
	}}

	// rawForm is a configuration of CNI, of any plugin.
	rawForm = shape{fields: map[string]field{"raw": required(rawConfig), resourceField: resourceName, nodeLocalField: flag}}
)

// addressing checks the IPAM of a plugin. An empty one is no IPAM.
func addressing(c *checker, path string, v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	m, _ := variant(ipams, func(i ipam) shape { return i.shape })(c, path, v).(map[string]any)
	if m == nil {
		return nil
	}
	if check := ipams[m["type"].(string)].check; check != nil {
		check(c, path, m)
	}
	return m
}

// parse returns a specification in its canonical form. Its error is nf.Invalid
// with all violations.
func parse(spec json.RawMessage) (map[string]any, error) {
	c := &checker{}
	given, err := decode(spec)
	if err != nil {
		c.fault("spec", "must be an object in JSON: %s", err)
	} else if out := checkSpec(c, given); len(c.wrong) == 0 {
		return out, nil
	}
	return nil, nf.E(nf.Invalid, "check", "network", c.wrong)
}

// decode decodes an object, with numbers as they are written.
func decode(spec []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(spec))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is text after the object")
	}
	return m, nil
}

func checkSpec(c *checker, given map[string]any) map[string]any {
	var forms []string
	for _, form := range []string{"type", "existing", "raw"} {
		if given[form] != nil {
			forms = append(forms, form)
		}
	}
	switch {
	case len(forms) == 0:
		c.fault("spec.type", "is required: one of %s; or use existing or raw", strings.Join(sortedKeys(plugins), ", "))
		return nil
	case len(forms) > 1:
		c.fault("spec."+forms[1], "cannot be used with %s", forms[0])
		return nil
	}
	switch forms[0] {
	case "existing":
		return existingForm.check(c, "spec", given)
	case "raw":
		return rawForm.check(c, "spec", given)
	}
	return checkTyped(c, given)
}

// checkTyped checks a specification with a main plugin.
func checkTyped(c *checker, given map[string]any) map[string]any {
	kind, _ := given["type"].(string)
	p, known := plugins[kind]
	if !known {
		c.fault("spec.type", "must be one of %s, got %s; for another plugin, use raw", strings.Join(sortedKeys(plugins), ", "), shown(given["type"]))
		return nil
	}
	s := p.shape
	s.fields = maps.Clone(common)
	maps.Copy(s.fields, p.shape.fields)
	out := s.check(c, "spec", given)
	checkChain(c, out)
	switch asked, isObject := given["ipam"].(map[string]any); {
	case given["ipam"] == nil || isObject && len(asked) == 0:
		if p.needsIPAM {
			c.fault("spec.ipam", "is required: %s fails without an address", kind)
		}
	case out["ipam"] == nil: // it is wrong: the rest depends on it
		return out
	}
	checkFixed(c, out)
	checkCapabilities(c, out)
	if out[nodeLocalField] == true && ipamOf(out)["type"] != hostLocal {
		c.fault("spec."+nodeLocalField, "has an effect only with the IPAM %s", hostLocal)
	}
	return out
}

// checkChain checks the chained plugins together.
func checkChain(c *checker, spec map[string]any) {
	seen := map[any]bool{}
	for i, link := range listOf(spec, chainField) {
		m, _ := link.(map[string]any)
		path := fmt.Sprintf("spec.chain[%d].type", i)
		if m != nil && seen[m["type"]] {
			c.fault(path, "%s is in the chain already", m["type"])
		}
		if m["type"] == firewall && spec[versionField] == firewallVersion {
			c.fault(path, "firewall does not work with cni_version %s", firewallVersion)
		}
		seen[m["type"]] = true
	}
}

// checkFixed checks the addresses that are kept for attachments, and sorts them.
func checkFixed(c *checker, spec map[string]any) {
	fixed := listOf(spec, fixedField)
	if len(fixed) == 0 {
		return
	}
	ipam := ipamOf(spec)
	if ipam["type"] != whereabouts {
		c.fault("spec."+fixedField, "has an effect only with the IPAM %s; with others, attachments name addresses without it", whereabouts)
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
			c.fault(path, "%s is in the list already", a)
		}
		if subnetOf(ranges, a) == (netip.Prefix{}) {
			c.fault(path, "%s is outside of the ranges of the IPAM", a)
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
func checkCapabilities(c *checker, spec map[string]any) {
	asked, _ := spec[capabilitiesField].(map[string]any)
	has := abilities(spec)
	for _, name := range sortedKeys(asked) {
		switch {
		case asked[name] == true && !has[name]:
			c.fault(member("spec."+capabilitiesField, name), "the plugins do not take it: %s", reasonAgainst(spec, name))
		case asked[name] == has[name]:
			delete(asked, name)
		}
	}
	if len(asked) == 0 {
		delete(spec, capabilitiesField)
	}
}

// rawConfig checks a configuration of any plugin, or a list of them.
func rawConfig(c *checker, path string, v any) any {
	given, ok := v.(map[string]any)
	if !ok {
		c.fault(path, "must be an object, got %s", typeOf(v))
		return nil
	}
	out := maps.Clone(given)
	if out["cniVersion"] == nil {
		out["cniVersion"] = defaultVersion
	}
	word(cniVersions...)(c, path+".cniVersion", out["cniVersion"])
	if out["name"] != nil {
		c.fault(path+".name", "is not allowed: the name is that of the network")
	}
	if out["plugins"] == nil {
		text(c, path+".type", out["type"])
		return out
	}
	if out["type"] != nil {
		c.fault(path+".type", "cannot be used with plugins")
	}
	all, _ := out["plugins"].([]any)
	if len(all) == 0 {
		c.fault(path+".plugins", "must be a list with at least one plugin")
	}
	for i, p := range all {
		m, ok := p.(map[string]any)
		if !ok {
			c.fault(fmt.Sprintf("%s.plugins[%d]", path, i), "must be an object, got %s", typeOf(p))
			continue
		}
		text(c, fmt.Sprintf("%s.plugins[%d].type", path, i), m["type"])
	}
	return out
}
