package vnflcm

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// instance is a VnfInstance.
type instance struct {
	ID              string            `json:"id"`
	Name            string            `json:"vnfInstanceName,omitempty"`
	Description     string            `json:"vnfInstanceDescription,omitempty"`
	VNFD            string            `json:"vnfdId"`
	Provider        string            `json:"vnfProvider"`
	Product         string            `json:"vnfProductName"`
	SoftwareVersion string            `json:"vnfSoftwareVersion"`
	Version         string            `json:"vnfdVersion"`
	Configurable    map[string]any    `json:"vnfConfigurableProperties,omitempty"`
	VIMs            any               `json:"vimConnectionInfo,omitempty"` // by key, or a list
	State           string            `json:"instantiationState"`
	Instantiated    *instantiatedInfo `json:"instantiatedVnfInfo,omitempty"`
	Metadata        map[string]any    `json:"metadata,omitempty"`
	Extensions      map[string]any    `json:"extensions,omitempty"`
	Links           map[string]link   `json:"_links"`
}

// instantiatedInfo is what only an instantiated VNF has.
type instantiatedInfo struct {
	Flavor    string         `json:"flavourId"`
	State     string         `json:"vnfState"`
	Scale     []scaleInfo    `json:"scaleStatus,omitempty"`
	MaxScale  []scaleInfo    `json:"maxScaleLevels,omitempty"`
	Resources []resourceInfo `json:"vnfcResourceInfo,omitempty"`
	VNFCs     []vnfcInfo     `json:"vnfcInfo,omitempty"`
	Metadata  map[string]any `json:"metadata"`
}

type scaleInfo struct {
	Aspect string `json:"aspectId"`
	Level  int    `json:"scaleLevel"`
}

// resourceInfo is a VnfcResourceInfo: the pod of a component.
type resourceInfo struct {
	ID       string         `json:"id"`
	VDU      string         `json:"vduId"`
	Compute  resource       `json:"computeResource"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// resource is a ResourceHandle.
type resource struct {
	ID   string `json:"resourceId"`
	Type string `json:"vimLevelResourceType,omitempty"`
}

type vnfcInfo struct {
	ID           string         `json:"id"`
	VDU          string         `json:"vduId"`
	Resource     string         `json:"vnfcResourceInfoId"`
	State        string         `json:"vnfcState"`
	Configurable map[string]any `json:"vnfcConfigurableProperties,omitempty"`
}

type link struct {
	Href string `json:"href"`
}

const (
	notInstantiated = "NOT_INSTANTIATED"
	instantiated    = "INSTANTIATED"
	started         = "STARTED"
)

// instanceOf converts a VNF. Base is the address of the API.
func (e edition) instanceOf(v nf.VNF, base string) instance {
	out := instance{
		ID: v.ID, Name: v.Name, Description: v.Description,
		VNFD: v.VNFD.ID, Provider: v.VNFD.Provider, Product: v.VNFD.Product, SoftwareVersion: v.VNFD.SoftwareVersion, Version: v.VNFD.Version,
		Configurable: v.Configurable, VIMs: e.vimsOf(v.VIMs), State: notInstantiated, Metadata: v.Metadata, Extensions: v.Extensions, Links: e.linksOf(v, base),
	}
	if in := v.Instantiated; in != nil {
		out.State, out.Instantiated = instantiated, infoOf(in)
	}
	return out
}

// linksOf returns the links to the requests that the state of a VNF allows.
func (e edition) linksOf(v nf.VNF, base string) map[string]link {
	self := e.vnfAt(base, v.ID)
	out := map[string]link{"self": {self}}
	switch {
	case v.Occurrence != "": // it refuses any other one
	case v.Instantiated == nil:
		out["instantiate"] = link{self + "/instantiate"}
	default:
		for name, path := range map[string]string{"terminate": "/terminate", "scale": "/scale", "heal": "/heal", "changeExtConn": "/change_ext_conn"} {
			out[name] = link{self + path}
		}
	}
	return out
}

func infoOf(in *nf.InstantiatedVNF) *instantiatedInfo {
	out := &instantiatedInfo{Flavor: in.Flavor, State: started, Scale: scalesOf(in.Scale), MaxScale: scalesOf(in.MaxScale), Metadata: map[string]any{"namespace": in.Namespace}}
	if len(in.Files) > 0 {
		out.Metadata["lcm-kubernetes-def-files"] = in.Files
	}
	for _, c := range in.VNFCs {
		out.Resources = append(out.Resources, resourceInfo{ID: c.Resource, VDU: c.VDU, Compute: resource{c.Resource, c.Workload}, Metadata: c.Metadata})
		out.VNFCs = append(out.VNFCs, vnfcInfo{ID: c.ID(), VDU: c.VDU, Resource: c.Resource, State: started, Configurable: c.Configurable})
	}
	return out
}

// scalesOf returns the levels of aspects, by their names.
func scalesOf(levels map[string]int) []scaleInfo {
	var out []scaleInfo
	for _, aspect := range slices.Sorted(maps.Keys(levels)) {
		out = append(out, scaleInfo{aspect, levels[aspect]})
	}
	return out
}
