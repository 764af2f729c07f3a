package nf

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Placement is what a new instance needs of its region, in place of the region's id.
type Placement struct {
	Selector string            // label selector of regions; empty: all
	Regions  []string          // the regions to choose from; empty: all
	Features map[string]string // labels that Node Feature Discovery gives a node; AnyValue: whatever the value is
	Room     Room
	APIs     []string // groups, "group/version" or "group/version/Kind"
	Networks []string // flavors, as in RegionCapabilities
	Plugins  []string // CNI plugins
	Prefer   PlacementRule

	// Permit reports whether the caller sees a region, and a reason why it may not use
	// it. Nil: it may use all regions.
	Permit func(ctx context.Context, region string) (seen bool, refused PlacementReason, err error)
	// Attach reports whether the caller may attach workloads to a network. Nil: to all.
	Attach func(ctx context.Context, n Network) (bool, error)
	// Mount reports whether the caller may use a volume. Nil: all.
	Mount func(ctx context.Context, v Volume) (bool, error)
}

// AnyValue is the value of a feature that only has to be there.
const AnyValue = "*"

// Room is the room that a region must have, in quantities of Kubernetes by resource.
type Room struct {
	Total map[string]string // on all nodes with the features together
	Pod   map[string]string // of each pod
	Pods  int               // that fit at once on the nodes with the features; default 1 with Pod
}

// PlacementRule orders the regions that fit.
type PlacementRule string

// The rules. Regions that are equal are ordered by their ids.
const (
	PreferFewest PlacementRule = "fewest-instances" // the default
	PreferRoom   PlacementRule = "most-room"        // of the scarcest resource in Room
)

// PlacementReason says why a region was chosen, or was not.
type PlacementReason string

// The reasons.
const (
	PlacementChosen      PlacementReason = "chosen"
	PlacementRanked      PlacementReason = "ranked-lower" // it fits, or was not examined because an earlier one fits
	PlacementSelector    PlacementReason = "selector"
	PlacementPermission  PlacementReason = "permission"
	PlacementNetwork     PlacementReason = "network" // it has no network that the instance attaches to
	PlacementVolume      PlacementReason = "volume"  // it has no volume that the instance uses, or the volume is in use
	PlacementPlugin      PlacementReason = "cni-plugin"
	PlacementUnreachable PlacementReason = "unreachable"
	PlacementAPI         PlacementReason = "api"
	PlacementFlavor      PlacementReason = "network-flavor"
	PlacementFeature     PlacementReason = "feature"
	PlacementRoom        PlacementReason = "room"
	PlacementUnknown     PlacementReason = "unknown" // its account may not read what is needed
)

// Candidate is a region that was considered for a new instance.
type Candidate struct {
	Region    string          `json:"region"`
	Reason    PlacementReason `json:"reason"`
	Detail    string          `json:"detail,omitempty"`
	Instances int             `json:"instances"`
}

// Placed is how the region of a new instance was chosen.
type Placed struct {
	Region     string        `json:"region"`
	Prefer     PlacementRule `json:"prefer"`
	Candidates []Candidate   `json:"candidates"`        // the chosen one first
	Omitted    int           `json:"omitted,omitempty"` // candidates beyond MaxCandidates
}

// MaxCandidates is how many candidates a placement lists.
const MaxCandidates = 100

// maxNeeds limits each list of a placement.
const maxNeeds = 64

// violations returns a violation for every field that is wrong. Quantities and the
// selector are checked where they are parsed.
func (p *Placement) violations() Violations {
	var v Violations
	wrong := func(field, format string, args ...any) {
		v = append(v, Violation{Field: "placement." + field, Message: fmt.Sprintf(format, args...)})
	}
	for field, n := range map[string]int{
		"regions": len(p.Regions), "features": len(p.Features), "apis": len(p.APIs), "networks": len(p.Networks), "cni_plugins": len(p.Plugins),
		"room.total": len(p.Room.Total), "room.pod": len(p.Room.Pod),
	} {
		if n > maxNeeds {
			wrong(field, "has %d entries; at most %d are allowed", n, maxNeeds)
		}
	}
	for i, id := range p.Regions {
		v = append(v, CheckID(fmt.Sprintf("placement.regions[%d]", i), id)...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Features)) {
		if name == "" || p.Features[name] == "" {
			wrong("features."+name, "must be a value, or %q for any", AnyValue)
		}
	}
	const mostPods = 10000
	switch {
	case p.Room.Pods < 0 || p.Room.Pods > mostPods:
		wrong("room.pods", "must be between 0 and %d", mostPods)
	case p.Room.Pods > 0 && len(p.Room.Pod) == 0:
		wrong("room.pods", "requires pod, which says how large each pod is")
	}
	if p.Prefer != "" && p.Prefer != PreferFewest && p.Prefer != PreferRoom {
		wrong("prefer", "must be %s or %s", PreferFewest, PreferRoom)
	}
	if p.Prefer == PreferRoom && len(p.Room.Total)+len(p.Room.Pod) == 0 {
		wrong("prefer", "%s requires room, which says which resources count", PreferRoom)
	}
	return v
}
