package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNFAlarm is an alarm as SOL003 describes it (Alarm).
type VNFAlarm struct {
	ID           string             `json:"id"`
	VNF          string             `json:"managedObjectId"`
	VNFCs        []string           `json:"vnfcInstanceIds,omitempty"`
	Resource     *faultyResource    `json:"rootCauseFaultyResource,omitempty"`
	Raised       time.Time          `json:"alarmRaisedTime"`
	Changed      time.Time          `json:"alarmChangedTime,omitzero"`
	Cleared      time.Time          `json:"alarmClearedTime,omitzero"`
	Acknowledged time.Time          `json:"alarmAcknowledgedTime,omitzero"`
	State        string             `json:"ackState"`
	Severity     nf.AlarmSeverity   `json:"perceivedSeverity"`
	Observed     time.Time          `json:"eventTime"`
	Event        string             `json:"eventType"`
	Fault        string             `json:"faultType,omitempty"`
	Cause        string             `json:"probableCause"`
	Root         bool               `json:"isRootCause"`
	Details      []string           `json:"faultDetails,omitempty"`
	Links        map[string]VNFLink `json:"_links"`
}

// faultyResource is a FaultyResourceInfo.
type faultyResource struct {
	Resource VNFResource `json:"faultyResource"`
	Type     string      `json:"faultyResourceType"`
}

// VNFAlarmOf returns the document of an alarm, whose links begin with the endpoint.
func VNFAlarmOf(endpoint string, a nf.Alarm) VNFAlarm {
	out := VNFAlarm{
		ID: a.ID, VNF: a.VNF, VNFCs: a.VNFCs, Raised: a.Raised, Changed: a.Changed, Cleared: a.Cleared, Acknowledged: a.Acknowledged,
		State: "UNACKNOWLEDGED", Severity: a.Severity, Observed: a.Observed, Event: a.Event, Fault: a.Fault, Cause: a.Cause, Root: true, Details: a.Details,
		Links: map[string]VNFLink{
			"self": VNFLinkTo(endpoint, nf.VNFFaults, "alarms", a.ID), "objectInstance": VNFLinkTo(endpoint, nf.VNFLifecycle, "vnf_instances", a.VNF),
		},
	}
	if !a.Acknowledged.IsZero() {
		out.State = "ACKNOWLEDGED"
	}
	if a.ResourceID != "" {
		out.Resource = &faultyResource{VNFResource{a.VIM, a.ResourceID, a.ResourceKind}, a.ResourceType}
	}
	return out
}

// VNFResource is a resource of a VIM as SOL003 describes it (ResourceHandle).
type VNFResource struct {
	VIM  string `json:"vimConnectionId,omitempty"`
	ID   string `json:"resourceId"`
	Type string `json:"vimLevelResourceType,omitempty"`
}

// VNFLink is a link of SOL003.
type VNFLink struct {
	Href string `json:"href"`
}

// VNFLinkTo returns the link to a resource of an interface. It begins with the endpoint.
func VNFLinkTo(endpoint string, of nf.VNFInterface, resource, id string) VNFLink {
	return VNFLink{endpoint + "/" + string(of) + "/" + resource + "/" + id}
}
