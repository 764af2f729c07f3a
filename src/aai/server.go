package aai

import (
	"net/netip"
	"strconv"
	"strings"
)

// Address is an address of an interface.
type Address struct {
	IP   netip.Addr
	Bits int // length of the prefix; 0: unknown
}

// Servers returns a vserver for each pod, with its interfaces and their addresses. An
// instance with more than MaxPods has none.
func (s Scheme) Servers(in Instance) []Document {
	var out []Document
	for _, p := range in.pods() {
		out = append(out, s.server(in, p))
	}
	return sorted(out)
}

func (s Scheme) server(in Instance, p Pod) Document {
	d := Document{
		Path: join(in.Place.TenantPath()+"/vservers/vserver", p.UID),
		Attributes: s.marked("", map[string]any{
			"vserver-id": p.UID, "vserver-name": p.Name, "vserver-name2": text(in.Name), "vserver-selflink": s.instanceURL(in),
			"prov-status": text(strings.ToUpper(p.Phase)), "operational-status": operationalStatus(p.Ready),
			"in-maint": false, "is-closed-loop-disabled": false,
		}),
		Edges: in.edges(),
	}
	for _, i := range p.Interfaces {
		d.Children = append(d.Children, s.link(d.Path, p, i))
	}
	sorted(d.Children)
	return d
}

func operationalStatus(ready bool) string {
	if ready {
		return "ready"
	}
	return "not ready"
}

// link returns the l-interface of an interface.
func (s Scheme) link(server string, p Pod, i Interface) Document {
	var mtu any
	if i.MTU > 0 {
		mtu = strconv.Itoa(i.MTU)
	}
	d := Document{
		Path: join(server+"/l-interfaces/l-interface", i.Name),
		Attributes: s.marked("", map[string]any{
			"interface-name": i.Name, "interface-id": p.UID + "-" + i.Name, "macaddr": text(i.MAC), "network-name": text(i.Network),
			"interface-type": text(i.Type), "mtu": mtu,
			"is-port-mirrored": false, "in-maint": false, "is-ip-unnumbered": false, "l2-multicasting": false,
		}),
	}
	for _, a := range i.Addresses {
		d.Children = append(d.Children, s.address(d.Path, i, a))
	}
	sorted(d.Children)
	return d
}

func (s Scheme) address(link string, i Interface, a Address) Document {
	list := "l3-interface-ipv4-address-list"
	key, length := "l3-interface-ipv4-address", "l3-interface-ipv4-prefix-length"
	ip := a.IP.Unmap().WithZone("")
	if ip.Is6() {
		list, key, length = "l3-interface-ipv6-address-list", "l3-interface-ipv6-address", "l3-interface-ipv6-prefix-length"
	}
	d := Document{Path: join(link, list, ip.String()), Attributes: s.marked("", map[string]any{key: ip.String(), "is-floating": false})}
	if a.Bits > 0 {
		d.Attributes[length] = a.Bits
	}
	if i.NetworkID != "" {
		d.Edges = []string{networkPath(i.NetworkID)}
	}
	return d
}
