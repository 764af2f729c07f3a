package tosca

import "github.com/multicloud-k8s/k8splugin/src/nf"

// DefaultFlavor is the id of the only flavor of a descriptor that does not name it.
const DefaultFlavor = "default"

// Topology is what a VNF descriptor describes. Its values must not be changed.
type Topology struct {
	Flavors  map[string]Flavor
	Files    []string // of the descriptor, the entry first
	Warnings []string // parts that are not used, with their file and line
}

// Flavor is a deployment flavor. The keys of its maps are the names of node templates,
// levels and aspects.
type Flavor struct {
	ID               string
	Description      string
	NodeType         string // of the VNF: substitution_mappings.node_type
	VDUs             map[string]VDU
	Levels           map[string]Level
	DefaultLevel     string // the level of a request without one; empty: it must have one
	Aspects          map[string]Aspect
	ConnectionPoints map[string]ConnectionPoint
	Links            map[string]Link
	Placement        []PlacementRule
	Scripts          map[string]Script // by operation: instantiate_end
}

// VDU is a virtualisation deployment unit: a workload of Kubernetes.
type VDU struct {
	Name        string // metadata.name of the workload: properties.name or the id, in the form that Translate gives it
	Workload    string // kind of the workload; empty: the descriptor does not say it
	Description string
	Min, Max    int    // pods, by vdu_profile; Max 0: the profile gives none
	Initial     int    // pods with all aspects at level 0; -1: the descriptor gives none
	Compute     string // flavor of a virtual machine: requested_additional_capability_name; empty: none
	File        string // of the node template
	Line        int
}

// Level is an instantiation level.
type Level struct {
	Description string
	Counts      map[string]int // pods by VDU; absent: the level gives none
	Aspects     map[string]int // level by scaling aspect; absent: 0
}

// Aspect is a scaling aspect.
type Aspect struct {
	Name        string
	Description string
	MaxLevel    int
	// Steps has the pods by VDU that each step adds: the first one leads from level 0 to
	// level 1. If there are fewer than MaxLevel, the last one is repeated.
	Steps []map[string]int
}

// ConnectionPoint is a connection point of a VDU, or of the VNF.
type ConnectionPoint struct {
	VDU      string // empty: it is one of the VNF alone (VnfExtCp)
	Link     string // of the VNF; empty: none
	External string // requirement of the VNF that it exposes: virtual_link_external; empty: it is internal
	Order    int    // of the interface of the VDU; -1: the descriptor gives none
}

// Link is a virtual link inside the VNF.
type Link struct {
	Network     string // network_name of a descriptor of Tacker; empty: none
	Description string
}

// PlacementRule says which VDUs have, or must not have, a host, zone or site in common.
type PlacementRule struct {
	Name  string
	Anti  bool
	Scope string // nfvi_node, zone, nfvi_pop, zone_group, …
	VDUs  []string
}

// Script is what runs in an operation of the interface Vnflcm. The package does not run
// it.
type Script struct {
	Artifact string // name; empty: the operation runs nothing
	Type     string // of the artifact: tosca.artifacts.Implementation.Python
	File     string // in the CSAR
	Inputs   map[string]any
}

// IsJob reports whether the script has a file that a Job of a cloud region runs. Other files run
// on hosts, or are those of webhooks.
func (s Script) IsJob() bool {
	return s.File != "" && s.Type != nf.SSHScript && s.Type != nf.WebhookScript
}
