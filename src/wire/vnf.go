package wire

import (
	"encoding/json"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNF is a VNF as SOL003 describes it (VnfInstance).
type VNF struct {
	ID              string             `json:"id"`
	Name            string             `json:"vnfInstanceName,omitempty"`
	Description     string             `json:"vnfInstanceDescription,omitempty"`
	VNFD            string             `json:"vnfdId"`
	Provider        string             `json:"vnfProvider"`
	Product         string             `json:"vnfProductName"`
	SoftwareVersion string             `json:"vnfSoftwareVersion"`
	Version         string             `json:"vnfdVersion"`
	Configurable    map[string]any     `json:"vnfConfigurableProperties,omitempty"`
	VIMs            any                `json:"vimConnectionInfo,omitempty"` // by key; a list in SOL003 2.6.1
	State           string             `json:"instantiationState"`
	Instantiated    *InstantiatedVNF   `json:"instantiatedVnfInfo,omitempty"`
	Metadata        map[string]any     `json:"metadata,omitempty"`
	Extensions      map[string]any     `json:"extensions,omitempty"`
	Links           map[string]VNFLink `json:"_links"`
}

// InstantiatedVNF is what only an instantiated VNF has (InstantiatedVnfInfo).
type InstantiatedVNF struct {
	Flavor    string         `json:"flavourId"`
	State     string         `json:"vnfState"`
	Scale     []VNFScale     `json:"scaleStatus,omitempty"`
	MaxScale  []VNFScale     `json:"maxScaleLevels,omitempty"`
	Resources []VNFCResource `json:"vnfcResourceInfo,omitempty"`
	VNFCs     []VNFC         `json:"vnfcInfo,omitempty"`
	Metadata  map[string]any `json:"metadata"`
}

// VNFScale is the level of a scaling aspect (ScaleInfo).
type VNFScale struct {
	Aspect string `json:"aspectId"`
	Level  int    `json:"scaleLevel"`
}

// VNFCResource is the pod or the server of a component (VnfcResourceInfo).
type VNFCResource struct {
	ID       string         `json:"id"`
	VDU      string         `json:"vduId"`
	Compute  VNFResource    `json:"computeResource"`
	Points   []VNFCPoint    `json:"vnfcCpInfo,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// VNFC is a component of a VNF (VnfcInfo).
type VNFC struct {
	ID           string         `json:"id"`
	VDU          string         `json:"vduId"`
	Resource     string         `json:"vnfcResourceInfoId"`
	State        string         `json:"vnfcState"`
	Configurable map[string]any `json:"vnfcConfigurableProperties,omitempty"`
}

// VNFOccurrence is an operation on a VNF as SOL003 describes it (VnfLcmOpOcc).
type VNFOccurrence struct {
	ID        string                 `json:"id"`
	State     nf.OccurrenceState     `json:"operationState"`
	Entered   string                 `json:"stateEnteredTime"`
	Started   string                 `json:"startTime"`
	VNF       string                 `json:"vnfInstanceId"`
	Grant     string                 `json:"grantId,omitempty"`
	Operation nf.OccurrenceOperation `json:"operation"`
	Automatic bool                   `json:"isAutomaticInvocation"`
	Params    json.RawMessage        `json:"operationParams,omitempty"`
	Cancel    bool                   `json:"isCancelPending"`
	Error     *VNFProblem            `json:"error,omitempty"`
	Resources *VNFChanges            `json:"resourceChanges,omitempty"`
	VNFModifications
	Links map[string]VNFLink `json:"_links"`
}

// VNFModifications are the attributes of a VNF that an occurrence has changed, with their
// values: at most one of the two, as SOL003, 5.5.2.13, requires.
type VNFModifications struct {
	Info      json.RawMessage `json:"changedInfo,omitempty"`
	ByPackage json.RawMessage `json:"modificationsTriggeredByVnfPkgChange,omitempty"`
}

// VNFModificationsOf returns the attributes that an occurrence has changed, as responses and
// notifications have them.
func VNFModificationsOf(o nf.Occurrence) VNFModifications {
	if o.Operation == nf.OccurrenceCurrentPackage {
		return VNFModifications{ByPackage: o.Changed}
	}
	return VNFModifications{Info: o.Changed}
}

// VNFProblem is the reason why an occurrence has failed (ProblemDetails).
type VNFProblem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// VNFChanges are the components that an occurrence has changed (ResourceChanges).
type VNFChanges struct {
	VNFCs []VNFCChange `json:"affectedVnfcs"`
}

// VNFCChange is a component that an occurrence has changed (AffectedVnfc).
type VNFCChange struct {
	ID       string         `json:"id"` // of its vnfcResourceInfo
	VDU      string         `json:"vduId"`
	Change   nf.VNFCChange  `json:"changeType"`
	Compute  VNFResource    `json:"computeResource"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// VNFCChangesOf returns the changes of an occurrence, as responses and notifications have
// them, or nil.
func VNFCChangesOf(o nf.Occurrence) []VNFCChange {
	var out []VNFCChange
	for _, c := range o.VNFCs {
		out = append(out, VNFCChange{ID: c.Resource, VDU: c.VDU, Change: c.Change, Compute: VNFResource{ID: c.Resource, Type: c.Workload}, Metadata: c.Metadata})
	}
	return out
}
