package nf

import "time"

// GrantRequest asks an NFVO whether an occurrence may use resources (SOL003 clause 9.5.2.2).
type GrantRequest struct {
	VNF         string
	Occurrence  string
	VNFD        string
	Destination string // of OccurrenceCurrentPackage: the VNFD of the new package
	Flavor      string
	Level       string
	Operation   OccurrenceOperation
	Automatic   bool
	Resources   []GrantResource
	Params      map[string]any // additionalParams
	VIMs        []string       // the keys of the VNF's vimConnectionInfo, which a grant may name
}

// GrantResource is a VNFC that an occurrence adds, removes or changes.
type GrantResource struct {
	ID       string // unique in the request
	VDU      string
	Change   VNFCChange
	Resource string // the pod; empty of one that is added
}

// PendingGrant is a grant that the NFVO decides about later.
type PendingGrant struct {
	At   string        // URL of the decision; empty: the NFVO has decided
	Wait time.Duration // before the first request for it; 0: the caller decides
}

// Grant is the answer of an NFVO that permits an occurrence.
type Grant struct {
	ID    string
	VIMs  map[string]VIMConnectionRequest // by key
	VIM   string                          // key of the one for all resources that are added; empty: the NFVO names none
	Zones map[string]string               // availability zones, by VDU
}
