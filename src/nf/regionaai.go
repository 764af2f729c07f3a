package nf

import "time"

// AAISource is the cloud region of A&AI that the access of a region is read from. A region
// without it is not compared with A&AI.
type AAISource struct {
	Owner     string    `json:"owner"`               // in A&AI
	Version   string    `json:"version"`             // its resource-version when it was read
	Systems   string    `json:"systems,omitempty"`   // digest of the resource-versions of its esr-system-infos
	Place     string    `json:"place,omitempty"`     // that the access was read from
	Reference bool      `json:"reference,omitempty"` // the place names a kubeconfig that A&AI does not have
	Reason    string    `json:"reason,omitempty"`    // why A&AI has no access that can be used; empty: it has
	Vanished  time.Time `json:"vanished,omitzero"`   // when A&AI was found not to have the region any longer
}

// NoAccess returns why the service has no access to the region; empty: it has.
func (r Region) NoAccess() string {
	if r.Type == OpenStackRegion {
		return "it is an OpenStack VIM, which only creates machines of sites; use a VIM of the type kubernetes"
	}
	if r.AAI == nil || !r.Access.IsZero() {
		return ""
	}
	return r.AAI.Reason
}
