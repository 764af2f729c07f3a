package nf

import (
	"log/slog"
	"time"
)

// Region is one cloud region: a Kubernetes cluster, and how the service connects
// to it; or an OpenStack cloud. Owner and ID together are A&AI's key of a cloud region; here the ID
// alone is unique.
type Region struct {
	ID          string            `json:"id"`
	Owner       string            `json:"owner"`
	Type        RegionType        `json:"type"`
	Origin      RegionOrigin      `json:"origin"` // what registered it; never changes
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Access      Access            `json:"access"`
	Tenants     map[string]Tenant `json:"tenants,omitempty"`  // grants to projects, by project or AnyProject
	Probe       Probe             `json:"probe"`              // result of the last successful probe
	Removing    string            `json:"removing,omitempty"` // the running attempt to remove it
	Request     RequestKey        `json:"request,omitzero"`   // the client's key for the registration
	Parent      *Parent           `json:"parent,omitempty"`   // the cluster of another region that it is; nil: none is known
	AAI         *AAISource        `json:"aai,omitempty"`      // that the access is read from; nil: requests set it
	VIM         *VIM              `json:"vim,omitempty"`      // what only Tacker's API knows of it; nil: nothing
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`

	// DefaultNamespace is the namespace of new instances whose request names
	// none; empty: "default".
	DefaultNamespace string `json:"default_namespace,omitempty"`

	// AAITenant is the id of the region's tenant in A&AI whose objects are those of
	// instances that name none; empty: there is none.
	AAITenant string `json:"aai_tenant,omitempty"`

	// Plugins declares the CNI plugins on the nodes by their types: whether they are
	// there. No API tells that; a missing one is unknown.
	Plugins map[string]bool `json:"cni_plugins,omitempty"`

	// Interfaces are the interfaces of the nodes by names that mean the same in several
	// regions: "oam" → "eth1". Specs of networks use the names.
	Interfaces map[string]string `json:"interfaces,omitempty"`
}

// RegionType is the kind of infrastructure behind a region.
type RegionType string

// The types of regions.
const (
	KubernetesRegion RegionType = "kubernetes" // a Kubernetes cluster
	OpenStackRegion  RegionType = "openstack"  // an OpenStack cloud, which creates the machines of sites and of VNFs
)

// RegionOrigin says what registered a region.
type RegionOrigin string

// The origins of regions.
const (
	OriginAPI     RegionOrigin = "api"     // the native API
	OriginONAP    RegionOrigin = "onap"    // ONAP's API
	OriginSite    RegionOrigin = "site"    // the build of a site
	OriginCluster RegionOrigin = "cluster" // an instance, with a cluster of Cluster API
	OriginImport  RegionOrigin = "import"  // the import from an ONAP plugin's database
	OriginAAI     RegionOrigin = "aai"     // the import from A&AI
	OriginTacker  RegionOrigin = "tacker"  // Tacker's API
	OriginVNF     RegionOrigin = "vnf"     // a request for a VNF; removed when no VNF needs it
)

// LogValue logs only the id: the stored form contains the credential, and a
// JSON log would show it.
func (r Region) LogValue() slog.Value { return slog.StringValue(r.ID) }

// Probe is the result of querying a region's API server.
type Probe struct {
	Server  string    `json:"server"`  // URL of the API server
	Version string    `json:"version"` // "v1.37.1"
	APIs    []string  `json:"apis"`    // group/versions that it serves, sorted: "apps/v1"
	Time    time.Time `json:"time"`
}

// Capabilities are the capabilities of a region's API server, as charts query
// them.
type Capabilities struct {
	Version string   // "v1.37.1"
	APIs    []string // "apps/v1" and "apps/v1/Deployment", sorted
}

// RegionState is the state of a region as one replica observes it. It is
// measured, never stored.
type RegionState struct {
	Condition  RegionCondition
	Reason     string // narrows a condition other than available: "tcp", "dns", "tls", "timeout", "unauthorized", "unavailable"
	Message    string
	Since      time.Time // of the condition
	Checked    time.Time // time of the last check; zero: never
	Breaker    BreakerState
	Retry      time.Time // when an open breaker allows the next request
	Credential Credential
}

// RegionCondition says whether a region is usable.
type RegionCondition string

// The conditions of a region.
const (
	RegionUnknown     RegionCondition = "unknown" // not checked yet
	RegionAvailable   RegionCondition = "available"
	RegionExpiring    RegionCondition = "expiring" // available, but its credential will expire soon
	RegionUnreachable RegionCondition = "unreachable"
)

// BreakerState says whether requests to a region, or to another target, are
// allowed.
type BreakerState string

// The states of a circuit breaker.
const (
	BreakerClosed   BreakerState = "closed"    // all requests are
	BreakerHalfOpen BreakerState = "half-open" // one is, to check whether the target has recovered
	BreakerOpen     BreakerState = "open"      // none is
)

// Credential describes the credential of a region, without the secret.
type Credential struct {
	Kind    string    // "client-certificate", "token", "basic", "oidc" or "service-account"; empty: none
	Expires time.Time // zero: never, or unknown
	Rotates bool      // the service renews it
	Failing time.Time // since when the renewal fails or waits for an operator; zero: it works
	Request string    // name of the CertificateSigningRequest that is not answered; empty: none
}

// Holder is a subject that holds something, and the scope of the subject. The scope
// is empty for a hold that is not part of any list.
type Holder struct {
	Subject Subject `json:"subject"`
	Scope   Scope   `json:"scope,omitzero"`
}

// Holding is a holder's hold on a region, on a package, or on both. An empty name
// means no hold.
type Holding struct {
	Holder  Holder
	Region  string
	Package string
}
