// Package sol003 is the ledger of what ETSI SOL003 knows of VNF instances: VNFs, which
// exist before they are instantiated and after they are terminated, and the occurrences
// of operations on them.
//
// A VNF is a subject of package operation. Each attempt at an occurrence is an operation
// of the kernel: the first one, each retry, and a rollback. It asks for the grant, begins
// the engine's operation on the instance with the VNF's id, waits for its end, and records
// the pods that have changed.
//
// Guarantees: a request that can be refused in advance changes nothing. A VNF has at most
// one occurrence that is not in a final state. Each state that an occurrence enters has a
// notice, which is written before the state in one ordered write. A request to the engine
// has a key that follows from the attempt, so that a process that resumes an attempt
// begins nothing twice. What the engine refuses when the first attempt begins has changed
// nothing: the occurrence is rolled back.
//
// The package does not speak HTTP, does not deliver notices, does not render packages, and
// does not connect to regions: the engine that it is given does. It does not authorize
// requests.
package sol003
