package main

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnflcm"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// vnfsAPI creates the API of VNFs.
func (s *service) vnfsAPI(_ Config, _ *secureStore, obs observability, guarded *access.Guarded) (northbound.API, error) {
	vnfs := access.NewVNFs(guarded, s.sol003)
	read := &descriptors{catalog: s.catalog, read: map[string]tosca.Topology{}}
	return vnflcm.New(vnflcm.Config{
		VNFs: vnfs, Changes: vnfs, Modifications: vnfs, Occurrences: vnfs, Recovery: vnfs, ConnectionPoints: points{read}.of,
		Connections: tacker.NewConnections(guarded.Regions).Register, Trace: obs.traceparent,
	})
}

// points are the connection points of the VNF descriptors of packages.
type points struct{ descriptors sol003.Descriptors }

// of implements vnflcm.ConnectionPoints. An unknown flavor has no connection points: the
// request for an occurrence names it in its error.
func (p points) of(ctx context.Context, pkg, flavor string) (map[string]string, error) {
	topology, err := p.descriptors.Topology(ctx, pkg)
	if err != nil {
		return nil, err
	}
	out, f := map[string]string{}, topology.Flavors[flavor]
	for name, point := range f.ConnectionPoints {
		if vdu, found := f.VDUs[point.VDU]; found {
			out[name] = vdu.Name
		}
	}
	return out, nil
}
