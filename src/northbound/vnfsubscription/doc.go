// Package vnfsubscription implements the subscriptions of ETSI SOL003, as OpenStack Tacker
// serves them: those to the life of VNFs (/vnflcm/v2 and /vnflcm/v1), and those to their
// alarms (/vnffm/v1).
//
// A subscription belongs to a project, and to the interface through which it was created.
// The other interfaces do not show it.
//
// Guarantees: the authentication of a callback is never in a response. Responses match
// swagger.yaml.
//
// The package does not test callbacks, send notifications, store anything or authorize.
package vnfsubscription
