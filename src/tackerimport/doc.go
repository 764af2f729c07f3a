// Package tackerimport imports the VIMs and VNF packages of an OpenStack Tacker through its
// REST API. It writes them through the same API of this service, in which a VIM is a cloud
// region.
//
// Guarantees: the source is only read. An existing VIM or package does not change; one that
// differs is reported. A repeated import adds only what is missing, and continues a package
// whose content was not received. A package keeps its id. An item that cannot be imported
// does not affect the others; the report has the reason, and no credentials.
//
// Tacker's responses have no credentials of VIMs, so they are given separately. VNF
// instances, subscriptions and operations are not imported.
package tackerimport
