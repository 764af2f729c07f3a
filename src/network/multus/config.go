package multus

import (
	"maps"
	"net/netip"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
)

// fixedSuffix ends the name of the definition for the addresses in fixed.
const fixedSuffix = "-fixed"

// pluginsOf returns the configurations of a specification's plugins, the main one
// first. Those of a raw specification are as they were given.
func pluginsOf(spec map[string]any) []any {
	raw, isRaw := spec["raw"].(map[string]any)
	switch {
	case isRaw && raw["plugins"] != nil:
		return schema.ListOf(raw, "plugins")
	case isRaw:
		one := maps.Clone(raw)
		delete(one, "cniVersion")
		return []any{one}
	case spec["type"] == nil:
		return nil
	}
	main := maps.Clone(spec)
	for _, name := range driverFields {
		delete(main, name)
	}
	return append([]any{main}, schema.ListOf(spec, chainField)...)
}

// ipamOf returns the IPAM of the main plugin, or nil.
func ipamOf(spec map[string]any) map[string]any {
	for _, p := range pluginsOf(spec) {
		main, _ := p.(map[string]any)
		ipam, _ := main["ipam"].(map[string]any)
		return ipam
	}
	return nil
}

// chains reports whether a plugin is in the chain.
func chains(spec map[string]any, plugin string) bool {
	for _, link := range schema.ListOf(spec, chainField) {
		if m, _ := link.(map[string]any); m["type"] == plugin {
			return true
		}
	}
	return false
}

// abilities returns the capabilities that the plugins of a specification have.
func abilities(spec map[string]any) map[string]bool {
	kind, _ := spec["type"].(string)
	setter := mainOf(kind).mac
	address := ipamOf(spec)["type"]
	return map[string]bool{
		canIPs:       address == static || address == hostLocal || len(schema.ListOf(spec, fixedField)) > 0,
		canMAC:       setter == ownMAC || setter == tunedMAC && chains(spec, tuning),
		canBandwidth: chains(spec, bandwidth),
	}
}

// capabilities returns the capabilities that attachments can use.
func capabilities(spec map[string]any) map[string]bool {
	asked, _ := spec[capabilitiesField].(map[string]any)
	has := map[string]bool{}
	if spec["type"] != nil {
		has = abilities(spec)
	}
	for _, p := range pluginsOf(spec) {
		if m, _ := p.(map[string]any); spec["raw"] != nil {
			own, _ := m["capabilities"].(map[string]any)
			for name, can := range own {
				has[name] = has[name] || can == true
			}
		}
	}
	for name, can := range asked {
		has[name] = can == true
	}
	return has
}

// reasonAgainst says why attachments cannot use a capability.
func reasonAgainst(spec map[string]any, capability string) string {
	kind, _ := spec["type"].(string)
	asked, _ := spec[capabilitiesField].(map[string]any)
	address, _ := ipamOf(spec)["type"].(string)
	switch {
	case spec[existingField] != nil:
		return "the network's specification does not declare capabilities." + capability
	case spec["raw"] != nil:
		return "no plugin of the network declares capabilities." + capability
	case asked[capability] == false:
		return "the network's specification sets capabilities." + capability + " to false"
	case capability == canBandwidth:
		return "the network has no plugin bandwidth in its chain"
	case capability == canMAC && mainOf(kind).mac == masterMAC:
		return "the plugin " + kind + " uses the MAC address of its master"
	case capability == canMAC:
		return "the plugin " + kind + " sets no MAC address; add tuning to the network's chain"
	case address == "":
		return "the network has no IPAM"
	}
	return ipams[address].noIPs
}

// configOf returns the configuration of CNI of a network: canonical JSON.
func configOf(name string, spec map[string]any, fixed bool) (string, error) {
	list := map[string]any{"cniVersion": spec[versionField]}
	if raw, ok := spec["raw"].(map[string]any); ok {
		if list["cniVersion"] = raw["cniVersion"]; raw["plugins"] != nil {
			list = maps.Clone(raw)
		}
	}
	list["name"] = name
	all := pluginsOf(spec)
	if spec["raw"] == nil {
		all = completed(spec, all, fixed)
	}
	list["plugins"] = all
	out, err := schema.Canonical(list)
	return string(out), err
}

// completed returns the plugins with the capabilities that they take, and with
// the addressing of the definition.
func completed(spec map[string]any, all []any, fixed bool) []any {
	can := capabilities(spec)
	kind, _ := spec["type"].(string)
	main := all[0].(map[string]any)
	if len(schema.ListOf(spec, fixedField)) > 0 {
		main["ipam"] = splitIPAM(spec, fixed)
	}
	takes := map[string]any{}
	if ipam, _ := main["ipam"].(map[string]any); can[canIPs] && (ipam["type"] == static || ipam["type"] == hostLocal) {
		takes[canIPs] = true
	}
	if can[canMAC] && mainOf(kind).mac == ownMAC {
		takes[canMAC] = true
	}
	out := []any{withCapabilities(main, takes)}
	for _, link := range all[1:] {
		m, _ := link.(map[string]any)
		switch takes := map[string]any{}; m["type"] {
		case tuning:
			if can[canMAC] {
				takes[canMAC] = true
			}
			m = withCapabilities(m, takes)
		case bandwidth:
			if can[canBandwidth] {
				takes[canBandwidth] = true
			}
			m = withCapabilities(m, takes)
		case portmap:
			m = withCapabilities(m, map[string]any{"portMappings": true})
		}
		out = append(out, m)
	}
	return out
}

// withCapabilities returns a plugin's configuration with capabilities, if there
// are any.
func withCapabilities(m, capabilities map[string]any) map[string]any {
	if len(capabilities) == 0 {
		return m
	}
	m = maps.Clone(m)
	m["capabilities"] = capabilities
	return m
}

// splitIPAM returns the IPAM of one of the two definitions of a network with
// fixed addresses: whereabouts without these, or static.
func splitIPAM(spec map[string]any, fixed bool) map[string]any {
	ipam := maps.Clone(ipamOf(spec))
	if !fixed {
		without := func(r map[string]any) {
			s, known := spanOf(r, whereaboutsKeys)
			exclude := append([]any{}, schema.ListOf(r, "exclude")...)
			for _, v := range schema.ListOf(spec, fixedField) {
				if a := addressIn(map[string]any{"": v}, ""); known && s.subnet.Contains(a) {
					exclude = append(exclude, hostPrefix(a))
				}
			}
			if len(exclude) > 0 {
				r["exclude"] = exclude
			}
		}
		without(ipam)
		var ranges []any
		for _, r := range schema.ListOf(ipam, "ipRanges") {
			m, _ := r.(map[string]any)
			m = maps.Clone(m)
			without(m)
			ranges = append(ranges, m)
		}
		if ranges != nil {
			ipam["ipRanges"] = ranges
		}
		return ipam
	}
	out := map[string]any{"type": static}
	if routes := routesVia(schema.ListOf(ipam, "routes"), addressIn(ipam, "gateway")); routes != nil {
		out["routes"] = routes
	}
	if ipam["dns"] != nil {
		out["dns"] = ipam["dns"]
	}
	return out
}

// routesVia returns routes with the gateway in those that have none: an address
// of an attachment has no gateway.
func routesVia(routes []any, gateway netip.Addr) (out []any) {
	for _, r := range routes {
		m, _ := r.(map[string]any)
		dst, _ := m["dst"].(string)
		if m["gw"] == nil && gateway.IsValid() && strings.Contains(dst, ":") == gateway.Is6() {
			m = maps.Clone(m)
			m["gw"] = gateway.String()
		}
		out = append(out, m)
	}
	return out
}
