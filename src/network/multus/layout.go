package multus

import (
	"encoding/json"
	"net/netip"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Layout returns the underlay, the VLAN and the ranges of a network whose specification
// is normalized, as far as the specification says them.
func (Driver) Layout(n nf.Network) (nf.Layout, error) {
	spec, err := read(n)
	if err != nil {
		return nf.Layout{}, err
	}
	var out nf.Layout
	if all := pluginsOf(spec); len(all) > 0 {
		main, _ := all[0].(map[string]any)
		out.Physical, out.VLAN = physicalOf(spec, main), vlanOf(main)
	}
	ipam := ipamOf(spec)
	for _, s := range rangesOf(ipam) {
		out.Ranges = append(out.Ranges, nf.LayoutRange{Prefix: s.subnet, Gateway: gatewayOf(ipam, s), Start: s.start.Unmap(), End: s.end.Unmap()})
	}
	if len(out.Ranges) == 0 {
		out.Ranges = staticRanges(ipam)
	}
	return out, nil
}

// gatewayOf returns the gateway of a range. That of whereabouts is beside its ranges.
func gatewayOf(ipam map[string]any, s span) netip.Addr {
	if s.gateway.IsValid() {
		return s.gateway
	}
	if a := addressIn(ipam, "gateway"); s.subnet.Contains(a) {
		return a
	}
	return netip.Addr{}
}

// staticRanges returns the subnets of fixed addresses.
func staticRanges(ipam map[string]any) (out []nf.LayoutRange) {
	for _, v := range schema.ListOf(ipam, "addresses") {
		m, _ := v.(map[string]any)
		text, _ := m["address"].(string)
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, nf.LayoutRange{Prefix: p.Masked(), Gateway: addressIn(m, "gateway")})
		}
	}
	return out
}

// physicalOf returns the name of the interface or the resource below a network.
func physicalOf(spec, main map[string]any) string {
	for _, name := range []string{"master", "device", "pciBusID", "hwaddr", "kernelpath"} {
		if text, _ := main[name].(string); text != "" {
			return text
		}
	}
	text, _ := spec[resourceField].(string)
	return text
}

// vlanOf returns the VLAN of a plugin; 0: none, or several.
func vlanOf(main map[string]any) int {
	for _, name := range []string{"vlanId", "vlan"} {
		number, isNumber := main[name].(json.Number)
		if id, err := number.Int64(); isNumber && err == nil && id > 0 && id < 4095 {
			return int(id)
		}
	}
	return 0
}
