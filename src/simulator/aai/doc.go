// Package aai simulates A&AI, ONAP's inventory, for tests and for trials without
// ONAP. A Simulator is an http.Handler with its objects in memory.
//
// It rejects the requests that A&AI rejects, with the same status and code:
// headers, credentials, paths, attributes, parents, resource versions, edge rules,
// implied deletes, deletions that an edge prevents, and sizes of transactions.
// The tables objects.json and edges.json describe the objects and their edges. They
// are the part of A&AI's schema v30 (onap/aai-schema-service, Apache-2.0) that
// concerns cloud regions, services, VNFs and networks, with the versions in which it appeared.
//
// Where A&AI ignores a mistake, such as an unknown attribute, the simulator does
// too, and records a violation. A test fails if there is one. A journal has all
// requests. A script makes requests fail, take time, or lose their response.
//
// The simulator does not publish events, and does not answer queries of the
// traversal service. The texts of its errors are its own; clients read the codes.
package aai
