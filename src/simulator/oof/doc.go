// Package oof simulates the part of OOF, ONAP's optimization framework, that chooses
// a cloud region for a VNF: HAS. It is for tests and for trials without ONAP.
//
// Place is what SO asks OOF for. A Simulator reads the cloud regions of A&AI, which may be
// a simulator, too, and finds those that a Demand fits as HAS does:
//
//   - the region has a version, and exactly one complex with a place on the map
//   - for each VDU, it has a flavor whose HPA capabilities meet the requirements
//   - capacity_check of multicloud, which the service has, says that there is room
//
// Of those left, it returns the one with the highest score, the flavors of its VDUs, and
// both forms in which SO passes them on: oof_directives of ONAP's infra_workload, and
// oof_parameters of the service's own API. All others are returned with a reason.
//
// Demands that HAS rejects are errors. What peers send and HAS misunderstands is a
// violation, and fails a test: a flavor whose attributes are not JSON texts, or a
// capacity_check that contradicts itself. A journal has all placements. A script makes
// them fail, take time, or have another result.
//
// The simulator has no HTTP API, does not compare distances, and keeps no cache of
// A&AI. It asks each region by itself, as ONAP's broker does. It imports no package of
// the service, so that a mistake of the code that writes to A&AI is not repeated here.
package oof
