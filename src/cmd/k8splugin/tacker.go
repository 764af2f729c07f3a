package main

import (
	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
)

// tackerAPI creates Tacker's API of VIMs.
func (s *service) tackerAPI(_ Config, _ *secureStore, _ observability, guarded *access.Guarded) (northbound.API, error) {
	return tacker.New(tacker.Config{Regions: guarded.Regions, Reader: guarded.Regions, Conditions: s.regions()})
}
