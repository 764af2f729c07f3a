package nf

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// RegionCapabilities is what a cloud region offered when it was read. Its lists are
// sorted, and have limited lengths.
type RegionCapabilities struct {
	Read           time.Time
	Version        string // of the API server: "v1.37.1"
	Groups         []ServedGroup
	Networks       []NetworkFlavor
	Nodes          NodeSummary
	Features       []NodeFeature
	Resources      []NodeResource // of usable nodes
	Devices        []DeviceCount  // of Dynamic Resource Allocation
	NodeDevices    []NodeDevices  // by node, resource and driver
	StorageClasses []StorageClass
	Missing        []MissingRule
	Omitted        []string // names of the lists that were too long, and are not complete

	// What only a placement uses. It is complete.
	APIs  []string   // as in Capabilities
	Rooms []NodeRoom // of the usable nodes
}

// Hides reports whether the region's account may not list a resource.
func (c RegionCapabilities) Hides(group, resource string) bool {
	return slices.ContainsFunc(c.Missing, func(m MissingRule) bool { return m.Group == group && m.Resource == resource })
}

// ServedGroup is an API group that a region serves.
type ServedGroup struct {
	Group    string   `json:"group"` // empty: the core group
	Software string   `json:"software,omitempty"`
	Versions []string `json:"versions"`
	Kinds    []string `json:"kinds"`
}

// NetworkFlavor is a kind of networks that the API of a region shows.
type NetworkFlavor struct {
	Name    string `json:"name"` // "multus", "kube-ovn", …
	Group   string `json:"group"`
	Version string `json:"version"`
}

// NodeSummary counts the nodes of a region. A node that is usable is ready, is not
// cordoned and has no taint that keeps pods away.
type NodeSummary struct {
	Total    int `json:"total"`
	Usable   int `json:"usable"`
	NotReady int `json:"not_ready"`
	Cordoned int `json:"cordoned"`
	Tainted  int `json:"tainted"` // ready and not cordoned

	Architectures     map[string]int `json:"architectures,omitempty"`
	OperatingSystems  map[string]int `json:"operating_systems,omitempty"`
	Images            map[string]int `json:"os_images,omitempty"`
	Kernels           map[string]int `json:"kernels,omitempty"`
	Kubelets          map[string]int `json:"kubelets,omitempty"`
	ContainerRuntimes map[string]int `json:"container_runtimes,omitempty"`
}

// FeaturePrefix is the prefix of the labels that Node Feature Discovery gives nodes.
const FeaturePrefix = "feature.node.kubernetes.io/"

// NodeFeature is a label of Node Feature Discovery, and the number of nodes that have
// it.
type NodeFeature struct {
	Name  string `json:"name"` // without FeaturePrefix
	Value string `json:"value"`
	Nodes int    `json:"nodes"`
}

// NodeResource is a resource of the usable nodes together: cpu, memory, hugepages, or
// the devices of a device plugin, such as virtual functions.
type NodeResource struct {
	Name        string
	Nodes       int   // that have it
	Allocatable int64 // see Amounts
	Free        int64 // not requested by pods
	Largest     int64 // the most that is free on one node
	Pending     int64 // requested by pods that have no node
}

// DeviceCount counts the devices of a driver of Dynamic Resource Allocation.
type DeviceCount struct {
	Driver string `json:"driver"`
	Total  int    `json:"total"`
	Free   int    `json:"free"`
}

// NodeDevices are devices of one node: those of a device plugin, or those of a driver of
// Dynamic Resource Allocation.
type NodeDevices struct {
	Node     string
	Resource string // extended resource of a device plugin: "intel.com/sriov"; empty: Driver is set
	Driver   string
	Total    int
	Free     int
	NUMA     []NUMADevices // of the devices whose NUMA node is known
}

// NUMADevices are devices of one NUMA node.
type NUMADevices struct {
	Node  int64
	Total int
	Free  int
}

// Add adds a device. A negative NUMA node is not known.
func (d *NodeDevices) Add(numa int64, free bool) {
	one := 0
	if free {
		one = 1
	}
	d.Total, d.Free = d.Total+1, d.Free+one
	if numa < 0 {
		return
	}
	at := slices.IndexFunc(d.NUMA, func(n NUMADevices) bool { return n.Node == numa })
	if at < 0 {
		at, d.NUMA = len(d.NUMA), append(d.NUMA, NUMADevices{Node: numa})
	}
	d.NUMA[at].Total, d.NUMA[at].Free = d.NUMA[at].Total+1, d.NUMA[at].Free+one
}

// StorageClass is a storage class of a region.
type StorageClass struct {
	Name          string `json:"name"`
	Provisioner   string `json:"provisioner"`
	Default       bool   `json:"default"`
	Expansion     bool   `json:"expansion"`
	BindingMode   string `json:"binding_mode"`
	ReclaimPolicy string `json:"reclaim_policy"`
}

// MissingRule is a rule that the region's account needs to answer a part of a
// question.
type MissingRule struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
}

// String returns the rule as an RBAC role has it.
func (m MissingRule) String() string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%q]}", m.Group, m.Resource, m.Verb)
}

// NodeRoom is what is free on a usable node.
type NodeRoom struct {
	Name     string
	Zone     string            // of topology.kubernetes.io/zone; empty: none
	Features map[string]string // labels of Node Feature Discovery, without FeaturePrefix; nodes share it
	Total    Amounts           // allocatable
	Free     Amounts
}

// Serves reports whether the region serves a group, a "group/version" or a
// "group/version/Kind". The core group is "v1".
func (c RegionCapabilities) Serves(api string) bool {
	at, found := slices.BinarySearch(c.APIs, api)
	return found || at < len(c.APIs) && strings.HasPrefix(c.APIs[at], api+"/")
}

var pluginPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// MaxPlugins is how many CNI plugins a region may declare, and how many interfaces it may
// name.
const MaxPlugins = 64

// linkPattern is the form of the name of a network interface on Linux.
var linkPattern = regexp.MustCompile(`^[^\s/:]{1,15}$`)

// CheckInterfaces returns a violation for each error in the names that a region gives to
// the interfaces of its nodes.
func CheckInterfaces(field string, interfaces map[string]string) Violations {
	var v Violations
	if len(interfaces) > MaxPlugins {
		v = append(v, Violation{Field: field, Message: fmt.Sprintf("has %d interfaces; at most %d are allowed", len(interfaces), MaxPlugins)})
	}
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		switch {
		case !namespacePattern.MatchString(name):
			v = append(v, Violation{Field: field + "." + name, Message: "is not a name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends"})
		case !linkPattern.MatchString(interfaces[name]):
			v = append(v, Violation{Field: field + "." + name, Message: fmt.Sprintf("%q is not an interface: 1 to 15 characters, without blanks, '/' and ':'", Clip(interfaces[name], 64))})
		}
	}
	return v
}

// CheckPlugins returns a violation for each error in the CNI plugins that a region
// declares.
func CheckPlugins(field string, plugins map[string]bool) Violations {
	var v Violations
	if len(plugins) > MaxPlugins {
		v = append(v, Violation{Field: field, Message: fmt.Sprintf("has %d plugins; at most %d are allowed", len(plugins), MaxPlugins)})
	}
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		if !pluginPattern.MatchString(name) {
			v = append(v, Violation{Field: field + "." + name, Message: "is not the type of a CNI plugin"})
		}
	}
	return v
}
