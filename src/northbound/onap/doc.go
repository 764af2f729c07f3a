// Package onap implements the v1 API of ONAP's MultiCloud K8s plugin: resource
// bundle definitions, profiles, configuration templates, connectivity
// information, instances with their configuration, health checks and
// subscriptions, and the Heat-like broker at the root.
//
// Guarantees: it keeps ONAP's wire format. Errors are lines of text, a missing
// object is a 500 unless the strict style is configured, unknown fields are
// ignored, and media types are not checked. Responses have the form and the
// texts that ONAP's clients expect, without additional fields for strict
// clients.
//
// The package does not store or compose bundles, run operations, or authorize.
// Functions that ONAP announced but did not implement are behind the interfaces
// that it declares.
package onap
