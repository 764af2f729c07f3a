package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// InstanceCreate is a request to create a VNF instance.
type InstanceCreate struct {
	InstanceTarget
	InstanceEdit
	Execution

	Placement *PlacementNeeds `json:"placement,omitempty"` // in place of the region
	Adopt     bool            `json:"adopt,omitempty"`     // objects that exist without an owner become the instance's
	Strict    bool            `json:"strict,omitempty"`    // parameters that have no effect are errors
}

// InstanceTarget says where a new instance is, and names it.
type InstanceTarget struct {
	Region    string `json:"cloud_region_id,omitempty"`
	Project   string `json:"project,omitempty"`           // default "default"
	Namespace string `json:"namespace,omitempty"`         // default is the region's default namespace, or "default"
	Name      string `json:"vnf_instance_name,omitempty"` // unique in its region and namespace
	Release   string `json:"release,omitempty"`           // of a chart; default is the name, or the id of an instance without a name
}

// InstanceEdit holds the fields of an instance that a merge patch may change.
type InstanceEdit struct {
	Package           string            `json:"csar_id,omitempty"`
	Description       string            `json:"vnf_instance_description,omitempty"`
	Parameters        map[string]any    `json:"parameters,omitempty"`
	OOFParameters     []map[string]any  `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any    `json:"network_parameters,omitempty"`
	Overrides         map[string]string `json:"set,omitempty"` // of a chart, by path, as in Helm's --set
	Labels            map[string]string `json:"labels,omitempty"`
	Namespaces        []string          `json:"namespaces,omitzero"` // additional namespaces that objects may be in; [] removes all
	Networks          []Attachment      `json:"networks,omitzero"`   // of its workloads; [] removes all
	Volumes           []VolumeUse       `json:"volumes,omitzero"`    // that its claims bind; [] removes all
	Drift             *DriftPolicy      `json:"drift,omitempty"`
	Claims            nf.ClaimPolicy    `json:"claims,omitempty"` // of StatefulSets, at termination
	AAI               *AAI              `json:"aai,omitempty"`
	Workloads         []WorkloadCluster `json:"workload_clusters,omitzero"` // clusters of its package that become regions; [] deregisters all; null: those that the package declares
}

// InstancePatch is a merge patch of an instance, as a client sends it. It does
// not change an empty field. A nil value in a map removes the entry.
type InstancePatch struct {
	InstanceEdit
	Execution

	Overrides map[string]*string `json:"set,omitempty"`
	Labels    map[string]*string `json:"labels,omitempty"`
	Strict    bool               `json:"strict,omitempty"` // parameters that have no effect are errors
}

// InstanceAdopt is a request to adopt a running release as an instance.
type InstanceAdopt struct {
	InstanceTarget
	Execution

	Package     string            `json:"csar_id"`
	Description string            `json:"vnf_instance_description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Namespaces  []string          `json:"namespaces,omitempty"` // additional namespaces that objects may be in
}

// AmendmentPut is a request to add an amendment to an instance, or to replace
// it.
type AmendmentPut struct {
	Execution

	Package    string            `json:"csar_id,omitempty"`
	Parameters map[string]any    `json:"parameters,omitempty"`
	Overrides  map[string]string `json:"set,omitempty"`
}

// Rollback is a request to roll back an instance.
type Rollback struct {
	Execution

	Revision int `json:"revision,omitempty"` // 0: the one before the active revision
}
