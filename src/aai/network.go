package aai

import (
	"net/netip"
	"net/url"
	"strconv"
)

// Network is a virtual link: a network of a cloud region.
type Network struct {
	ID         string
	Name       string
	Driver     string // "multus", "ovn", "sriov"
	Attachment string // name of the definition that pods refer to
	Physical   string // name of the underlay; empty: none
	Shared     bool   // several projects use it
	Active     bool
	Place      Place // Tenant is empty if the network belongs to none
	VLAN       int   // 0: none
	Ranges     []Range
}

// Range is a range of addresses of a network.
type Range struct {
	Prefix     netip.Prefix
	Gateway    netip.Addr // invalid: none
	Start, End netip.Addr // of the addresses that pods get; invalid: unknown
}

func networkPath(id string) string { return join("/network/l3-networks/l3-network", id) }

// Network returns the l3-network of a network, with its subnets and its VLAN. Edges
// to the region and the tenant tell where it is.
func (s Scheme) Network(n Network) Document {
	status := "Inactive"
	if n.Active {
		status = "Active"
	}
	d := Document{
		Path: networkPath(n.ID),
		Attributes: s.marked("", map[string]any{
			"network-id": n.ID, "network-name": n.Name, "network-type": n.Driver, "network-role": text(n.Attachment), "network-technology": "K8S",
			"physical-network-name": text(n.Physical), "orchestration-status": status, "selflink": s.URL + "/v1/networks/" + url.PathEscape(n.ID),
			"is-bound-to-vpn": false, "is-provider-network": n.Physical != "", "is-shared-network": n.Shared, "is-external-network": false,
		}),
		Edges: []string{n.Place.RegionPath()},
	}
	if n.Place.Tenant != "" {
		d.Edges = append(d.Edges, n.Place.TenantPath())
	}
	for i, r := range n.Ranges {
		d.Children = append(d.Children, s.subnet(d.Path, n.ID+"-"+strconv.Itoa(i), r))
	}
	if n.VLAN > 0 {
		id := strconv.Itoa(n.VLAN)
		d.Children = append(d.Children, Document{
			Path:       join(d.Path+"/segmentation-assignments/segmentation-assignment", id),
			Attributes: s.marked("", map[string]any{"segmentation-id": id}),
		})
	}
	return d
}

func (s Scheme) subnet(network, id string, r Range) Document {
	version := "6"
	if r.Prefix.Addr().Is4() {
		version = "4"
	}
	return Document{
		Path: join(network+"/subnets/subnet", id),
		Attributes: s.marked("", map[string]any{
			"subnet-id": id, "network-start-address": r.Prefix.Masked().Addr().String(), "cidr-mask": strconv.Itoa(r.Prefix.Bits()),
			"ip-version": version, "gateway-address": address(r.Gateway), "dhcp-enabled": false, "dhcp-start": address(r.Start), "dhcp-end": address(r.End),
		}),
	}
}

// address returns the text of an address, or nil.
func address(a netip.Addr) any {
	if !a.IsValid() {
		return nil
	}
	return a.String()
}
