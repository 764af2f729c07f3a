package multus

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Connect checks an attachment of a workload to a network, and returns it as an
// element of the annotation. The definition is in namespace. replicas is the
// number of pods, or less than 0 if it is unknown. The error is nf.Violations
// whose fields are those of the attachment: "ips[0]", "mac". The specification of
// the network must be normalized.
func (Driver) Connect(n nf.Network, namespace string, a nf.Attachment, replicas int) (nf.Connection, error) {
	spec, err := read(n)
	if err != nil {
		return nf.Connection{}, err
	}
	t := attaching{checker: &checker{}, spec: spec, can: capabilities(spec), ipam: ipamOf(spec), asked: a, replicas: replicas}
	selection := map[string]any{"name": n.Name, "namespace": namespace}
	if existing, ok := spec["existing"].(map[string]any); ok {
		maps.Copy(selection, existing)
	}
	if ips := t.ips(); len(ips) > 0 {
		selection["ips"] = ips
		if len(listOf(spec, fixedField)) > 0 {
			selection["name"] = n.Name + fixedSuffix
		}
	}
	if mac := t.mac(); mac != nil {
		selection["mac"] = mac
	}
	if gateways := t.defaultRoute(); len(gateways) > 0 {
		selection["default-route"] = gateways
	}
	if limits := t.bandwidth(); limits != nil {
		selection["bandwidth"] = limits
	}
	t.shared()
	if len(t.checker.wrong) > 0 {
		return nf.Connection{}, t.checker.wrong
	}
	c := nf.Connection{Attachment: a, Selection: selection}
	if resource, _ := spec[resourceField].(string); resource != "" {
		c.Resources = map[string]int64{resource: 1}
	}
	return c, nil
}

// attaching is the check of one attachment.
type attaching struct {
	checker  *checker
	spec     map[string]any
	can      map[string]bool
	ipam     map[string]any // may be nil
	asked    nf.Attachment
	replicas int
}

// ips returns the addresses that the attachment asks for, in the form that the
// network's IPAM takes.
func (t attaching) ips() (out []any) {
	c := t.checker
	kind := t.ipam["type"]
	switch {
	case len(t.asked.IPs) == 0 && kind == static && len(listOf(t.ipam, "addresses")) == 0:
		c.fault("ips", "is required: the network gives no addresses")
		return nil
	case len(t.asked.IPs) == 0:
		return nil
	case !t.can[canIPs]:
		c.fault("ips", "the network does not take addresses: %s", reasonAgainst(t.spec, canIPs))
		return nil
	case kind == hostLocal && len(t.asked.IPs) > 1:
		c.fault("ips[1]", "the network takes one address: multus passes more of them to host-local in a form that it rejects")
	}
	t.single("ips", "a fixed address")
	seen := map[netip.Addr]bool{}
	for i, s := range t.asked.IPs {
		path := fmt.Sprintf("ips[%d]", i)
		p, bare, err := parseIP(s)
		if err != nil {
			c.fault(path, "%s", err)
			continue
		}
		if seen[p.Addr()] {
			c.fault(path, "%s is in the list already", p.Addr())
		}
		seen[p.Addr()] = true
		out = append(out, t.ip(path, p, bare))
	}
	return out
}

// ip checks one address, which may be bare: without a prefix length.
func (t attaching) ip(path string, p netip.Prefix, bare bool) string {
	switch ranges := rangesOf(t.ipam); {
	case len(listOf(t.spec, fixedField)) > 0:
		if !slices.Contains(listOf(t.spec, fixedField), any(p.Addr().String())) {
			t.checker.fault(path, "%s is not in fixed of the network's specification", p.Addr())
		}
		if bare {
			p = netip.PrefixFrom(p.Addr(), max(0, subnetOf(ranges, p.Addr()).Bits()))
		}
		return p.String()
	case t.ipam["type"] == hostLocal && len(ranges) > 0:
		at := slices.IndexFunc(ranges, func(s span) bool { return s.contains(p.Addr()) })
		switch {
		case at < 0:
			t.checker.fault(path, "%s is outside of the ranges of the network", p.Addr())
		case ranges[at].router() == p.Addr():
			t.checker.fault(path, "%s is the gateway of the network", p.Addr())
		}
	case t.ipam["type"] == static && bare:
		t.checker.fault(path, "%s needs a prefix length, such as %s/24", p.Addr(), p.Addr())
	}
	if bare {
		return p.Addr().String()
	}
	return p.String()
}

// mac returns the MAC address that the attachment asks for, or nil.
func (t attaching) mac() any {
	switch {
	case t.asked.MAC == "":
		return nil
	case !t.can[canMAC]:
		t.checker.fault("mac", "the network does not take MAC addresses: %s", reasonAgainst(t.spec, canMAC))
		return nil
	}
	t.single("mac", "a fixed MAC address")
	return parsed(parseMAC)(t.checker, "mac", t.asked.MAC)
}

// defaultRoute returns the gateways of a default route: at most one of each
// family.
func (t attaching) defaultRoute() (out []any) {
	if len(t.asked.DefaultRoute) > 0 && t.spec["type"] != nil && t.ipam == nil {
		t.checker.fault("default_route", "the interface has no address: the network has no IPAM")
	}
	families := map[bool]bool{}
	for i, s := range t.asked.DefaultRoute {
		path := fmt.Sprintf("default_route[%d]", i)
		gateway, err := parseAddress(s)
		if err != nil {
			t.checker.fault(path, "%s", err)
			continue
		}
		is4 := netip.MustParseAddr(gateway).Is4()
		if families[is4] {
			t.checker.fault(path, "multus sets one default route for each of IPv4 and IPv6")
		}
		families[is4] = true
		out = append(out, gateway)
	}
	return out
}

// bandwidth returns the limits of the interface, or nil.
func (t attaching) bandwidth() any {
	b := t.asked.Bandwidth
	switch {
	case b == nil || *b == nf.Bandwidth{}:
		return nil
	case !t.can[canBandwidth]:
		t.checker.fault("bandwidth", "the network does not limit traffic: %s", reasonAgainst(t.spec, canBandwidth))
		return nil
	}
	out := map[string]any{}
	limit := func(name, rateField, burstField string, rate, burst int64) {
		if rate == 0 && burst == 0 {
			return
		}
		if rate <= 0 || burst <= 0 {
			t.checker.fault("bandwidth", "%s and %s must both be positive", rateField, burstField)
		}
		if burst > maxBurst {
			t.checker.fault("bandwidth."+burstField, "must be at most %d bits, got %d", int64(maxBurst), burst)
		}
		out[name+"Rate"], out[name+"Burst"] = rate, burst
	}
	limit("ingress", "ingress_rate", "ingress_burst", b.IngressRate, b.IngressBurst)
	limit("egress", "egress_rate", "egress_burst", b.EgressRate, b.EgressBurst)
	return out
}

// shared reports a network that gives each pod the same address, if the workload
// may have several pods.
func (t attaching) shared() {
	addresses := listOf(t.ipam, "addresses")
	if len(addresses) == 0 || len(t.asked.IPs) > 0 && t.ipam["type"] == static || t.replicas == 1 {
		return
	}
	first, _ := addresses[0].(map[string]any)
	t.checker.fault("network", "the network gives each pod the address %s, and the workload has %s; use a workload with one pod", shownText(first["address"]), pods(t.replicas))
}

// single reports a request that only one pod can have.
func (t attaching) single(path, request string) {
	if t.replicas != 1 {
		t.checker.fault(path, "%s needs a workload with one pod, and this one has %s", request, pods(t.replicas))
	}
}

func pods(replicas int) string {
	if replicas < 0 {
		return "an unknown number of pods"
	}
	return fmt.Sprintf("%d pods", replicas)
}

func shownText(v any) string {
	s, _ := v.(string)
	return s
}

// parseIP parses an address with or without a prefix length.
func parseIP(s string) (p netip.Prefix, bare bool, err error) {
	if a, err := parseAddress(s); err == nil {
		addr := netip.MustParseAddr(a)
		return netip.PrefixFrom(addr, addr.BitLen()), true, nil
	}
	text, err := parseInterface(s)
	if err != nil {
		return p, false, err
	}
	return netip.MustParsePrefix(text), false, nil
}
