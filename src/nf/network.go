package nf

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
)

// Network is a virtual network of a cloud region that the pods of VNF instances
// attach to.
type Network = Shared

// NetworkNamespace is the namespace of a region that contains the objects of networks.
const NetworkNamespace = "k8splugin-networks"

// OrphansOf begins the name of the holder that holds networks and volumes for the objects
// of an instance that was removed without them. The id of the instance follows.
const OrphansOf = "orphans-of-"

// NetworkTable is the table of networks in the store, and of the holds on them.
const NetworkTable = "networks"

// MaxAttachments is how many attachments an instance may have.
const MaxAttachments = 64

// checkAttachments returns a violation for each attachment without a valid network. The
// driver of the network checks the rest.
func checkAttachments(all []Attachment) Violations {
	var v Violations
	if len(all) > MaxAttachments {
		v = append(v, Violation{Field: "networks", Message: fmt.Sprintf("are %d, and at most %d are allowed", len(all), MaxAttachments)})
	}
	defined := map[string]int{}
	for i, a := range all {
		v = append(v, CheckSharedName(fmt.Sprintf("networks[%d].network", i), a.Network, NetworkSubject)...)
		if a.Create == nil {
			continue
		}
		if first, twice := defined[a.Network]; twice {
			v = append(v, Violation{Field: fmt.Sprintf("networks[%d].create", i), Message: fmt.Sprintf("networks[%d] creates the network already", first)})
			continue
		}
		defined[a.Network] = i
	}
	return v
}

// NetworkRegion is what the driver of a network knows of its region.
type NetworkRegion struct {
	Served     []Ref             // kinds that the driver asks for, and that the region serves
	Interfaces map[string]string // see Region
}

// Serves reports whether the region serves a kind that the driver asks for.
func (r NetworkRegion) Serves(kind Ref) bool { return slices.Contains(r.Served, kind) }

// Attachment attaches the pods of a workload to a network.
type Attachment struct {
	Network      string     `json:"network"`                 // name in the instance's region
	Workload     string     `json:"workload,omitempty"`      // "Kind/name" or "name" of an object with pods; AllWorkloads: every one; empty: the only one
	Interface    string     `json:"interface,omitempty"`     // in the pod; empty: net1, net2, … by position
	IPs          []string   `json:"ips,omitempty"`           // fixed addresses, with or without a prefix length, as the driver needs them
	MAC          string     `json:"mac,omitempty"`           // fixed
	DefaultRoute []string   `json:"default_route,omitempty"` // gateways of a default route through the interface
	Bandwidth    *Bandwidth `json:"bandwidth,omitempty"`
	Create       *Creation  `json:"create,omitempty"` // the network if it does not exist; nil: it must exist

	Point string `json:"point,omitempty"` // connection point of the VNFD that a request of SOL003 attaches; empty: none, or it was not stored
}

// Creation says how an instance creates a network that it attaches to.
type Creation struct {
	Driver string          `json:"driver"`
	Spec   json.RawMessage `json:"spec"`
	Keep   bool            `json:"keep,omitempty"`
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

	At          Place
	Names       map[string]string // of fields below that of At, where they are not those of the attachment
	Selection   map[string]any    // element of the annotation k8s.v1.cni.cncf.io/networks: name, namespace, ips, …; without interface
	Annotations map[string]string // further ones, of the pod
	Annotated   bool              // addresses and bandwidth are in Annotations, so that a virtual machine gets them, too
	Resources   map[string]int64  // extended resources that one attachment takes: "intel.com/sriov" → 1
}

// Violation returns a violation of a field of the attachment, such as "ips[0]"; of the
// attachment itself, if the field is empty.
func (c Connection) Violation(field, message string) Violation {
	if name, other := c.Names[field]; other {
		field = name
	}
	return c.At.Violation(field, message)
}

// Attachments returns the attachments of the revision's workloads: those that its
// request, its package and its network parameters ask for.
func (r Revision) Attachments() []Attachment {
	if r.Attached != nil {
		return r.Attached
	}
	return r.Networks
}

// Attachments returns the attachments of the instance's workloads: those that its
// request, its package and its network parameters ask for.
func (in Instance) Attachments() []Attachment {
	return Revision{Networks: in.Networks, Attached: in.Attached}.Attachments()
}

// Layout is where a network is, and which addresses it has.
type Layout struct {
	Physical string // name of the underlay; empty: none
	VLAN     int    // 0: none
	Ranges   []LayoutRange
}

// LayoutRange is a range of addresses of a network.
type LayoutRange struct {
	Prefix     netip.Prefix
	Gateway    netip.Addr // invalid: none
	Start, End netip.Addr // of the addresses that pods get; invalid: not limited or unknown
}
