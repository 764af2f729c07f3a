package nf

import (
	"log/slog"
	"time"
)

// Region is one cloud region: a Kubernetes cluster that we hold the kubeconfig
// of. Owner and ID together are A&AI's key of a cloud region; here the ID alone
// is unique.
type Region struct {
	ID          string            `json:"id"`
	Owner       string            `json:"owner"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Kubeconfig  Secret            `json:"kubeconfig"`
	Tenants     map[string]Tenant `json:"tenants,omitempty"`  // what projects may use, by project or AnyProject
	Probe       Probe             `json:"probe"`              // what the last successful probe saw
	Removing    string            `json:"removing,omitempty"` // the attempt to remove it that is under way
	Request     RequestKey        `json:"request,omitzero"`   // under which its client registered it
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// LogValue logs the id alone: the stored form that a JSON log would show holds
// the kubeconfig.
func (r Region) LogValue() slog.Value { return slog.StringValue(r.ID) }

// Probe is what a region's API server said of itself.
type Probe struct {
	Server  string    `json:"server"`  // URL of the API server
	Version string    `json:"version"` // "v1.37.1"
	APIs    []string  `json:"apis"`    // group/versions that it serves, sorted: "apps/v1"
	Time    time.Time `json:"time"`
}

// Capabilities are what a region's API server can do, as charts ask for it.
type Capabilities struct {
	Version string   // "v1.37.1"
	APIs    []string // "apps/v1" and "apps/v1/Deployment", sorted
}

// RegionState is how a region is doing, as one replica of the service sees it.
// It is measured, never stored.
type RegionState struct {
	Condition  RegionCondition
	Reason     string // narrows a condition that is not good: "tcp", "dns", "tls", "timeout", "unauthorized", "unavailable"
	Message    string
	Since      time.Time // of the condition
	Checked    time.Time // when the region was last asked; zero: never
	Breaker    BreakerState
	Retry      time.Time // when an open breaker lets the next request through
	Credential Credential
}

// RegionCondition says whether a region can be worked with.
type RegionCondition string

// The conditions of a region.
const (
	RegionUnknown     RegionCondition = "unknown" // not asked yet
	RegionAvailable   RegionCondition = "available"
	RegionExpiring    RegionCondition = "expiring" // available, but its credential will expire soon
	RegionUnreachable RegionCondition = "unreachable"
)

// BreakerState says whether requests to a region are let through.
type BreakerState string

// The states of a region's circuit breaker.
const (
	BreakerClosed   BreakerState = "closed"    // they are
	BreakerHalfOpen BreakerState = "half-open" // one is, to see whether the region is back
	BreakerOpen     BreakerState = "open"      // none is
)

// Credential is what a kubeconfig authenticates with, without the secret.
type Credential struct {
	Kind    string    // "client-certificate", "token" or "basic"; empty: none
	Expires time.Time // zero: never, or unknown
}

// Holding is an instance's hold on a region, on a package, or on both: an empty
// name is none.
type Holding struct {
	Instance string
	Region   string
	Package  string
}
