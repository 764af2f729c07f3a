package schema

import (
	"fmt"
	"net/netip"
)

// Gateways checks the gateways of an attachment's default route, and returns them:
// multus sets at most one of each family.
func Gateways(c *Checker, addresses []string) (out []any) {
	families := map[bool]bool{}
	for i, s := range addresses {
		path := fmt.Sprintf("default_route[%d]", i)
		gateway, err := ParseAddress(s)
		if err != nil {
			c.Fault(path, "%s", err)
			continue
		}
		is4 := netip.MustParseAddr(gateway).Is4()
		if families[is4] {
			c.Fault(path, "multus sets one default route for each of IPv4 and IPv6")
		}
		families[is4] = true
		out = append(out, gateway)
	}
	return out
}

// Single reports a request of an attachment that only one pod can have.
func Single(c *Checker, path, request string, replicas int) {
	if replicas != 1 {
		c.Fault(path, "%s needs a workload with one pod, and this one has %s", request, Pods(replicas))
	}
}

// Pods returns a number of pods in words. It is unknown if it is negative.
func Pods(replicas int) string {
	if replicas < 0 {
		return "an unknown number of pods"
	}
	return fmt.Sprintf("%d pods", replicas)
}

// ParseIP parses an address with or without a prefix length.
func ParseIP(s string) (p netip.Prefix, bare bool, err error) {
	if a, err := ParseAddress(s); err == nil {
		addr := netip.MustParseAddr(a)
		return netip.PrefixFrom(addr, addr.BitLen()), true, nil
	}
	text, err := ParseInterface(s)
	if err != nil {
		return p, false, err
	}
	return netip.MustParsePrefix(text), false, nil
}
