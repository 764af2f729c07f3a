package ovn

import (
	"fmt"
	"net/netip"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Connect checks an attachment of a workload to a network, and returns what the pod
// needs. The definition is in namespace. Replicas is the number of pods, or less than 0
// if it is unknown. The error is nf.Violations whose fields are those of the attachment:
// "ips[0]", "mac". The specification of the network must be normalized.
func (Driver) Connect(n nf.Network, namespace string, a nf.Attachment, replicas int) (nf.Connection, error) {
	s, f, err := read(n)
	if err != nil {
		return nf.Connection{}, err
	}
	t := &attaching{
		checker: &schema.Checker{}, network: n, namespace: namespace, spec: s, asked: a, replicas: replicas,
		selection: map[string]any{"name": n.Name, "namespace": namespace}, annotations: map[string]string{},
	}
	f.connect(t)
	if routes := schema.Gateways(t.checker, a.DefaultRoute); len(routes) > 0 {
		t.selection["default-route"] = routes
	}
	if len(t.checker.Wrong) > 0 {
		return nf.Connection{}, t.checker.Wrong
	}
	c := nf.Connection{Attachment: a, Selection: t.selection, Annotated: t.annotated}
	if len(t.annotations) > 0 {
		c.Annotations = t.annotations
	}
	return c, nil
}

// attaching is the check of one attachment.
type attaching struct {
	checker   *schema.Checker
	network   nf.Network
	namespace string
	spec      spec
	asked     nf.Attachment
	replicas  int

	selection   map[string]any
	annotations map[string]string
	annotated   bool // addresses and limits are in the annotations
}

// ips returns the addresses that the attachment asks for. They must be in the subnets of
// the network, if it has any, and differ.
func (t *attaching) ips() (out []netip.Prefix) {
	all := prefixes(t.spec, "subnets")
	seen := map[netip.Addr]bool{}
	for i, text := range t.asked.IPs {
		path := fmt.Sprintf("ips[%d]", i)
		p, bare, err := schema.ParseIP(text)
		if err != nil {
			t.checker.Fault(path, "%s", err)
			continue
		}
		within := subnetOf(all, p.Addr())
		switch {
		case seen[p.Addr()]:
			t.checker.Fault(path, "%s is in the list already", p.Addr())
		case len(all) == 0 && bare:
			t.checker.Fault(path, "%s needs a prefix length, such as %s/24", p.Addr(), p.Addr())
		case len(all) == 0:
		case !within.IsValid():
			t.checker.Fault(path, "%s is outside of the subnets of the network", p.Addr())
		case reserved(within, p.Addr()) != "":
			t.checker.Fault(path, "%s %s", p.Addr(), reserved(within, p.Addr()))
		case t.isGateway(p.Addr()):
			t.checker.Fault(path, "%s is the gateway of the network", p.Addr())
		case !bare && p.Bits() != within.Bits():
			t.checker.Fault(path, "has the prefix length %d, and the subnet has %d", p.Bits(), within.Bits())
		}
		seen[p.Addr()] = true
		out = append(out, p)
	}
	return out
}

func (t *attaching) isGateway(a netip.Addr) bool {
	for _, text := range textsOf(t.spec, "gateways") {
		if text == a.String() {
			return true
		}
	}
	return false
}

// oneOfEach reports a second address of a family.
func (t *attaching) oneOfEach(ips []netip.Prefix) {
	seen := map[bool]bool{}
	for i, p := range ips {
		if seen[p.Addr().Is4()] {
			t.checker.Fault(fmt.Sprintf("ips[%d]", i), "is a second address of its family; the interface takes one of IPv4 and one of IPv6")
		}
		seen[p.Addr().Is4()] = true
	}
}

// mac returns the MAC address that the attachment asks for, or "".
func (t *attaching) mac() string {
	if t.asked.MAC == "" {
		return ""
	}
	schema.Single(t.checker, "mac", "a fixed MAC address", t.replicas)
	mac, _ := schema.Parsed(schema.ParseMAC)(t.checker, "mac", t.asked.MAC).(string)
	return mac
}

// unlimited reports limits that the flavor cannot set.
func (t *attaching) unlimited(reason string) {
	if b := t.asked.Bandwidth; b != nil && *b != (nf.Bandwidth{}) {
		t.checker.Fault("bandwidth", "the network does not limit traffic: %s", reason)
	}
}

// texts returns addresses with their prefix lengths, or without them.
func texts(ips []netip.Prefix, withLength bool) (out []any) {
	for _, p := range ips {
		if withLength {
			out = append(out, p.String())
		} else {
			out = append(out, p.Addr().String())
		}
	}
	return out
}
