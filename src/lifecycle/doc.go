// Package lifecycle carries VNF instances through their operations:
// instantiate, upgrade, terminate, and the undoing of each that fails.
//
// It promises that a request is refused before anything is touched when it
// cannot work; that an accepted operation is a record before it is an action;
// that the inventory names an object before the object can exist; and that an
// operation ends the same way whether or not its client, or this process,
// lives to see it. Recovery is no special case: a new process runs whatever
// operations are not final, from the recorded step.
//
// It does not speak HTTP or Kubernetes: a region is the Cluster it is given.
// It does not say which of the processes that share a store are alive: package
// lease does.
package lifecycle
