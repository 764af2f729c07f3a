package nf

// Reasons narrow the kind of an error, for programs. They are stable; clients
// branch on them.
const (
	// Of Unreachable: why a server did not carry out a request.
	ReasonDNS           = "dns"                    // its name cannot be resolved
	ReasonTCP           = "tcp"                    // no connection, or a broken one
	ReasonTLS           = "tls"                    // a certificate or the protocol
	ReasonTimeout       = "timeout"                // no response in time
	ReasonUnauthorized  = "unauthorized"           // it rejects the credentials
	ReasonUnavailable   = "unavailable"            // it responds that it is unavailable
	ReasonNotKubernetes = "not-kubernetes"         // its response is not that of an API server
	ReasonOversized     = "oversized"              // its response exceeds a limit
	ReasonCrowded       = "crowded"                // too many requests to the region are in progress
	ReasonNotAllowed    = "not-allowed"            // the operator does not allow its address
	ReasonBreaker       = "breaker"                // the circuit breaker is open: it failed too often
	ReasonNoAccess      = "no-access"              // A&AI has no credentials of the region that can be used
	ReasonReplaced      = "replaced"               // the region has a different access now, or was deleted
	ReasonAudit         = "audit"                  // the audit entry cannot be written
	ReasonIssuer        = "issuer"                 // the issuer of a token does not respond
	ReasonKeystone      = "keystone"               // OpenStack's Keystone cannot validate a token
	ReasonKey           = "encryption-key-missing" // the key that encrypts the store is missing
	ReasonKMS           = "kms"                    // the key management service does not respond, or is not healthy
	ReasonCompacted     = "compacted"              // the store no longer has the revision
	ReasonNoSpace       = "no-space"               // the store rejects writes because its quota is used up; the cause says what to do
	ReasonSSH           = "ssh"                    // SSH to a site's host failed
	ReasonHost          = "host"                   // Ansible cannot reach a site's host
	ReasonHostKey       = "host-key"               // a site's host has a different key than the pinned one

	// Of Failed.
	ReasonForbidden = "forbidden"         // the region's credential lacks a permission; also of Unreachable
	ReasonBudget    = "disruption-budget" // a PodDisruptionBudget does not allow an eviction
	ReasonQuota     = "quota"             // a quota or a security level of the namespace
	ReasonTask      = "task"              // a task of a playbook
	ReasonScript    = "script"            // the script that builds a site
	ReasonResult    = "script-output"     // the output of a script is invalid
	ReasonAnsible   = "ansible"           // Ansible failed, or is not installed

	// Of Conflict, Busy and Forbidden.
	ReasonIdempotency = "idempotency-key-reused" // the key was used for a different request
	ReasonConfirm     = "confirmation-required"  // the request needs a confirmation
	ReasonImmutable   = "immutable"              // the field is immutable
	ReasonHeld        = "held"                   // it is in use
	ReasonNoContent   = "no-content"             // the package has no content yet
	ReasonDisabled    = "disabled"               // the package is disabled
	ReasonRestore     = "restore-incomplete"     // a restore of the store is in progress, or was interrupted
	ReasonTerminating = "terminating"            // the namespace is being deleted
	ReasonTenant      = "tenant"                 // the region does not grant it to the project

	// Of Invalid, Unsupported and of operations.
	ReasonGzip        = "gzip"               // an archive is not gzipped
	ReasonChart       = "chart"              // an archive has no chart at the given path
	ReasonKud         = "collection-missing" // the collection of playbooks is missing
	ReasonNotAccepted = "not-accepted"       // an operation was never accepted
	ReasonNoRegion    = "no-region"          // no cloud region fits a placement
)

// IsRegionReason reports whether a reason of Unreachable tells why a cloud region did not
// carry out a request. No error of the store has such a reason.
func IsRegionReason(reason string) bool {
	switch reason {
	case ReasonDNS, ReasonTCP, ReasonTLS, ReasonTimeout, ReasonUnauthorized, ReasonUnavailable, ReasonNotKubernetes, ReasonOversized, ReasonCrowded,
		ReasonNotAllowed, ReasonBreaker, ReasonNoAccess, ReasonReplaced:
		return true
	}
	return false
}
