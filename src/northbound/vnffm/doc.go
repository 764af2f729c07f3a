// Package vnffm implements the alarms of ETSI SOL003's fault management (/vnffm/v1), as
// OpenStack Tacker serves them. Package vnfsubscription has its subscriptions.
//
// Guarantees: an alarm that has changed since a client read it is not acknowledged, if the
// client names its ETag in If-Match. Responses match swagger.yaml.
//
// The package does not raise or clear alarms, store anything or authorize.
package vnffm
