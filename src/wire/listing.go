package wire

import (
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Listing is what is known of an instance, a network or a cloud region in A&AI.
type Listing struct {
	Instance string          `json:"vnf_id,omitempty"`
	Network  string          `json:"network_id,omitempty"`
	Region   string          `json:"cloud_region_id,omitempty"`
	State    nf.ListingState `json:"state"`
	Reason   string          `json:"reason,omitempty"`
	Since    time.Time       `json:"since,omitzero"` // when it was last clean
	Retry    time.Time       `json:"retry_at,omitzero"`
	Missing  []string        `json:"waits_for,omitempty"` // paths of objects of others
	Rejected []RejectedEntry `json:"rejected,omitempty"`
	Objects  []string        `json:"objects"` // paths
}

// RejectedEntry is an object that A&AI rejects.
type RejectedEntry struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ListingOf converts a listing.
func ListingOf(l nf.Listing) Listing {
	out := Listing{State: l.State, Reason: l.Reason, Since: l.Since, Retry: l.Retry, Missing: l.Missing, Objects: notNil(l.Objects)}
	switch l.Subject.Kind {
	case nf.NetworkSubject:
		out.Network = l.Subject.ID
	case nf.RegionSubject:
		out.Region = l.Subject.ID
	default:
		out.Instance = l.Subject.ID
	}
	for _, path := range slices.Sorted(maps.Keys(l.Rejected)) {
		out.Rejected = append(out.Rejected, RejectedEntry{path, l.Rejected[path]})
	}
	return out
}
