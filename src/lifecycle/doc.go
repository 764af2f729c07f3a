// Package lifecycle runs operations on VNF instances: instantiate, adopt,
// upgrade, configure, roll back, test and terminate, and their retry and undo.
//
// Guarantees: an invalid request is rejected before any record or object
// changes. An accepted operation is stored before it acts. A step that must not
// run twice is stored before it runs, and any other within a second. The
// inventory names an object before the object can exist. Every operation ends
// the same way, whether or not its client or this process survives: any replica
// claims unfinished operations and resumes them at the recorded step.
//
// An Engine has the verbs and the queries that other packages use. A verb asks
// the preparer for a request that can be carried out, and the acceptor records
// it. Package operation runs the accepted operation: the performer opens its
// work, which lists the steps, and the applier and the namespaceUser change the
// region. All of them read and write the store through the records. Calls go only
// in this direction.
//
// The package does not speak HTTP or Kubernetes; a region is the Cluster that
// it is given. It does not decide who runs an operation, or when;
// package operation does.
package lifecycle
