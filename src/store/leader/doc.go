// Package leader has one replica of a group do some work.
//
// Guarantees: as long as the store responds, a live replica leads within about one and a
// half times the duration of a lease. A replica stops the work before another one can
// begin it, unless the work ignores the end of its context.
//
// The package does not know the work. It does not share work among several replicas;
// packages operation and outbox do.
package leader
