package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// ComputeUse is the compute profile of a workload.
type ComputeUse struct {
	Workload  string         `json:"workload"`
	Container string         `json:"container,omitempty"` // empty: the first one
	Name      string         `json:"name,omitempty"`      // empty: the request has the profile
	Profile   ComputeProfile `json:"profile"`
}

// ComputeProfile is a compute profile as it was resolved.
type ComputeProfile struct {
	Requests    map[string]string   `json:"requests,omitempty"`
	Limits      map[string]string   `json:"limits,omitempty"`
	HugePages   map[string]string   `json:"hugepages,omitempty"` // by the size of the pages
	Devices     map[string]int64    `json:"devices,omitempty"`   // numbers of extended resources
	Node        map[string]string   `json:"node,omitempty"`      // labels of the nodes
	Flavor      string              `json:"flavor,omitempty"`
	FlavorNodes []map[string]string `json:"flavor_nodes,omitempty"` // labels of the nodes of the flavor, as alternatives
	Spread      nf.ComputeSpread    `json:"spread,omitempty"`
	Tolerations []nf.Toleration     `json:"tolerations,omitempty"`
}

// ComputeUseOf converts the compute profile of a workload.
func ComputeUseOf(u nf.ComputeUse) ComputeUse {
	return ComputeUse{u.Workload, u.Container, u.Name, ComputeProfile(u.Profile)}
}
