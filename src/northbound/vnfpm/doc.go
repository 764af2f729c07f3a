// Package vnfpm implements the performance management of ETSI SOL003 (/vnfpm/v2), as
// OpenStack Tacker serves it: PM jobs with their reports, and thresholds.
//
// Guarantees: the authentication of a callback is never in a response. Unknown attributes,
// such as the addresses of Tacker's own Prometheus server, are ignored and not stored.
// Responses match swagger.yaml.
//
// The package does not measure, notify, store anything or authorize.
package vnfpm
