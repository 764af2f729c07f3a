package network

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// PluginUser is a Driver that knows the CNI plugins that its networks need on the nodes.
type PluginUser interface {
	// Plugins returns the types of the plugins by the fields of the normalized spec:
	// "spec.type".
	Plugins(spec json.RawMessage) map[string]string
}

// ResourceUser is a Driver that knows the extended resources of the nodes of which each
// attachment to its networks takes one.
type ResourceUser interface {
	// Resources returns the names of the resources by the fields of the normalized spec.
	Resources(spec json.RawMessage) map[string]string
}

var (
	_ shared.RegionChecker = Drivers(nil)
	_ shared.Adviser       = Drivers(nil)
)

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
	return checkPlugins(region, n, user.Plugins(n.Spec))
}

func checkPlugins(region nf.Region, n nf.Network, needed map[string]string) (warnings []string, err error) {
	var v nf.Violations
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

// Advise implements shared.Adviser: it warns of each extended resource of a network that no
// node offers. That is no error, because a device plugin may offer it later.
func (d Drivers) Advise(ctx context.Context, c shared.Cluster, n nf.Network) (warnings []string) {
	user, ok := d[n.Driver].(ResourceUser)
	if !ok {
		return nil
	}
	needed := user.Resources(n.Spec)
	if len(needed) == 0 {
		return nil
	}
	nodes, err := nodesOf(ctx, c)
	if err != nil {
		return nil
	}
	offered := extendedResources(nodes)
	for _, field := range slices.Sorted(maps.Keys(needed)) {
		if !slices.Contains(offered, needed[field]) {
			warnings = append(warnings, fmt.Sprintf("no node of cloud region %s offers the resource %q (%s): pods that are attached wait until one does%s",
				n.Region, needed[field], field, offering(offered)))
		}
	}
	return warnings
}

// offering returns the end of a warning, with the first of the resources that nodes offer.
func offering(offered []string) string {
	const most = 10
	switch more := len(offered) - most; {
	case len(offered) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf("; the nodes offer %s and %d more", strings.Join(offered[:most], ", "), more)
	}
	return "; the nodes offer " + strings.Join(offered, ", ")
}

// nodesOf returns the nodes of a cloud region.
func nodesOf(ctx context.Context, c shared.Cluster) ([]any, error) {
	list, err := c.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Node"})
	if err != nil {
		return nil, err
	}
	nodes, _ := list["items"].([]any)
	return nodes, nil
}

// extendedResources returns the resources of device plugins that at least one node has,
// sorted.
func extendedResources(nodes []any) []string {
	offered := map[string]bool{}
	for _, item := range nodes {
		node, _ := item.(map[string]any)
		allocatable, _, _ := unstructured.NestedMap(node, "status", "allocatable")
		for name, amount := range allocatable {
			if strings.Contains(name, "/") && amount != "0" {
				offered[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(offered))
}

// checkNodes returns nf.Invalid for a network that would give two pods on different
// nodes the same address.
func checkNodes(ctx context.Context, c shared.Cluster, driver Driver, n nf.Network) error {
	if !driver.NodeLocal(n.Spec) {
		return nil
	}
	nodes, err := nodesOf(ctx, c)
	if err != nil {
		return err
	}
	if len(nodes) > 1 {
		return nf.E(nf.Invalid, "check", "network "+n.Name, nf.Violations{{Field: "spec.ipam.type",
			Message: fmt.Sprintf("gives addresses on each of the %d nodes independently, so that two pods can get the same one; set spec.node_local to true if that is intended", len(nodes))}})
	}
	return nil
}
