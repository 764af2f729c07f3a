package nf

import (
	"cmp"
	"slices"
	"time"
)

// VNFInterface is an interface of SOL003 that clients subscribe to: the path of its API.
type VNFInterface string

// The interfaces with subscriptions.
const (
	VNFLifecycle   VNFInterface = "vnflcm/v2"
	VNFLifecycleV1 VNFInterface = "vnflcm/v1"
	VNFFaults      VNFInterface = "vnffm/v1"

	// VNFPerformance has no subscriptions of its own: each PM job and each threshold is one,
	// with its id.
	VNFPerformance VNFInterface = "vnfpm/v2"
)

// Version returns the version of the interface, which requests and notifications have in
// the header Version.
func (i VNFInterface) Version() string {
	switch i {
	case VNFLifecycle:
		return "2.0.0"
	case VNFPerformance:
		return "2.1.0"
	case VNFLifecycleV1, VNFFaults:
	}
	return "1.3.0"
}

// VNFSubscription is a subscription of SOL003: a callback that is notified of the VNFs of
// a project.
type VNFSubscription struct {
	ID        string       `json:"id"` // a UUID
	Project   string       `json:"project,omitempty"`
	Interface VNFInterface `json:"interface"`
	Callback  string       `json:"callback"`
	Short     bool         `json:"short,omitempty"` // verbosity SHORT
	Filter    VNFFilter    `json:"filter,omitzero"`
	Auth      CallbackAuth `json:"auth,omitzero"`
	Created   time.Time    `json:"created"`
}

// VNFFilter selects notifications. A list that is empty selects all; the others must all
// match.
type VNFFilter struct {
	Types    []NoticeKind `json:"types,omitempty"`
	VNFDs    []string     `json:"vnfds,omitempty"` // ids
	Products []VNFProduct `json:"products,omitempty"`
	VNFs     []string     `json:"vnfs,omitempty"`  // ids
	Names    []string     `json:"names,omitempty"` // of VNFs

	Operations []OccurrenceOperation `json:"operations,omitempty"` // of notices of occurrences
	States     []OccurrenceState     `json:"states,omitempty"`     // of those

	Resources  []string        `json:"resources,omitempty"`  // types of the faulty resource, of notices of alarms
	Events     []string        `json:"events,omitempty"`     // of those
	Causes     []string        `json:"causes,omitempty"`     // of those
	Severities []AlarmSeverity `json:"severities,omitempty"` // of alarms that are not cleared; it selects each notice that one is cleared
}

// VNFProduct selects VNFs by their VNFD. A field that is empty selects all.
type VNFProduct struct {
	Provider        string `json:"provider"`
	Product         string `json:"product,omitempty"`
	SoftwareVersion string `json:"software_version,omitempty"`
	Version         string `json:"version,omitempty"` // of the VNFD
}

// Of reports whether a VNFD is of the product.
func (p VNFProduct) Of(d VNFD) bool {
	return p.Provider == d.Provider && cmp.Or(p.Product, d.Product) == d.Product &&
		cmp.Or(p.SoftwareVersion, d.SoftwareVersion) == d.SoftwareVersion && cmp.Or(p.Version, d.Version) == d.Version
}

// Selects reports whether the filter selects a notice.
func (f VNFFilter) Selects(n Notice) bool {
	products := len(f.Products) == 0 || slices.ContainsFunc(f.Products, func(p VNFProduct) bool { return p.Of(n.VNF.VNFD) })
	if !products || !amongst(f.Types, n.Kind) || !amongst(f.VNFDs, n.VNF.VNFD.ID) || !amongst(f.VNFs, n.VNF.ID) || !amongst(f.Names, n.VNF.Name) {
		return false
	}
	if o := n.Occurrence; o != nil {
		return amongst(f.Operations, o.Operation) && amongst(f.States, o.State)
	}
	if a := n.Alarm; a != nil {
		// A cleared alarm no longer has the severity with which the subscriber knows it.
		severe := n.Kind == NoticeCleared || amongst(f.Severities, a.Severity)
		return severe && amongst(f.Resources, a.ResourceType) && amongst(f.Events, a.Event) && amongst(f.Causes, a.Cause)
	}
	return true
}

// amongst reports whether a list has a value, or is empty.
func amongst[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// CallbackAuth authenticates the service to a callback. It is never shown.
type CallbackAuth struct {
	Kind     CallbackAuthKind `json:"kind,omitempty"` // empty: none
	User     string           `json:"user,omitempty"` // or the id of the OAuth 2.0 client
	Password Secret           `json:"password,omitempty"`
	TokenURL string           `json:"token_url,omitempty"` // token endpoint of OAuth 2.0
}

// CallbackAuthKind is a kind of authentication of SOL013.
type CallbackAuthKind string

// The kinds of authentication. The certificate is that of the service.
const (
	CallbackBasic             CallbackAuthKind = "BASIC"
	CallbackClientCredentials CallbackAuthKind = "OAUTH2_CLIENT_CREDENTIALS"
	CallbackClientCertificate CallbackAuthKind = "OAUTH2_CLIENT_CERT"
	CallbackTLS               CallbackAuthKind = "TLS_CERT"
)

// Certified reports whether the service presents its certificate.
func (k CallbackAuthKind) Certified() bool { return k == CallbackTLS || k == CallbackClientCertificate }

// TokenBased reports whether the service fetches a token of OAuth 2.0.
func (k CallbackAuthKind) TokenBased() bool {
	return k == CallbackClientCredentials || k == CallbackClientCertificate
}

// Alarm is an alarm of SOL003: a fault of a VNF.
type Alarm struct {
	ID           string        `json:"id"` // a UUID
	VNF          string        `json:"vnf"`
	Project      string        `json:"project,omitempty"`
	Region       string        `json:"region"`
	VNFCs        []string      `json:"vnfcs,omitempty"`         // ids of the components
	VIM          string        `json:"vim,omitempty"`           // key of the connection to the VIM
	ResourceID   string        `json:"resource_id,omitempty"`   // of the faulty resource, such as the name of a pod
	ResourceKind string        `json:"resource_kind,omitempty"` // such as Pod
	ResourceType string        `json:"resource_type,omitempty"` // COMPUTE, STORAGE or NETWORK
	Severity     AlarmSeverity `json:"severity"`
	Event        string        `json:"event"` // eventType
	Fault        string        `json:"fault"` // faultType
	Cause        string        `json:"cause"` // probableCause
	Details      []string      `json:"details,omitempty"`
	Observed     time.Time     `json:"observed"` // eventTime
	Raised       time.Time     `json:"raised"`
	Changed      time.Time     `json:"changed,omitzero"`
	Cleared      time.Time     `json:"cleared,omitzero"`
	Acknowledged time.Time     `json:"acknowledged,omitzero"`
}

// AlarmCount is the number of alarms that are not cleared and have a severity.
type AlarmCount struct {
	Severity     AlarmSeverity
	Acknowledged bool
	Number       int
}

// AlarmSeverity is the perceived severity of an alarm.
type AlarmSeverity string

// The severities of alarms. An alarm that has been cleared is Cleared.
const (
	AlarmCritical AlarmSeverity = "CRITICAL"
	AlarmMajor    AlarmSeverity = "MAJOR"
	AlarmMinor    AlarmSeverity = "MINOR"
	AlarmWarning  AlarmSeverity = "WARNING"
	AlarmCleared  AlarmSeverity = "CLEARED"
)
