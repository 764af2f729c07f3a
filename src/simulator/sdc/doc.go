// Package sdc simulates SDC, ONAP's design catalog, and the Kafka through which it
// distributes services, for tests and for trials without ONAP. A Simulator is an
// http.Handler with its services in memory, and a Kafka broker on loopback that
// requires SCRAM-SHA-512 and has ACLs.
//
// It rejects the requests that SDC rejects, with the same status and code: headers,
// credentials, media types, and unknown services, resources and artifacts. Kafka
// rejects wrong passwords, other groups and other topics, and creates no topics.
//
// Run reads the status messages of a consumer, and checks their form and their order
// for each distribution. A message that is wrong is a violation. So is a part of a
// request that SDC ignores. A test fails if there is one. A journal has all requests. A
// script makes requests fail, take time, redirect, or respond with damaged or endless
// content.
//
// The simulator does not import or design anything, and has no API of SDC's older
// message bus. The texts of its errors are its own; clients read the codes.
package sdc
