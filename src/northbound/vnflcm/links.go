package vnflcm

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// externalLink is an ExtVirtualLinkData. The fields without a type are those that cannot
// be mapped to an attachment.
type externalLink struct {
	ID          string          `json:"id"`
	Resource    string          `json:"resourceId"`
	Points      []externalPoint `json:"extCps"`
	Ports       []any           `json:"extLinkPorts"`
	Definitions []any           `json:"extNetAttDefResourceData"`
}

// externalPoint is a VnfExtCpData.
type externalPoint struct {
	Descriptor string       `json:"cpdId"`
	Configs    pointConfigs `json:"cpConfig"`
}

// pointConfig is a VnfExtCpConfig.
type pointConfig struct {
	at string // its place in the request

	Port        any            `json:"linkPortId"`
	Definitions []any          `json:"netAttDefResourceId"`
	Protocols   []protocolData `json:"cpProtocolData"`
}

// pointConfigs are those of a connection point, sorted by their keys.
type pointConfigs []pointConfig

// UnmarshalJSON reads a map, or a list.
func (p *pointConfigs) UnmarshalJSON(document []byte) error {
	if isList(document) {
		var list []pointConfig
		err := json.Unmarshal(document, &list)
		for i := range list {
			list[i].at = index("cpConfig", i)
		}
		*p = list
		return err //nolint:wrapcheck // of a decoder, to the decoder that calls it
	}
	var byKey map[string]pointConfig
	err := json.Unmarshal(document, &byKey)
	*p = nil
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		config := byKey[key]
		config.at = "cpConfig." + nf.Clip(key, maxQuote)
		*p = append(*p, config)
	}
	return err //nolint:wrapcheck // as above
}

// protocolData is a CpProtocolData.
type protocolData struct {
	Ethernet struct {
		MAC       string      `json:"macAddress"`
		Segment   any         `json:"segmentationId"`
		Addresses []addresses `json:"ipAddresses"`
	} `json:"ipOverEthernet"`
}

type addresses struct {
	Type   string   `json:"type"`
	Fixed  []string `json:"fixedAddresses"`
	Range  any      `json:"addressRange"`
	Subnet any      `json:"subnetId"`
}

// connection is a ChangeExtVnfConnectivityRequest.
type connection struct {
	Links []externalLink `json:"extVirtualLinks"`
}

func (cs changes) connect(w http.ResponseWriter, r *http.Request) error {
	in, common, err := read[connection](cs, r)
	if err != nil {
		return err
	}
	v, err := cs.vnfs.VNF(r.Context(), vnfOf(r))
	if err != nil {
		return err
	}
	req := nf.ConnectVNFRequest{VNFRequest: common}
	// A VNF that is not instantiated has no workloads to map to: the ledger refuses the
	// request, or knows its key.
	if v.Instantiated != nil {
		if req.Networks, err = cs.attachments(r.Context(), v, "", common.Extra, in.Links); err != nil {
			return err
		}
	}
	o, err := cs.modifications.Connect(r.Context(), v.ID, req)
	return cs.answer(w, r, o, err)
}

// pointMap is the parameter that maps the ids of connection points to workloads.
const pointMap = "cp_map"

// attachments returns the attachments that external links of a VNF ask for. Without a
// flavor, that of the instantiated VNF is used. It returns nf.Invalid, or nf.Unsupported
// for what an attachment does not have.
func (cs changes) attachments(ctx context.Context, v nf.VNF, flavor string, extra map[string]any, links []externalLink) ([]nf.Attachment, error) {
	given := extra[pointMap]
	if in := v.Instantiated; in != nil {
		flavor, given = cmp.Or(flavor, in.Flavor), cmp.Or(given, in.Params[pointMap])
	}
	workloads, err := cs.points(ctx, v.Running(), flavor)
	if err != nil {
		return nil, err
	}
	m := mapper{workloads: workloads}
	m.given, _ = given.(map[string]any)
	for i, l := range links {
		m.link(index("extVirtualLinks", i), l)
	}
	if err := invalid(m.wrong); err != nil {
		return nil, err
	}
	return m.out, unprocessable(m.unfit)
}

// mapper maps external links to attachments.
type mapper struct {
	workloads map[string]string // by connection point, of the descriptor
	given     map[string]any    // likewise, of the request; they have precedence
	out       []nf.Attachment
	wrong     nf.Violations
	unfit     nf.Violations // what an attachment does not have
}

func (m *mapper) link(at string, l externalLink) {
	if len(l.Ports) > 0 {
		m.cannot(at+".extLinkPorts", "is not supported; the service creates the interfaces of pods")
	}
	if len(l.Definitions) > 0 {
		m.cannot(at+".extNetAttDefResourceData", "is not part of version 2.0.0; register the network and name it in resourceId")
	}
	for i, p := range l.Points {
		inner := at + "." + index("extCps", i)
		workload, found := m.given[p.Descriptor].(string)
		if !found {
			workload, found = m.workloads[p.Descriptor]
		}
		if !found {
			m.cannot(inner+".cpdId", "is not a connection point that the VNFD binds to a VDU; additionalParams."+pointMap+" can name its workload")
		}
		for _, c := range p.Configs {
			m.point(inner+"."+c.at, nf.Attachment{Network: l.Resource, Workload: workload, Point: p.Descriptor}, c)
		}
	}
}

func (m *mapper) point(at string, a nf.Attachment, c pointConfig) {
	if c.Port != nil {
		m.cannot(at+".linkPortId", "is not supported; the service creates the interfaces of pods")
	}
	if len(c.Definitions) > 0 {
		m.cannot(at+".netAttDefResourceId", "is not part of version 2.0.0; name the network in resourceId")
	}
	for i, p := range c.Protocols {
		inner := at + "." + index("cpProtocolData", i) + ".ipOverEthernet"
		m.ethernet(inner, &a, p)
	}
	m.out = append(m.out, a)
}

func (m *mapper) ethernet(at string, a *nf.Attachment, p protocolData) {
	e := p.Ethernet
	switch _, err := net.ParseMAC(e.MAC); {
	case e.MAC == "":
	case err != nil:
		m.wrong = append(m.wrong, nf.Violation{Field: at + ".macAddress", Message: "is not a MAC address"})
	case a.MAC != "" && a.MAC != e.MAC:
		m.cannot(at+".macAddress", "is the second one; an interface has one")
	default:
		a.MAC = e.MAC
	}
	if e.Segment != nil {
		m.cannot(at+".segmentationId", "is not supported; it is an attribute of the network")
	}
	for i, ip := range e.Addresses {
		m.addresses(at+"."+index("ipAddresses", i), a, ip)
	}
}

func (m *mapper) addresses(at string, a *nf.Attachment, ip addresses) {
	if ip.Range != nil {
		m.cannot(at+".addressRange", "is not supported; give fixedAddresses, or numDynamicAddresses")
	}
	if ip.Subnet != nil {
		m.cannot(at+".subnetId", "is not supported; name the network in resourceId")
	}
	for i, text := range ip.Fixed {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Is4() != (ip.Type == "IPV4") || address.Zone() != "" {
			m.wrong = append(m.wrong, nf.Violation{Field: at + "." + index("fixedAddresses", i), Message: "is not an address of the type"})
			continue
		}
		a.IPs = append(a.IPs, text)
	}
}

func (m *mapper) cannot(field, message string) {
	m.unfit = append(m.unfit, nf.Violation{Field: field, Message: message})
}
