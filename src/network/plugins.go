package network

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// PluginUser is a Driver that knows the CNI plugins that its networks need on the nodes.
type PluginUser interface {
	// Plugins returns the types of the plugins by the fields of the normalized spec:
	// "spec.type".
	Plugins(spec json.RawMessage) map[string]string
}

var _ shared.RegionChecker = Drivers(nil)

// CheckRegion implements shared.RegionChecker: it compares the CNI plugins that a network
// needs with those that its region declares.
func (d Drivers) CheckRegion(region nf.Region, n nf.Network) (warnings []string, err error) {
	driver, err := d.driver("check", n)
	if err != nil {
		return nil, err
	}
	user, ok := driver.(PluginUser)
	if !ok {
		return nil, nil
	}
	var v nf.Violations
	needed := user.Plugins(n.Spec)
	for _, field := range slices.Sorted(maps.Keys(needed)) {
		name := needed[field]
		there, declared := region.Plugins[name]
		switch {
		case !declared:
			warnings = append(warnings, fmt.Sprintf("cloud region %s does not declare whether its nodes have the CNI plugin %q (cni_plugins)", region.ID, name))
		case !there:
			v = append(v, nf.Violation{Field: field, Message: fmt.Sprintf("needs the CNI plugin %q, which cloud region %s declares as absent (cni_plugins)", name, region.ID)})
		}
	}
	if len(v) > 0 {
		return nil, nf.E(nf.Unsupported, "check", "network "+n.Name, v)
	}
	return slices.Compact(warnings), nil
}
