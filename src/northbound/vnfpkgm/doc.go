// Package vnfpkgm implements the VNF package management of ETSI SOL005 2.6.1, as
// OpenStack Tacker serves it: /vnfpkgm/v1/vnf_packages.
//
// A VNF package is a package of the catalog that is a CSAR, or that has no content yet.
// Packages of other kinds are not shown. It is onboarded in one request: the response to
// an upload is sent when the content is checked, and says what is wrong with it.
// Meanwhile, the package is UPLOADING and then PROCESSING for other requests. Its
// operationalState is that the catalog's package is enabled, and its usageState that
// something uses it, through whatever API.
//
// Guarantees: content is received and sent as a stream. Responses match swagger.yaml.
// Passwords of sources are not stored, logged or shown.
//
// The package does not read CSARs, store anything, send requests or authorize.
// Subscriptions and notifications of SOL005 are not part of it.
package vnfpkgm
