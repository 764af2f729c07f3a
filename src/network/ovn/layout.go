package ovn

import (
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Layout returns the underlay, the VLAN and the subnets of a network whose specification
// is normalized, as far as the specification says them: a kube-ovn Vlan that exists
// already has its own.
func (Driver) Layout(n nf.Network) (nf.Layout, error) {
	s, _, err := read(n)
	if err != nil {
		return nf.Layout{}, err
	}
	out := nf.Layout{Physical: textOf(s, "physicalNetworkName"), VLAN: numberOf(s, "vlanID")}
	vlan, _ := s["vlan"].(map[string]any)
	direct, _ := s["direct"].(map[string]any)
	for _, text := range []string{textOf(vlan, "providerInterfaceName"), textOf(vlan, "provider"), textOf(direct, "providerInterfaceName")} {
		if text != "" {
			out.Physical = text
		}
	}
	out.VLAN = max(out.VLAN, numberOf(vlan, "vlanId"), numberOf(vlan, "id"))
	var routers []netip.Addr
	for _, text := range textsOf(s, "gateways") {
		if a, err := netip.ParseAddr(text); err == nil {
			routers = append(routers, a)
		}
	}
	for _, text := range textsOf(s, "subnets") {
		cidr, _ := split(text) // ovn-kubernetes also says the length of each node's part
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		r := nf.LayoutRange{Prefix: p}
		if i := slices.IndexFunc(routers, p.Contains); i >= 0 {
			r.Gateway = routers[i]
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out, nil
}

// numberOf returns the number in a field; 0: none.
func numberOf(s spec, field string) int {
	number, _ := s[field].(json.Number)
	id, err := number.Int64()
	if err != nil {
		return 0
	}
	return int(id)
}
