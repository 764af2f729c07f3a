// Package vnflcm implements the lifecycle management of VNFs of ETSI SOL003, as OpenStack
// Tacker serves it: /vnflcm/v2, which is version 3.3.1, and /vnflcm/v1, which is version
// 2.6.1.
//
// Both versions have the same handlers. They differ in their version headers, in the
// prefix of their paths, and in lists that the later one has as maps: vimConnectionInfo
// and cpConfig. The later version alone changes the package of a VNF. Both cancel
// occurrences.
//
// Guarantees: a request for an occurrence is answered when the occurrence is stored, with
// its absolute address. Credentials of a request are passed on and not stored, logged or
// shown. The links of a resource are those of requests that its state allows. Unknown
// attributes are ignored, as SOL013 requires, except those of external virtual links that
// would change the connectivity. Responses match swagger.yaml.
//
// The package stores nothing, runs no operation and does not authorize. Subscriptions and
// notifications are not part of it.
package vnflcm
