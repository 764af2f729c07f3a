// Package drift compares the objects of VNF instances with those that the service has
// applied, and has those corrected that other clients have changed or deleted.
//
// It looks at an object when a watch that exists anyway reports that the object may have
// changed in more than its status, after each operation, and after a watch was interrupted.
// It does not poll. Only instances that ask for it (nf.DriftPolicy) are compared. Every
// replica compares on its own, keeps the result in memory, and writes nothing to the store.
//
// A correction is an operation. The record of the instance counts the corrections of each
// object, so that all replicas wait longer before each further one, and then give up: a
// client that changes an object back each time is reported, not fought.
//
// The package does not know how objects are compared or corrected, and does not decide
// which fields are ignored.
package drift
