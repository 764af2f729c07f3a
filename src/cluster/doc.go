// Package cluster is the client of a cloud region's API server: it applies,
// deletes, compares and watches objects for an owner, which their label names: a
// VNF instance, or a subject of another kind (see nf.Subject.Label).
//
// Guarantees: objects of another owner, or of none, are not changed or deleted,
// except by Adopt and for namespaces that the service created. Calls are
// idempotent. An API server gets few requests: a first install applies each
// object once, checks it at most once before, and needs a few requests per
// kind. It gets almost none while it is unreachable. Every error is an
// actionable nf.Error. Regions share no connection and no state, so a faulty
// one does not affect others.
//
// The package does not decide what is applied, in which order, or how long to
// wait: package lifecycle does. It stores nothing on disk.
package cluster
