package wire

import (
	"net/netip"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNFCPoint is a connection point of a component: a port of its server (VnfcCpInfo).
type VNFCPoint struct {
	ID        string             `json:"id"`
	Point     string             `json:"cpdId"`
	Protocols []VNFPointProtocol `json:"cpProtocolInfo"`
}

// VNFPointProtocol has the addresses of a connection point (CpProtocolInfo).
type VNFPointProtocol struct {
	Layer    string           `json:"layerProtocol"`
	Ethernet VNFPointEthernet `json:"ipOverEthernet"`
}

// VNFPointEthernet is an IpOverEthernetAddressInfo.
type VNFPointEthernet struct {
	MAC       string              `json:"macAddress,omitempty"`
	Addresses []VNFPointAddresses `json:"ipAddresses,omitempty"`
}

// VNFPointAddresses are addresses of one type.
type VNFPointAddresses struct {
	Type      string   `json:"type"`
	Addresses []string `json:"addresses"`
}

// VNFCPointsOf converts the connection points of a component.
func VNFCPointsOf(c nf.VNFC) []VNFCPoint {
	var out []VNFCPoint
	for _, p := range c.Points {
		at := VNFPointEthernet{MAC: p.MAC}
		for _, ip := range p.IPs {
			kind := "IPV4"
			if address, err := netip.ParseAddr(ip); err == nil && address.Is6() {
				kind = "IPV6"
			}
			at.Addresses = append(at.Addresses, VNFPointAddresses{kind, []string{ip}})
		}
		out = append(out, VNFCPoint{ID: p.Port, Point: p.Point, Protocols: []VNFPointProtocol{{"IP_OVER_ETHERNET", at}}})
	}
	return out
}
