package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// DeadLetter is a dead letter, or one that is being resent. It has no field for the
// content.
type DeadLetter struct {
	ID           string    `json:"notification_id"`
	Instance     string    `json:"vnf_id"`                    // id in the subscription
	Subscription string    `json:"subscription,omitempty"`    // of a notification
	Region       string    `json:"cloud_region_id,omitempty"` // whose kubeconfig is handed over
	Created      time.Time `json:"created_at"`
	Attempts     int       `json:"attempts"`
	Due          time.Time `json:"next_attempt_at,omitzero"`
	Died         time.Time `json:"abandoned_at,omitzero"`
	LastStatus   int       `json:"last_status,omitempty"`
	LastError    string    `json:"last_error,omitempty"`
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID           string        `json:"id"`
	Phase        nf.AuditPhase `json:"phase"`
	Time         time.Time     `json:"time"`
	Replica      string        `json:"replica,omitempty"`
	Request      string        `json:"request_id,omitempty"`
	IdentityKind string        `json:"identity_kind,omitempty"`
	Identity     string        `json:"identity,omitempty"`
	Remote       string        `json:"remote_address,omitempty"`
	Method       string        `json:"method,omitempty"`
	Route        string        `json:"route,omitempty"`
	Permission   nf.Permission `json:"permission,omitempty"`
	Project      string        `json:"project,omitempty"`
	Region       string        `json:"region,omitempty"`
	Subjects     []string      `json:"subjects,omitempty"`
	Status       int           `json:"status,omitempty"`
	Outcome      string        `json:"outcome,omitempty"`
	Operation    string        `json:"operation_id,omitempty"`
	Digest       string        `json:"digest,omitempty"`
	Missed       int           `json:"suppressed,omitempty"`
}

// AuditEntryOf converts an entry of the audit log.
func AuditEntryOf(e nf.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: e.ID, Phase: e.Phase, Time: e.Time, Replica: e.Replica, Request: e.Request,
		IdentityKind: e.Kind, Identity: e.Identity, Remote: e.Remote, Method: e.Method, Route: e.Route,
		Permission: e.Permission, Project: e.Project, Region: e.Region, Subjects: e.Subjects,
		Status: e.Status, Outcome: e.Outcome, Operation: e.Operation, Digest: e.Digest, Missed: e.Missed,
	}
}

// Version is the version of the service.
type Version struct {
	Version string `json:"version"`
}

// Keys are the keys of the store, and the number of records that each encrypts.
type Keys struct {
	Primary string         `json:"primary"`
	Records map[string]int `json:"records"`
}

// KeysOf converts the state of the keys.
func KeysOf(s nf.KeyStatus) Keys {
	if s.Records == nil {
		s.Records = map[string]int{} // so that JSON has {}
	}
	return Keys{Primary: s.Primary, Records: s.Records}
}

// BackupRequest is a request for a backup of the store.
type BackupRequest struct {
	Recipient string `json:"recipient"` // age recipient that the backup is encrypted for
}
