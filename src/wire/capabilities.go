package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// RegionCapabilities is what a cloud region offers.
type RegionCapabilities struct {
	Region         string             `json:"cloud_region_id"`
	Read           time.Time          `json:"read_at"`
	Age            int                `json:"age_seconds"`
	Version        string             `json:"kubernetes_version"`
	Groups         []nf.ServedGroup   `json:"groups"`
	Networks       []nf.NetworkFlavor `json:"networks"`
	Plugins        map[string]bool    `json:"cni_plugins"` // declared; a missing one is unknown
	Nodes          nf.NodeSummary     `json:"nodes"`
	Features       []nf.NodeFeature   `json:"features"`
	Resources      []NodeResource     `json:"resources"`
	Devices        []nf.DeviceCount   `json:"devices"`
	NodeDevices    []NodeDevices      `json:"node_devices"`
	StorageClasses []nf.StorageClass  `json:"storage_classes"`
	Missing        []MissingRule      `json:"missing"`
	Omitted        []string           `json:"omitted,omitempty"`
}

// NodeResource is a resource of the usable nodes of a region.
type NodeResource struct {
	Name        string `json:"name"`
	Nodes       int    `json:"nodes"`
	Allocatable string `json:"allocatable"`
	Free        string `json:"free,omitempty"`              // empty: the pods are unknown
	Largest     string `json:"largest_free_node,omitempty"` // likewise
	Pending     string `json:"pending,omitempty"`           // likewise
}

// NodeDevices are devices of one node of a region, of one resource or one driver.
type NodeDevices struct {
	Node     string        `json:"node"`
	Resource string        `json:"resource,omitempty"` // of a device plugin
	Driver   string        `json:"driver,omitempty"`   // of Dynamic Resource Allocation
	Total    int           `json:"total"`
	Free     *int          `json:"free,omitempty"` // nil: the pods, or the claims, are unknown
	NUMA     []NUMADevices `json:"numa,omitempty"`
}

// NUMADevices are devices of one NUMA node.
type NUMADevices struct {
	Node  int64 `json:"numa_node"`
	Total int   `json:"total"`
	Free  *int  `json:"free,omitempty"` // likewise
}

// nodeDevicesOf returns a function that converts the devices of a node. Without the list of
// pods, or of claims, none of them is known to be free.
func nodeDevicesOf(c nf.RegionCapabilities) func(nf.NodeDevices) NodeDevices {
	pods, claims := !c.Hides("", "pods"), !c.Hides("resource.k8s.io", "resourceclaims")
	return func(d nf.NodeDevices) NodeDevices {
		free := func(n int) *int {
			if known := d.Driver != "" && claims || d.Driver == "" && pods; !known {
				return nil
			}
			return &n
		}
		out := NodeDevices{Node: d.Node, Resource: d.Resource, Driver: d.Driver, Total: d.Total, Free: free(d.Free)}
		for _, n := range d.NUMA {
			out.NUMA = append(out.NUMA, NUMADevices{Node: n.Node, Total: n.Total, Free: free(n.Free)})
		}
		return out
	}
}

// MissingRule is a rule that the account of a region needs to answer completely.
type MissingRule struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
	Rule     string `json:"rule"`
}

// CapabilitiesOf converts the capabilities of a region at a time. The plugins are those
// that the region declares.
func CapabilitiesOf(region string, plugins map[string]bool, c nf.RegionCapabilities, now time.Time) RegionCapabilities {
	if plugins == nil {
		plugins = map[string]bool{}
	}
	known := !c.Hides("", "pods")
	same := func(m nf.MissingRule) MissingRule { return MissingRule{m.Group, m.Resource, m.Verb, m.String()} }
	return RegionCapabilities{
		Region: region, Read: c.Read, Age: max(int(now.Sub(c.Read).Seconds()), 0), Version: c.Version,
		Groups: notNil(c.Groups), Networks: notNil(c.Networks), Plugins: plugins, Nodes: c.Nodes, Features: notNil(c.Features),
		Resources: List(c.Resources, func(r nf.NodeResource) NodeResource {
			out := NodeResource{Name: r.Name, Nodes: r.Nodes, Allocatable: nf.FormatAmount(r.Name, r.Allocatable)}
			if known {
				out.Free, out.Largest = nf.FormatAmount(r.Name, r.Free), nf.FormatAmount(r.Name, r.Largest)
				out.Pending = nf.FormatAmount(r.Name, r.Pending)
			}
			return out
		}),
		Devices: notNil(c.Devices), NodeDevices: List(c.NodeDevices, nodeDevicesOf(c)), StorageClasses: notNil(c.StorageClasses), Missing: List(c.Missing, same), Omitted: c.Omitted,
	}
}
