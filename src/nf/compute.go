package nf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ComputeProfile is what a container of a workload needs, and what the nodes of its pods
// must have. ETSI calls it a virtual compute descriptor.
type ComputeProfile struct {
	Requests    map[string]string   `json:"requests,omitempty"`     // quantities of cpu, memory and ephemeral-storage
	Limits      map[string]string   `json:"limits,omitempty"`       // likewise
	HugePages   map[string]string   `json:"hugepages,omitempty"`    // quantities by the size of the pages: "2Mi", "1Gi"
	Devices     map[string]int64    `json:"devices,omitempty"`      // numbers of extended resources: "nvidia.com/gpu"
	Node        map[string]string   `json:"node,omitempty"`         // labels of the nodes; AnyValue: whatever the value is
	Flavor      string              `json:"flavor,omitempty"`       // class of the region's nodes, whose features they must have
	FlavorNodes []map[string]string `json:"flavor_nodes,omitempty"` // labels of nodes with those features, as alternatives; set when a change is planned
	Spread      ComputeSpread       `json:"spread,omitempty"`
	Tolerations []Toleration        `json:"tolerations,omitempty"` // in addition to those of the pods
}

// ComputeSpread says over what the pods of a workload are spread evenly.
type ComputeSpread string

// The spreads.
const (
	SpreadNodes ComputeSpread = "node"
	SpreadZones ComputeSpread = "zone"
)

// Toleration is a toleration of Kubernetes.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// ComputeUse gives a workload a compute profile.
type ComputeUse struct {
	Workload  string         `json:"workload,omitempty"`  // as in an Attachment
	Container string         `json:"container,omitempty"` // that gets the resources; empty: the first one
	Name      string         `json:"name,omitempty"`      // of the profile in its package; empty: the request has the profile
	Profile   ComputeProfile `json:"profile"`
}

// FlavorPrefix begins the names of flavors, which are classes of the nodes of a region.
// Names of profiles do not begin with it.
const FlavorPrefix = "k8s-"

// The keys of oof_parameters that assign compute profiles.
const (
	ComputeProfilesKey = "compute_profiles"
	DirectivesKey      = "directives" // of ONAP's OOF; it is also a variable
)

// HasOOFVariables reports whether oof_parameters have variables: other keys than those that
// assign compute profiles.
func (in Inputs) HasOOFVariables() bool {
	return slices.ContainsFunc(in.OOF, func(fields map[string]any) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(key string) bool { return key != ComputeProfilesKey && key != DirectivesKey })
	})
}

// MaxProfiles is how many compute profiles a package, and a request, may have.
const MaxProfiles = 64

// CheckProfileName returns why a text cannot be the name of a compute profile, or "".
func CheckProfileName(name string) (fault string) {
	switch {
	case !namespacePattern.MatchString(name):
		return fmt.Sprintf("%q is not the name of a compute profile: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends", Clip(name, 64))
	case strings.HasPrefix(name, FlavorPrefix):
		return fmt.Sprintf("%q is not the name of a compute profile: names that begin with %s are flavors of the region", name, FlavorPrefix)
	}
	return ""
}
