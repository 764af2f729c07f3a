package nf

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Network is a virtual network of a cloud region that the pods of VNF instances
// attach to. Its objects in the region belong to the network, and not to an
// instance. It exists as long as it has a holder, or for ever if it is kept.
type Network struct {
	ID          string            `json:"id"`     // NetworkID of Region and Name
	Name        string            `json:"name"`   // unique in the region, in all projects
	Region      string            `json:"region"` // id of the cloud region
	Project     string            `json:"project,omitempty"`
	Driver      string            `json:"driver"` // "multus"
	Spec        json.RawMessage   `json:"spec"`   // as the driver has normalized it
	Keep        bool              `json:"keep,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	State       NetworkState      `json:"state"`
	Failure     Text              `json:"failure,omitzero"` // of NetworkFailed, or of the last change, which was undone
	Inventory   []Ref             `json:"inventory,omitempty"`
	Operation   string            `json:"operation,omitempty"` // that changes it; empty: none
	Claim       string            `json:"claim,omitempty"`     // token of the operation's claim
	Last        string            `json:"last,omitempty"`      // the last operation that was accepted
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// NetworkNamespace is the namespace of a region that contains the objects of networks.
const NetworkNamespace = "k8splugin-networks"

// NetworkTable is the table of networks in the store, and of the holds on them.
const NetworkTable = "networks"

// NetworkState is the state of a network.
type NetworkState string

// The states of a network.
const (
	NetworkCreating NetworkState = "creating"
	NetworkActive   NetworkState = "active"
	NetworkChanging NetworkState = "changing"
	NetworkDeleting NetworkState = "deleting" // unless it gets a holder in time
	NetworkFailed   NetworkState = "failed"   // a change or a deletion has failed; it can be repeated
)

// NetworkID returns the id of the network with the name in a region: "edge.oam". No
// name contains a dot, so two networks never have the same id.
func NetworkID(region, name string) string { return region + "." + name }

// MaxAttachments is how many attachments an instance may have.
const MaxAttachments = 64

// NoNetwork returns the violation of the attachment with an index whose network does
// not exist.
func NoNetwork(i int, region, name string) Violation {
	return Violation{Field: fmt.Sprintf("networks[%d].network", i), Message: fmt.Sprintf("cloud region %s has no network %q", region, name)}
}

// checkAttachments returns a violation for each attachment without a valid network. The
// driver of the network checks the rest.
func checkAttachments(all []Attachment) Violations {
	var v Violations
	if len(all) > MaxAttachments {
		v = append(v, Violation{Field: "networks", Message: fmt.Sprintf("are %d, and at most %d are allowed", len(all), MaxAttachments)})
	}
	for i, a := range all {
		v = append(v, CheckNetworkName(fmt.Sprintf("networks[%d].network", i), a.Network)...)
	}
	return v
}

// Scope returns the scope that permissions on the network are required in.
func (n Network) Scope() Scope { return Scope{Project: ProjectOf(n.Project), Region: n.Region} }

// Summary returns the summary of the network.
func (n Network) Summary() Summary {
	return Summary{Scope: n.Scope(), Attributes: append(labels(n.Labels),
		Attribute{AttributeRegion, n.Region}, Attribute{AttributeState, string(n.State)}, Attribute{AttributeProject, ProjectOf(n.Project)},
		Attribute{AttributeDriver, n.Driver})}
}

// NetworkRequest asks for a new network, or for a hold on one that is equal.
type NetworkRequest struct {
	Network Network // ID, State, Inventory and times are not read
	Holder  string  // that holds it
	Timeout time.Duration
	Key     RequestKey
	Trace   string
}

// Validate returns nf.Invalid unless the request is complete. The driver checks the spec.
func (r NetworkRequest) Validate() error {
	n := r.Network
	v := slices.Concat(CheckNetworkName("name", n.Name), CheckID("cloud_region_id", n.Region), CheckLabels("labels", n.Labels), CheckText("description", n.Description),
		CheckID("holder", r.Holder), checkTimeout(r.Timeout))
	if n.Project != "" {
		v = append(v, CheckID("project", n.Project)...)
	}
	if len(v) == 0 {
		v = Subject{Kind: NetworkSubject, ID: NetworkID(n.Region, n.Name)}.CheckOwner("name")
	}
	if len(v) > 0 {
		return E(Invalid, "create", "network "+n.Name, v)
	}
	return nil
}

// NetworkChangeRequest asks for a change of a network. The edit receives the present
// one and changes Spec, Keep, Description or Labels; it may be called more than once.
type NetworkChangeRequest struct {
	Edit    func(*Network) error
	Timeout time.Duration
	Key     RequestKey
	Trace   string
}

// NetworkReleaseRequest asks to release a network.
type NetworkReleaseRequest struct {
	Holder   string // whose hold ends; there need not be one
	IfUnused bool   // return Conflict if there is another holder
	Timeout  time.Duration
	Key      RequestKey
	Trace    string
}

// CheckNetworkName returns a violation unless name can name a network: an RFC 1123
// label, as the annotation for attachments allows it.
func CheckNetworkName(field, name string) Violations {
	if namespacePattern.MatchString(name) {
		return nil
	}
	return Violations{{Field: field, Message: fmt.Sprintf("%q is not a network name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends", name)}}
}

// Attachment attaches the pods of a workload to a network.
type Attachment struct {
	Network      string     `json:"network"`                 // name in the instance's region
	Workload     string     `json:"workload,omitempty"`      // "Kind/name" or "name" of an object with pods; AllWorkloads: every one; empty: the only one
	Interface    string     `json:"interface,omitempty"`     // in the pod; empty: net1, net2, … by position
	IPs          []string   `json:"ips,omitempty"`           // fixed addresses, with or without a prefix length, as the driver needs them
	MAC          string     `json:"mac,omitempty"`           // fixed
	DefaultRoute []string   `json:"default_route,omitempty"` // gateways of a default route through the interface
	Bandwidth    *Bandwidth `json:"bandwidth,omitempty"`
}

// AllWorkloads selects every object of an instance that has pods.
const AllWorkloads = "*"

// Bandwidth limits the traffic of an interface, in bits and bits per second.
type Bandwidth struct {
	IngressRate  int64 `json:"ingress_rate,omitempty"`
	IngressBurst int64 `json:"ingress_burst,omitempty"`
	EgressRate   int64 `json:"egress_rate,omitempty"`
	EgressBurst  int64 `json:"egress_burst,omitempty"`
}

// Connection is an attachment as the driver of its network carries it out.
type Connection struct {
	Attachment

	Field       string            // of the request: "networks[0]"
	Selection   map[string]any    // element of the annotation k8s.v1.cni.cncf.io/networks: name, namespace, ips, …; without interface
	Annotations map[string]string // further ones, of the pod
	Resources   map[string]int64  // extended resources that one attachment takes: "intel.com/sriov" → 1
}
