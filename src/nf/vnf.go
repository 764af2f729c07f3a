package nf

import (
	"encoding/json"
	"errors"
	"maps"
	"time"
)

// VNFSubject is the kind of VNFs. The operations on one are the attempts at its
// occurrences.
const VNFSubject SubjectKind = "vnf"

// The verbs of operations on VNFs, in addition to Instantiate, Terminate, Scale, Heal, and
// Rollback, which undoes a failed occurrence.
const (
	VNFModify        Verb = "modify"
	VNFConnect       Verb = "connect"
	VNFChangePackage Verb = "change_package"
)

// VNFTask is what an operation on a VNF has to do.
type VNFTask struct {
	Occurrence string `json:"occurrence"` // that the operation is an attempt at
}

// VNF is a VNF instance as ETSI GS NFV-SOL 003 knows it: it exists before it is
// instantiated, and after it is terminated. While it is instantiated, the VNF instance
// of the engine has the same id.
type VNF struct {
	ID          string `json:"id"` // a UUID
	Project     string `json:"project,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Package     string `json:"package"` // id in the catalog
	VNFD        VNFD   `json:"vnfd"`    // of the package; only the first five fields are set

	Metadata     map[string]any           `json:"metadata,omitempty"`
	Extensions   map[string]any           `json:"extensions,omitempty"`
	Configurable map[string]any           `json:"configurable,omitempty"` // vnfConfigurableProperties
	VIMs         map[string]VIMConnection `json:"vims,omitempty"`         // vimConnectionInfo, by key

	Instantiated *InstantiatedVNF `json:"instantiated,omitempty"` // nil: NOT_INSTANTIATED
	Occurrence   string           `json:"occurrence,omitempty"`   // the one that is not in a final state; no other one may begin

	Operation     string    `json:"operation,omitempty"` // see operation.Lock
	Claim         string    `json:"claim,omitempty"`
	LastOperation string    `json:"last_operation,omitempty"`
	Created       time.Time `json:"created"`
	Updated       time.Time `json:"updated"`

	Request RequestKey `json:"request,omitzero"` // the client's key for the creation
}

// Scope returns the scope that permissions on the VNF are required in. It has a region
// while the VNF is instantiated.
func (v VNF) Scope() Scope {
	s := Scope{Project: ProjectOf(v.Project)}
	if v.Instantiated != nil {
		s.Region = v.Instantiated.Region
	}
	return s
}

// The instantiation states of VNFs.
const (
	VNFNotInstantiated = "NOT_INSTANTIATED"
	VNFInstantiated    = "INSTANTIATED"
)

// State returns the instantiation state of the VNF.
func (v VNF) State() string {
	if v.Instantiated == nil {
		return VNFNotInstantiated
	}
	return VNFInstantiated
}

// Running returns the package that the VNF runs. A modification of an instantiated VNF
// changes only the one that the next instantiation uses.
func (v VNF) Running() string {
	if v.Instantiated == nil || v.Instantiated.Package == "" {
		return v.Package
	}
	return v.Instantiated.Package
}

// Supports returns Unsupported, with the reason, for an operation that the VNF cannot have
// because its components are virtual machines or hosts.
func (v VNF) Supports(verb Verb) error {
	in, why := v.Instantiated, ""
	connects := verb == VNFConnect || verb == VNFChangePackage
	switch {
	case in == nil:
	case in.Engine != "" && (connects || verb == Scale):
		why = "it is a cluster on hosts; change its site, which has the same id, in the native API"
	case in.Stack != "" && connects:
		why = "its components are virtual machines; it can be scaled, healed, modified and terminated"
	}
	if why == "" {
		return nil
	}
	return E(Unsupported, string(verb), "VNF "+v.ID, errors.New(why))
}

// VIMConnection is how a VNF reaches a VIM. A VIM is a cloud region: what a request says
// of its access is in the region alone, never here.
type VIMConnection struct {
	VIM    string         `json:"vim"`              // Region.VIMID
	Region string         `json:"region"`           // the region's id
	Type   string         `json:"type"`             // such as ETSINFV.KUBERNETES.V_1
	Server string         `json:"server,omitempty"` // URL of the API server of a region that the VNF has made
	Made   bool           `json:"made,omitempty"`   // the VNF has made the region, and removes it
	Extra  map[string]any `json:"extra,omitempty"`
}

// InstantiatedVNF is what only an instantiated VNF has.
type InstantiatedVNF struct {
	Flavor    string            `json:"flavor"`
	Level     string            `json:"level,omitempty"` // the instantiation level that was asked for
	Region    string            `json:"region"`
	Namespace string            `json:"namespace"`
	Scale     map[string]int    `json:"scale,omitempty"`     // level of each scaling aspect
	MaxScale  map[string]int    `json:"max_scale,omitempty"` // of each scaling aspect
	Zones     map[string]string `json:"zones,omitempty"`     // availability zones that the grant demands, by VDU
	Stack     string            `json:"stack,omitempty"`     // name of the stack on an OpenStack cloud; empty: the region is a Kubernetes cluster
	VNFCs     []VNFC            `json:"vnfcs,omitempty"`     // as the last occurrence left them
	Files     []string          `json:"files,omitempty"`     // lcm-kubernetes-def-files
	Params    map[string]any    `json:"params,omitempty"`    // additionalParams
	Engine    string            `json:"engine,omitempty"`    // that carries out its occurrences; empty: the engine of VNF instances
	Package   string            `json:"package,omitempty"`   // that it runs; empty: that of the VNF

	Points map[string]StackPoint `json:"points,omitempty"` // external connection points of a stack
}

// VNFC is a component of a VNF: a pod, or a server of OpenStack.
type VNFC struct {
	VDU          string         `json:"vdu"` // id of the VDU in the VNFD
	Resource     string         `json:"resource"`
	UID          string         `json:"uid,omitempty"`        // of the pod; a later pod may have its name
	Generation   int64          `json:"generation,omitempty"` // of its spec
	Workload     string         `json:"workload"`             // kind of the object that the pod belongs to: Deployment; Pod if it has no owner
	Metadata     map[string]any `json:"metadata,omitempty"`
	Configurable map[string]any `json:"configurable,omitempty"`
	Points       []VNFCPoint    `json:"points,omitempty"` // of a server
}

// ID returns the id of the component: "VDU1-web-5d5f-abcde".
func (c VNFC) ID() string { return c.VDU + "-" + c.Resource }

// Occurrence is an operation on a VNF as SOL003 knows it (VnfLcmOpOcc). A failed one is
// retried or rolled back under the same id: each attempt is an operation of its own.
type Occurrence struct {
	ID        string              `json:"id"` // a UUID of version 7: occurrences sort by their start
	VNF       string              `json:"vnf"`
	Project   string              `json:"project,omitempty"`
	Region    string              `json:"region,omitempty"` // that the VNF is in; empty: it is not instantiated
	Operation OccurrenceOperation `json:"operation"`
	State     OccurrenceState     `json:"state"`
	Entered   time.Time           `json:"entered"` // into the state
	Started   time.Time           `json:"started"`
	Automatic bool                `json:"automatic,omitempty"` // not requested by a client
	Params    json.RawMessage     `json:"params,omitempty"`    // the request's body, without credentials
	Grant     string              `json:"grant,omitempty"`     // id
	Cancel    bool                `json:"cancel,omitempty"`    // it is being cancelled
	Failure   *Failure            `json:"failure,omitempty"`   // of the last attempt
	VNFCs     []AffectedVNFC      `json:"vnfcs,omitempty"`     // what it has changed, over all attempts
	Changed   json.RawMessage     `json:"changed,omitempty"`   // changedInfo: the changed attributes of the VNF with their values
	Attempts  []string            `json:"attempts,omitempty"`  // the operations, in order; the last one is the current one
	CanUndo   bool                `json:"can_undo,omitempty"`  // the operation has an inverse: a failed one can be rolled back
}

// Scope returns the scope that permissions on the occurrence are required in.
func (o Occurrence) Scope() Scope { return Scope{Project: ProjectOf(o.Project), Region: o.Region} }

// AffectedVNFC is a component that an occurrence has changed.
type AffectedVNFC struct {
	VNFC

	Change VNFCChange `json:"change"`
}

// VNFCChange is what an occurrence did to a component.
type VNFCChange string

// The changes of components.
const (
	VNFCAdded    VNFCChange = "ADDED"
	VNFCRemoved  VNFCChange = "REMOVED"
	VNFCModified VNFCChange = "MODIFIED"
)

// OccurrenceOperation is what an occurrence does (LcmOperationType of SOL003).
type OccurrenceOperation string

// The operations of occurrences.
const (
	OccurrenceInstantiate    OccurrenceOperation = "INSTANTIATE"
	OccurrenceTerminate      OccurrenceOperation = "TERMINATE"
	OccurrenceScale          OccurrenceOperation = "SCALE"
	OccurrenceHeal           OccurrenceOperation = "HEAL"
	OccurrenceModify         OccurrenceOperation = "MODIFY_INFO"
	OccurrenceConnectivity   OccurrenceOperation = "CHANGE_EXT_CONN"
	OccurrenceCurrentPackage OccurrenceOperation = "CHANGE_VNFPKG"
)

// OccurrenceState is the state of an occurrence (LcmOperationStateType of SOL003).
type OccurrenceState string

// The states of occurrences. Completed, RolledBack and Failed are final.
const (
	OccurrenceStarting    OccurrenceState = "STARTING"
	OccurrenceProcessing  OccurrenceState = "PROCESSING"
	OccurrenceCompleted   OccurrenceState = "COMPLETED"
	OccurrenceFailedTemp  OccurrenceState = "FAILED_TEMP"
	OccurrenceFailed      OccurrenceState = "FAILED"
	OccurrenceRollingBack OccurrenceState = "ROLLING_BACK"
	OccurrenceRolledBack  OccurrenceState = "ROLLED_BACK"
)

// Final reports whether the occurrence stays in the state.
func (s OccurrenceState) Final() bool {
	return s == OccurrenceCompleted || s == OccurrenceFailed || s == OccurrenceRolledBack
}

// Running reports whether an attempt at the occurrence is under way.
func (s OccurrenceState) Running() bool {
	return s == OccurrenceStarting || s == OccurrenceProcessing || s == OccurrenceRollingBack
}

// Notice says that an occurrence has entered a state, that a VNF was created or
// deleted, that an alarm was raised, changed or cleared, that a report of performance is
// available, or that a threshold was crossed. It is stored with the change, until every
// subscriber has it in its outbox.
// The ids of notices sort by time.
type Notice struct {
	ID         string      `json:"id"`
	Kind       NoticeKind  `json:"kind"`
	Time       time.Time   `json:"time"`
	VNF        VNF         `json:"vnf"`                  // as it was then; of Instantiated only VNFCs
	Occurrence *Occurrence `json:"occurrence,omitempty"` // as it was then; nil if the kind is another one
	Alarm      *Alarm      `json:"alarm,omitempty"`      // likewise
	PM         *PMNotice   `json:"pm,omitempty"`         // of a PM job or a threshold; nil if the kind is another one
}

// NoticeKind is the kind of a notice, and the type of its notifications.
type NoticeKind string

// The kinds of notices.
const (
	NoticeOccurrence NoticeKind = "VnfLcmOperationOccurrenceNotification"
	NoticeCreation   NoticeKind = "VnfIdentifierCreationNotification"
	NoticeDeletion   NoticeKind = "VnfIdentifierDeletionNotification"
	NoticeAlarm      NoticeKind = "AlarmNotification"
	NoticeCleared    NoticeKind = "AlarmClearedNotification"
	NoticeReport     NoticeKind = "PerformanceInformationAvailableNotification"
	NoticeCrossed    NoticeKind = "ThresholdCrossedNotification"
)

// VNFRequest is what the requests for an occurrence have in common.
type VNFRequest struct {
	Key    RequestKey      // makes the request idempotent
	Trace  string          // W3C traceparent of the request; empty: none
	Params json.RawMessage // the request's body, as it is stored and shown: without credentials
	Extra  map[string]any  // additionalParams

	// Check only checks the request, except for its VIMs. Nothing is accepted: the result is
	// an empty Occurrence, or the one that was accepted before under the key.
	Check bool
}

// InstantiateVNFRequest is SOL003's InstantiateVnfRequest.
type InstantiateVNFRequest struct {
	VNFRequest

	Flavor       string                          // flavourId
	Level        string                          // instantiationLevelId; empty: the default one
	VIMs         map[string]VIMConnectionRequest // by key; none: the default VIM
	Networks     []Attachment                    // what extVirtualLinks ask for
	Extensions   map[string]any
	Configurable map[string]any
}

// VIMConnectionRequest is a VimConnectionInfo of a request. It names a VIM, or is one.
type VIMConnectionRequest struct {
	VIM       string // id
	Type      string
	Interface map[string]any // interfaceInfo
	Access    map[string]any // accessInfo: may have secrets, and is not to be stored or logged
	Extra     map[string]any
}

// OpenStack returns the OpenStack cloud at a URL that the connection describes. What it does
// not say is empty. The names of the attributes are those that ETSI has registered for this
// type of VIM.
func (w VIMConnectionRequest) OpenStack(url string) OpenStack {
	text := func(name string) string {
		value, _ := w.Access[name].(string)
		return value
	}
	o := OpenStack{
		AuthURL: url, Username: text("username"), Password: Secret(text("password")), UserDomain: text("userDomain"),
		Project: text("project"), ProjectDomain: text("projectDomain"), Region: text("region"),
	}
	o.Insecure, _ = w.Interface["skipCertificateVerification"].(bool)
	return o
}

// Connected completes the connections of a request for the VNF: one that names no VIM is
// with the VIM of the VNF's connection that has its key.
func (v VNF) Connected(wanted map[string]VIMConnectionRequest) map[string]VIMConnectionRequest {
	out := maps.Clone(wanted)
	for key, w := range out {
		if present, has := v.VIMs[key]; has && w.VIM == "" && w.Interface["endpoint"] == nil {
			w.VIM = present.VIM
			out[key] = w
		}
	}
	return out
}

// TerminateVNFRequest is SOL003's TerminateVnfRequest.
type TerminateVNFRequest struct {
	VNFRequest

	Forceful bool
	Grace    time.Duration // gracefulTerminationTimeout: pods that are still there are killed after it; 0: they have their own grace periods
}

// ScaleVNFRequest is SOL003's ScaleVnfRequest.
type ScaleVNFRequest struct {
	VNFRequest

	In     bool // SCALE_IN; otherwise SCALE_OUT
	Aspect string
	Steps  int // at least 1
}

// HealVNFRequest is SOL003's HealVnfRequest.
type HealVNFRequest struct {
	VNFRequest

	Cause string
	VNFCs []string // ids; none: the whole VNF
}

// ModifyVNFRequest is SOL003's VnfInfoModificationRequest: a merge patch of RFC 7396.
// Nil fields stay as they are. In maps, a nil value deletes the key.
type ModifyVNFRequest struct {
	VNFRequest

	Name         *string
	Description  *string
	VNFD         *string // vnfdId: of an onboarded and enabled package
	Metadata     map[string]any
	Extensions   map[string]any
	Configurable map[string]any
	VIMs         map[string]VIMConnectionRequest
	VNFCs        map[string]map[string]any // vnfcConfigurableProperties by the id of the component
}

// ConnectVNFRequest is SOL003's ChangeExtVnfConnectivityRequest.
type ConnectVNFRequest struct {
	VNFRequest

	Networks []Attachment // of the external connection points that the request names
}

// ChangeVNFPackageRequest is SOL003's ChangeCurrentVnfPkgRequest.
type ChangeVNFPackageRequest struct {
	VNFRequest

	VNFD         string // vnfdId of the new package
	Extensions   map[string]any
	Configurable map[string]any
	VIMs         map[string]VIMConnectionRequest
}
