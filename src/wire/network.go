package wire

import (
	"encoding/json"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Network is a virtual network.
type Network struct {
	ID          string            `json:"network_id"`
	Name        string            `json:"name"`
	Region      string            `json:"cloud_region_id"`
	Project     string            `json:"project"`
	Driver      string            `json:"driver"`
	Spec        json.RawMessage   `json:"spec"`
	Keep        bool              `json:"keep"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	State       nf.SharedState    `json:"state"`
	Message     string            `json:"message,omitempty"`
	UseCount    *int              `json:"use_count,omitempty"` // not in lists
	Users       []Subject         `json:"users,omitempty"`     // not in lists
	Refs        []Ref             `json:"refs"`
	Operation   string            `json:"operation_id,omitempty"` // the last one
	Links       map[string]string `json:"links"`
	Created     time.Time         `json:"created_at"`
	Updated     time.Time         `json:"updated_at"`
}

// NetworkOf converts a network.
func NetworkOf(n nf.Network) Network {
	return Network{
		ID: n.ID, Name: n.Name, Region: n.Region, Project: nf.ProjectOf(n.Project), Driver: n.Driver, Spec: n.Spec, Keep: n.Keep,
		Description: n.Description, Labels: n.Labels, State: n.State, Message: n.Failure.String(), Operation: n.Last,
		Refs: List(n.Inventory, RefOf),
		Links: map[string]string{
			"self": NetworkPath(n.ID), "cloud_region": RegionPath(n.Region), "operations": "/v1/operations?subject=network/" + n.ID,
		},
		Created: n.Created, Updated: n.Updated,
	}
}

// With returns the network with its users.
func (n Network) With(count int, users []nf.Subject) Network {
	n.UseCount, n.Users = &count, List(users, func(s nf.Subject) Subject { return Subject(s) })
	return n
}

// NetworkCreate is a request to create a network, or to hold one that is equal.
type NetworkCreate struct {
	NetworkEdit

	Name    string `json:"name"`
	Region  string `json:"cloud_region_id"`
	Project string `json:"project,omitempty"`
	Driver  string `json:"driver"`
	Holder  string `json:"holder,omitempty"`  // default: the name of the caller
	Timeout any    `json:"timeout,omitempty"` // a duration or a number of seconds
}

// NetworkEdit holds the fields of a network that a merge patch may change.
type NetworkEdit struct {
	Spec        json.RawMessage   `json:"spec,omitempty"`
	Keep        bool              `json:"keep,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// Attachment attaches the pods of a workload to a network.
type Attachment struct {
	Network      string     `json:"network"` // name in the region of the instance
	Workload     string     `json:"workload,omitempty"`
	Interface    string     `json:"interface,omitempty"`
	IPs          []string   `json:"ips,omitempty"`
	MAC          string     `json:"mac,omitempty"`
	DefaultRoute []string   `json:"default_route,omitempty"`
	Bandwidth    *Bandwidth `json:"bandwidth,omitempty"`
	Create       *Creation  `json:"create,omitempty"` // the network, if it does not exist
}

// Creation says how an instance creates a network that it attaches to.
type Creation struct {
	Driver string          `json:"driver"`
	Spec   json.RawMessage `json:"spec"`
	Keep   bool            `json:"keep,omitempty"`
}

// Bandwidth limits the traffic of an interface, in bits and bits per second.
type Bandwidth struct {
	IngressRate  int64 `json:"ingress_rate,omitempty"`
	IngressBurst int64 `json:"ingress_burst,omitempty"`
	EgressRate   int64 `json:"egress_rate,omitempty"`
	EgressBurst  int64 `json:"egress_burst,omitempty"`
}

// AttachmentOf converts an attachment.
func AttachmentOf(a nf.Attachment) Attachment {
	return Attachment{a.Network, a.Workload, a.Interface, a.IPs, a.MAC, a.DefaultRoute, (*Bandwidth)(a.Bandwidth), (*Creation)(a.Create)}
}

// Domain returns the attachment as the engine has it.
func (a Attachment) Domain() nf.Attachment {
	return nf.Attachment{Network: a.Network, Workload: a.Workload, Interface: a.Interface, IPs: a.IPs, MAC: a.MAC, DefaultRoute: a.DefaultRoute, Bandwidth: (*nf.Bandwidth)(a.Bandwidth), Create: (*nf.Creation)(a.Create)}
}
