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
		Devices: notNil(c.Devices), StorageClasses: notNil(c.StorageClasses), Missing: List(c.Missing, same), Omitted: c.Omitted,
	}
}
