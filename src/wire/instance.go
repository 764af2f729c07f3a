package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// InstanceSummary is a VNF instance in a list.
type InstanceSummary struct {
	ID               string            `json:"vnf_id"`
	Region           string            `json:"cloud_region_id"`
	Namespace        string            `json:"namespace"`
	Project          string            `json:"project"`
	Package          string            `json:"csar_id"`
	Name             string            `json:"vnf_instance_name,omitempty"`
	Description      string            `json:"vnf_instance_description,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	State            nf.InstanceState  `json:"state"`
	Message          string            `json:"message,omitempty"`
	Health           nf.HealthState    `json:"health,omitempty"` // empty: not requested
	HealthMessage    string            `json:"health_message,omitempty"`
	DriftState       nf.DriftState     `json:"drift_state,omitempty"` // empty: no policy, or not requested
	Revision         int               `json:"revision"`
	Operation        string            `json:"operation_id"` // the last one
	RunningOperation string            `json:"running_operation_id,omitempty"`
	Links            map[string]string `json:"links"`
	Created          time.Time         `json:"created_at"`
	Updated          time.Time         `json:"updated_at"`
}

// InstanceSummaryOf converts an instance without its health.
func InstanceSummaryOf(in nf.Instance) InstanceSummary {
	return InstanceSummary{
		ID: in.ID, Region: in.Region, Namespace: in.Namespace, Project: nf.ProjectOf(in.Project), Package: in.Package, Name: in.Name,
		Description: in.Description, Labels: in.Labels, State: in.State, Message: in.Said().String(), Revision: in.Revision,
		Operation: in.LastOperation, RunningOperation: in.Operation,
		Links: map[string]string{
			"self": InstancePath(in.ID), "cloud_region": RegionPath(in.Region), "package": PackagePath(in.Package),
			"operation": OperationPath(in.LastOperation),
		},
		Created: in.Created, Updated: in.Updated,
	}
}

// WithHealth adds the health of the instance.
func (s InstanceSummary) WithHealth(h nf.InstanceHealth) InstanceSummary {
	s.Health, s.HealthMessage = h.State, h.Message
	return s
}

// Instance is a VNF instance.
type Instance struct {
	InstanceSummary

	Components        map[string][]string `json:"vnf_components"`
	Release           string              `json:"release,omitempty"`
	Namespaces        []string            `json:"namespaces,omitempty"`       // additional namespaces from its request
	Networks          []Attachment        `json:"networks,omitempty"`         // that its request asks for
	Attachments       []Attachment        `json:"attachments,omitempty"`      // of its workloads
	Volumes           []VolumeUse         `json:"volumes,omitempty"`          // that its request asks for
	Bindings          []VolumeUse         `json:"bindings,omitempty"`         // of its claims
	Compute           []ComputeUse        `json:"compute_profiles,omitempty"` // of its workloads
	Drift             *DriftPolicy        `json:"drift,omitempty"`
	Claims            nf.ClaimPolicy      `json:"claims,omitempty"`
	AAI               *AAI                `json:"aai,omitempty"`
	DriftMessage      string              `json:"drift_message,omitempty"`
	DriftSince        *time.Time          `json:"drift_since,omitempty"`
	Workloads         []WorkloadCluster   `json:"workload_clusters,omitempty"`
	Parameters        map[string]any      `json:"parameters,omitempty"`
	OOFParameters     []map[string]any    `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any      `json:"network_parameters,omitempty"`
	Overrides         map[string]string   `json:"set,omitempty"`
	Amendments        []Amendment         `json:"amendments,omitempty"`
	Settings          []Setting           `json:"settings,omitempty"` // fields that actions have set
	Warnings          []string            `json:"warnings,omitempty"` // warnings of this request
	Healthy           *bool               `json:"healthy,omitempty"`  // nil: not requested
	Objects           []Object            `json:"objects,omitzero"`   // nil: not requested
	Pods              []Pod               `json:"pods,omitzero"`      // nil: not requested
}

// Pod is a pod of an instance with its health.
type Pod struct {
	Ref

	Status     nf.Status   `json:"status"`
	Message    string      `json:"message,omitempty"`
	Node       string      `json:"node,omitempty"`
	Workload   Ref         `json:"workload"`
	Interfaces []Interface `json:"interfaces,omitempty"`
}

// Interface is an interface of a pod.
type Interface struct {
	Name    string   `json:"name"`
	Network string   `json:"network"`
	IPs     []string `json:"ips,omitempty"`
	MAC     string   `json:"mac,omitempty"`
}

// PodOf converts a pod.
func PodOf(p nf.Pod) Pod {
	return Pod{
		RefOf(p.Ref), p.Status, p.Message, p.Node, RefOf(p.Workload),
		List(p.Interfaces, func(i nf.Interface) Interface { return Interface(i) }),
	}
}

// Object is one object of an instance with its health.
type Object struct {
	Ref

	Status  nf.Status `json:"status"`
	Message string    `json:"message,omitempty"`

	Drift *ObjectDrift `json:"drift,omitempty"` // nil: none
}

// InstanceOf converts an instance without its health, with sensitive values
// masked.
func InstanceOf(in nf.Instance) Instance {
	shown := in.Inputs.Mask(in.Sensitive)
	return Instance{
		InstanceSummary: InstanceSummaryOf(in),
		Components:      nf.Components(in.Inventory),
		Release:         in.Release, Namespaces: in.Namespaces,
		Parameters: shown.Parameters, OOFParameters: shown.OOF, NetworkParameters: shown.Network, Overrides: shown.Overrides,
		Amendments: amendmentsOf(in.Amendments, in.Sensitive), Networks: List(in.Networks, AttachmentOf),
		Volumes: List(in.Volumes, VolumeUseOf), Bindings: List(in.VolumeUses(), VolumeUseOf),
		Drift: DriftPolicyOf(in.Drift), Claims: in.Claims, AAI: AAIOf(in.AAIInForce()),
		Workloads:   List(in.Clusters(), WorkloadClusterOf),
		Settings:    List(in.Settings, SettingOf),
		Attachments: List(in.Attachments(), AttachmentOf),
		Compute:     List(in.Compute, ComputeUseOf),
	}
}

// WithObjects adds the health of the objects, and the health of the instance
// that follows from it.
func (in Instance) WithObjects(health []nf.Health) Instance {
	all := nf.Assess(in.State, health)
	in.Healthy, in.InstanceSummary = new(all.State == nf.Healthy), in.WithHealth(all)
	in.Objects = List(health, func(h nf.Health) Object { return Object{Ref: RefOf(h.Ref), Status: h.Status, Message: h.Message} })
	return in
}

// Amendment is an amendment of an instance.
type Amendment struct {
	Name       string            `json:"name"`
	Package    string            `json:"csar_id"`
	Parameters map[string]any    `json:"parameters,omitempty"`
	Overrides  map[string]string `json:"set,omitempty"`
}

// amendmentsOf converts amendments, with sensitive values masked.
func amendmentsOf(all []nf.Amendment, sensitive []string) []Amendment {
	return List(all, func(am nf.Amendment) Amendment {
		shown := am.Inputs.Mask(sensitive)
		return Amendment{Name: am.Name, Package: am.Package, Parameters: shown.Parameters, Overrides: shown.Overrides}
	})
}

// RevisionState is the position of a revision relative to the active one.
type RevisionState string

// The states of a revision.
const (
	RevisionActive     RevisionState = "active"
	RevisionSuperseded RevisionState = "superseded" // it was active before
	RevisionPending    RevisionState = "pending"    // the running operation applies it
	RevisionFailed     RevisionState = "failed"     // its operation failed, and its results were kept
)

func revisionState(r nf.Revision, in nf.Instance) RevisionState {
	switch {
	case r.Number == in.Revision:
		return RevisionActive
	case r.Number < in.Revision:
		return RevisionSuperseded
	case r.Operation == in.Operation:
		return RevisionPending
	}
	return RevisionFailed
}

// Revision is a revision of an instance.
type Revision struct {
	Number            int               `json:"number"`
	InForce           bool              `json:"active"`
	State             RevisionState     `json:"state"`
	Restores          int               `json:"restored_revision,omitempty"`
	Package           string            `json:"csar_id"`
	PackageDigest     string            `json:"package_digest"`
	Description       string            `json:"vnf_instance_description,omitempty"`
	Parameters        map[string]any    `json:"parameters,omitempty"`
	OOFParameters     []map[string]any  `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any    `json:"network_parameters,omitempty"`
	Overrides         map[string]string `json:"set,omitempty"`
	Amendments        []Amendment       `json:"amendments,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Notes             string            `json:"notes,omitempty"`
	Operation         string            `json:"operation_id"`
	Created           time.Time         `json:"created_at"`
}

// RevisionOf converts a revision of an instance, with sensitive values masked.
func RevisionOf(r nf.Revision, in nf.Instance) Revision {
	shown := r.Inputs.Mask(r.Sensitive)
	return Revision{
		Number: r.Number, InForce: r.Number == in.Revision, State: revisionState(r, in), Restores: r.Restores,
		Package: r.Package, PackageDigest: r.PackageDigest, Description: r.Description,
		Parameters: shown.Parameters, OOFParameters: shown.OOF, NetworkParameters: shown.Network, Overrides: shown.Overrides,
		Amendments: amendmentsOf(r.Amendments, r.Sensitive),
		Labels:     r.Labels, Notes: r.Notes, Operation: r.Operation, Created: r.Created,
	}
}

// Listed returns the revision as a list shows it: without its notes.
func (r Revision) Listed() Revision {
	r.Notes = ""
	return r
}
