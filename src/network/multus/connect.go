package multus

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
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
	t := attaching{checker: &schema.Checker{}, spec: spec, can: capabilities(spec), ipam: ipamOf(spec), asked: a, replicas: replicas}
	selection := map[string]any{"name": n.Name, "namespace": namespace}
	if existing, ok := spec[existingField].(map[string]any); ok {
		maps.Copy(selection, existing)
	}
	if ips := t.ips(); len(ips) > 0 {
		selection["ips"] = ips
		if len(schema.ListOf(spec, fixedField)) > 0 {
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
	if len(t.checker.Wrong) > 0 {
		return nf.Connection{}, t.checker.Wrong
	}
	c := nf.Connection{Attachment: a, Selection: selection}
	if resource, _ := spec[resourceField].(string); resource != "" {
		c.Resources = map[string]int64{resource: 1}
	}
	return c, nil
}

// attaching is the check of one attachment.
type attaching struct {
	checker  *schema.Checker
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
	case len(t.asked.IPs) == 0 && kind == static && len(schema.ListOf(t.ipam, "addresses")) == 0:
		c.Fault("ips", "is required: the network gives no addresses")
		return nil
	case len(t.asked.IPs) == 0:
		return nil
	case !t.can[canIPs]:
		c.Fault("ips", "the network does not take addresses: %s", reasonAgainst(t.spec, canIPs))
		return nil
	case kind == hostLocal && len(t.asked.IPs) > 1:
		c.Fault("ips[1]", "the network takes one address: multus passes more of them to host-local in a form that it rejects")
	}
	schema.Single(c, "ips", "a fixed address", t.replicas)
	seen := map[netip.Addr]bool{}
	for i, s := range t.asked.IPs {
		path := fmt.Sprintf("ips[%d]", i)
		p, bare, err := schema.ParseIP(s)
		if err != nil {
			c.Fault(path, "%s", err)
			continue
		}
		if seen[p.Addr()] {
			c.Fault(path, "%s is in the list already", p.Addr())
		}
		seen[p.Addr()] = true
		out = append(out, t.ip(path, p, bare))
	}
	return out
}

// ip checks one address, which may be bare: without a prefix length.
func (t attaching) ip(path string, p netip.Prefix, bare bool) string {
	switch ranges := rangesOf(t.ipam); {
	case len(schema.ListOf(t.spec, fixedField)) > 0:
		if !slices.Contains(schema.ListOf(t.spec, fixedField), any(p.Addr().String())) {
			t.checker.Fault(path, "%s is not in fixed of the network's specification", p.Addr())
		}
		if bare {
			p = netip.PrefixFrom(p.Addr(), max(0, subnetOf(ranges, p.Addr()).Bits()))
		}
		return p.String()
	case t.ipam["type"] == hostLocal && len(ranges) > 0:
		at := slices.IndexFunc(ranges, func(s span) bool { return s.contains(p.Addr()) })
		switch {
		case at < 0:
			t.checker.Fault(path, "%s is outside of the ranges of the network", p.Addr())
		case ranges[at].router() == p.Addr():
			t.checker.Fault(path, "%s is the gateway of the network", p.Addr())
		}
	case t.ipam["type"] == static && bare:
		t.checker.Fault(path, "%s needs a prefix length, such as %s/24", p.Addr(), p.Addr())
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
		t.checker.Fault("mac", "the network does not take MAC addresses: %s", reasonAgainst(t.spec, canMAC))
		return nil
	}
	schema.Single(t.checker, "mac", "a fixed MAC address", t.replicas)
	return schema.Parsed(schema.ParseMAC)(t.checker, "mac", t.asked.MAC)
}

// defaultRoute returns the gateways of a default route.
func (t attaching) defaultRoute() []any {
	if len(t.asked.DefaultRoute) > 0 && t.spec["type"] != nil && t.ipam == nil {
		t.checker.Fault("default_route", "the interface has no address: the network has no IPAM")
	}
	return schema.Gateways(t.checker, t.asked.DefaultRoute)
}

// bandwidth returns the limits of the interface, or nil.
func (t attaching) bandwidth() any {
	b := t.asked.Bandwidth
	switch {
	case b == nil || *b == nf.Bandwidth{}:
		return nil
	case !t.can[canBandwidth]:
		t.checker.Fault("bandwidth", "the network does not limit traffic: %s", reasonAgainst(t.spec, canBandwidth))
		return nil
	}
	out := map[string]any{}
	limit := func(name, rateField, burstField string, rate, burst int64) {
		if rate == 0 && burst == 0 {
			return
		}
		if rate <= 0 || burst <= 0 {
			t.checker.Fault("bandwidth", "%s and %s must both be positive", rateField, burstField)
		}
		if burst > maxBurst {
			t.checker.Fault("bandwidth."+burstField, "must be at most %d bits, got %d", int64(maxBurst), burst)
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
	addresses := schema.ListOf(t.ipam, "addresses")
	if len(addresses) == 0 || len(t.asked.IPs) > 0 && t.ipam["type"] == static || t.replicas == 1 {
		return
	}
	first, _ := addresses[0].(map[string]any)
	t.checker.Fault("network", "the network gives each pod the address %s, and the workload has %s; use a workload with one pod", shownText(first["address"]), schema.Pods(t.replicas))
}

func shownText(v any) string {
	s, _ := v.(string)
	return s
}
