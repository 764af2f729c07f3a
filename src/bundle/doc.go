// Package bundle stores ONAP's resource bundles: definitions (a chart),
// profiles (values and files that override the chart's), configuration
// templates, and the connection data of a region other than its kubeconfig.
//
// Guarantees: an archive is stored only if it is safe and valid. Replaced
// content is released. A definition and a profile compose to one package, whose
// id is derived from its content: the same chart with the same overlay gives
// the same package.
//
// The package does not render or apply anything. It does not authorize callers
// and does not know ONAP's wire format.
package bundle
