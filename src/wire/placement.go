package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// PlacementNeeds is what a new instance needs of its region.
type PlacementNeeds struct {
	Selector string            `json:"selector,omitempty"`
	Regions  []string          `json:"regions,omitempty"`
	Features map[string]string `json:"features,omitempty"`
	Room     *Room             `json:"room,omitempty"`
	APIs     []string          `json:"apis,omitempty"`
	Networks []string          `json:"networks,omitempty"`
	Plugins  []string          `json:"cni_plugins,omitempty"`
	Prefer   nf.PlacementRule  `json:"prefer,omitempty"` // default fewest-instances
}

// Room is the room that a region must have, in quantities of Kubernetes.
type Room struct {
	Total map[string]string `json:"total,omitempty"`
	Pod   map[string]string `json:"pod,omitempty"`
	Pods  int               `json:"pods,omitempty"` // default 1 with Pod
}

// Domain returns the needs as the engine has them.
func (p *PlacementNeeds) Domain() *nf.Placement {
	if p == nil {
		return nil
	}
	out := &nf.Placement{Selector: p.Selector, Regions: p.Regions, Features: p.Features, APIs: p.APIs, Networks: p.Networks, Plugins: p.Plugins, Prefer: p.Prefer}
	if p.Room != nil {
		out.Room = nf.Room(*p.Room)
	}
	return out
}

// Placement is how the region of a new instance was chosen.
type Placement struct {
	Region     string           `json:"cloud_region_id"`
	Prefer     nf.PlacementRule `json:"prefer"`
	Candidates []Candidate      `json:"candidates"`
	Omitted    int              `json:"omitted,omitempty"`
}

// Candidate is a region that was considered.
type Candidate struct {
	Region    string             `json:"cloud_region_id"`
	Reason    nf.PlacementReason `json:"reason"`
	Detail    string             `json:"detail,omitempty"`
	Instances int                `json:"vnf_instances"`
}

func placementOf(p *nf.Placed) *Placement {
	if p == nil {
		return nil
	}
	return &Placement{Region: p.Region, Prefer: p.Prefer, Omitted: p.Omitted, Candidates: List(p.Candidates, func(c nf.Candidate) Candidate { return Candidate(c) })}
}
