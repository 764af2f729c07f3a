package vnflcm

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// started is the state of an instantiated VNF, and of each of its components.
const started = "STARTED"

// instanceOf converts a VNF. Base is the address of the API.
func (e edition) instanceOf(v nf.VNF, base string) wire.VNF {
	out := wire.VNF{
		ID: v.ID, Name: v.Name, Description: v.Description,
		VNFD: v.VNFD.ID, Provider: v.VNFD.Provider, Product: v.VNFD.Product, SoftwareVersion: v.VNFD.SoftwareVersion, Version: v.VNFD.Version,
		Configurable: v.Configurable, VIMs: e.vimsOf(v.VIMs), State: v.State(), Metadata: v.Metadata, Extensions: v.Extensions, Links: e.linksOf(v, base),
	}
	if in := v.Instantiated; in != nil {
		out.Instantiated = infoOf(in)
	}
	return out
}

// tasks are the requests that change an instantiated VNF and have links: name and path.
var tasks = map[nf.Verb][2]string{
	nf.Terminate: {"terminate", "/terminate"}, nf.Scale: {"scale", "/scale"}, nf.Heal: {"heal", "/heal"}, nf.VNFConnect: {"changeExtConn", "/change_ext_conn"},
}

// linksOf returns the links to the requests that the state of a VNF allows and that it
// supports. Without scaling aspects, nothing can be scaled.
func (e edition) linksOf(v nf.VNF, base string) map[string]wire.VNFLink {
	self := e.vnfAt(base, v.ID)
	out := map[string]wire.VNFLink{"self": {Href: self}}
	switch {
	case v.Occurrence != "": // it refuses any other one
	case v.Instantiated == nil:
		out["instantiate"] = wire.VNFLink{Href: self + "/instantiate"}
	default:
		for verb, task := range tasks {
			if v.Supports(verb) == nil && (verb != nf.Scale || len(v.Instantiated.MaxScale) > 0) {
				out[task[0]] = wire.VNFLink{Href: self + task[1]}
			}
		}
	}
	return out
}

func infoOf(in *nf.InstantiatedVNF) *wire.InstantiatedVNF {
	out := &wire.InstantiatedVNF{Flavor: in.Flavor, State: started, Scale: scalesOf(in.Scale), MaxScale: scalesOf(in.MaxScale), Metadata: map[string]any{"namespace": in.Namespace}}
	if len(in.Files) > 0 {
		out.Metadata["lcm-kubernetes-def-files"] = in.Files
	}
	for _, c := range in.VNFCs {
		out.Resources = append(out.Resources, wire.VNFCResource{ID: c.Resource, VDU: c.VDU, Compute: computeOf(c), Points: wire.VNFCPointsOf(c), Metadata: c.Metadata})
		out.VNFCs = append(out.VNFCs, wire.VNFC{ID: c.ID(), VDU: c.VDU, Resource: c.Resource, State: started, Configurable: c.Configurable})
	}
	return out
}

// computeOf returns the pod of a component.
func computeOf(c nf.VNFC) wire.VNFResource {
	return wire.VNFResource{ID: c.Resource, Type: c.Workload}
}

// scalesOf returns the levels of aspects, by their names.
func scalesOf(levels map[string]int) []wire.VNFScale {
	var out []wire.VNFScale
	for _, aspect := range slices.Sorted(maps.Keys(levels)) {
		out = append(out, wire.VNFScale{Aspect: aspect, Level: levels[aspect]})
	}
	return out
}
