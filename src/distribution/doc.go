// Package distribution turns services that SDC distributes into ONAP's definitions, and
// reports to SDC.
//
// A Runner receives notifications as one member of a Kafka group, so that each is handled
// by one replica. Each VF module with a chart becomes a definition: its name is the
// module's invariant UUID, and its version the customization UUID. A service that is
// distributed again changes a definition only if the content of its chart differs.
// A Comparer, on one replica, deploys services whose notification was missed, and marks
// what was made of services and resources that SDC no longer has.
//
// Guarantees: a notification is committed after its definitions are stored and its
// status messages are sent, so that a crash repeats it; one that was concluded is not
// handled again. DEPLOY_OK is sent after the definition is stored. The failure of one
// module does not hold up the others. A deleted service marks its definitions, and
// removes none. Failures of SDC and Kafka end nothing; they are logged and retried.
//
// The package does not check charts or store definitions; Definitions does.
package distribution
