package nfvo

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// request is a GrantRequest of SOL003.
type request struct {
	VNF         string          `json:"vnfInstanceId"`
	Occurrence  string          `json:"vnfLcmOpOccId"`
	VNFD        string          `json:"vnfdId"`
	Destination string          `json:"dstVnfdId,omitempty"`
	Flavor      string          `json:"flavourId,omitempty"`
	Operation   string          `json:"operation"`
	Automatic   bool            `json:"isAutomaticInvocation"`
	Level       string          `json:"instantiationLevelId,omitempty"`
	Add         []definition    `json:"addResources,omitempty"`
	Remove      []definition    `json:"removeResources,omitempty"`
	Update      []definition    `json:"updateResources,omitempty"`
	Params      map[string]any  `json:"additionalParams,omitempty"`
	Links       map[string]link `json:"_links"`
}

// definition is a ResourceDefinition of SOL003.
type definition struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"`
	VDU      string    `json:"vduId"`
	Template string    `json:"resourceTemplateId,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

// resource is a ResourceHandle of SOL003.
type resource struct {
	ID string `json:"resourceId"`
}

type link struct {
	Href string `json:"href"`
}

// requestOf returns the document of a request. Callback begins its links.
func requestOf(r nf.GrantRequest, callback string) request {
	const root = "/vnflcm/v2"
	out := request{
		VNF: r.VNF, Occurrence: r.Occurrence, VNFD: r.VNFD, Destination: r.Destination, Flavor: r.Flavor, Operation: string(r.Operation), Automatic: r.Automatic, Level: r.Level, Params: r.Params,
		Links: map[string]link{"vnfInstance": {callback + root + "/vnf_instances/" + r.VNF}, "vnfLcmOpOcc": {callback + root + "/vnf_lcm_op_occs/" + r.Occurrence}},
	}
	for _, one := range r.Resources {
		d := definition{ID: one.ID, Type: "COMPUTE", VDU: one.VDU}
		if one.Resource != "" {
			d.Resource = &resource{one.Resource}
		}
		switch one.Change {
		case nf.VNFCRemoved:
			out.Remove = append(out.Remove, d)
		case nf.VNFCModified:
			out.Update = append(out.Update, d)
		default:
			d.Template = one.VDU
			out.Add = append(out.Add, d)
		}
	}
	return out
}

// granted is a Grant of SOL003: what is honoured of it.
type granted struct {
	ID         string                   `json:"id"`
	VNF        string                   `json:"vnfInstanceId"`
	Occurrence string                   `json:"vnfLcmOpOccId"`
	VIMs       map[string]vimConnection `json:"vimConnectionInfo"`
	Zones      []struct {
		ID   string `json:"id"`
		Zone string `json:"zoneId"`
	} `json:"zones"`
	Add []struct {
		Definition string `json:"resourceDefinitionId"`
		VIM        string `json:"vimConnectionId"`
		Zone       string `json:"zoneId"`
	} `json:"addResources"`
}

type vimConnection struct {
	VIM       string         `json:"vimId"`
	Type      string         `json:"vimType"`
	Interface map[string]any `json:"interfaceInfo"`
	Access    map[string]any `json:"accessInfo"`
	Extra     map[string]any `json:"extra"`
}

// grant reads the answer to a request.
func (c *Client) grant(req nf.GrantRequest, body []byte) (nf.Grant, error) {
	var in granted
	if err := json.Unmarshal(body, &in); err != nil {
		return nf.Grant{}, c.unusable("its answer is not a Grant in JSON") // the error would quote it
	}
	switch {
	case in.ID == "":
		return nf.Grant{}, c.unusable("it has no id")
	case in.Occurrence != req.Occurrence || in.VNF != req.VNF:
		return nf.Grant{}, c.unusable("it is for another occurrence or VNF instance")
	}
	out := nf.Grant{ID: in.ID, VIMs: map[string]nf.VIMConnectionRequest{}, Zones: map[string]string{}}
	for key, v := range in.VIMs {
		out.VIMs[key] = nf.VIMConnectionRequest{VIM: v.VIM, Type: v.Type, Interface: v.Interface, Access: v.Access, Extra: v.Extra}
	}
	if fault := in.place(req, &out); fault != "" {
		return nf.Grant{}, c.unusable(fault)
	}
	return out, nil
}

// place sets the VIM and the zones of a grant, or returns why they cannot be honoured:
// the pods of a workload are alike, and all workloads of a VNF are in one region.
func (in granted) place(req nf.GrantRequest, out *nf.Grant) (fault string) {
	zones := map[string]string{}
	for _, z := range in.Zones {
		zones[z.ID] = z.Zone
	}
	vdus := map[string]string{}
	for _, r := range req.Resources {
		if r.Change != nf.VNFCRemoved && r.Change != nf.VNFCModified {
			vdus[r.ID] = r.VDU
		}
	}
	for _, a := range in.Add {
		vdu, known := vdus[a.Definition]
		if !known {
			return fmt.Sprintf("it has resource definition %q, which was not asked for", nf.Clip(a.Definition, 64))
		}
		if fault := in.setVIM(a.VIM, req, out); fault != "" {
			return fault
		}
		if a.Zone == "" {
			continue
		}
		zone := zones[a.Zone]
		if zone == "" {
			return fmt.Sprintf("its zones have no %q", nf.Clip(a.Zone, 64))
		}
		if former, twice := out.Zones[vdu]; twice && former != zone {
			return fmt.Sprintf("it places VDU %s in the zones %q and %q; all pods of a VDU must be in one zone", vdu, nf.Clip(former, 64), nf.Clip(zone, 64))
		}
		out.Zones[vdu] = zone
	}
	return ""
}

// setVIM sets the VIM connection of a grant, or returns why there cannot be this one.
func (in granted) setVIM(key string, req nf.GrantRequest, out *nf.Grant) (fault string) {
	if key == "" {
		return ""
	}
	if _, has := in.VIMs[key]; !has && !slices.Contains(req.VIMs, key) {
		return fmt.Sprintf("its vimConnectionInfo, and that of the VNF, have no %q", nf.Clip(key, 64))
	}
	if out.VIM != "" && out.VIM != key {
		return fmt.Sprintf("it has the VIM connections %q and %q; all resources of a VNF must be in one VIM", nf.Clip(out.VIM, 64), nf.Clip(key, 64))
	}
	out.VIM = key
	return ""
}
