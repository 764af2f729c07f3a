// Package cluster speaks to the API server of one cloud region: it applies,
// deletes, compares and watches objects on behalf of an owner, the VNF instance
// whose id they bear in nf.OwnerLabel.
//
// It promises that nothing which bears another owner's label, or none, is
// changed or removed; that repeating a call changes nothing; that a region's
// API server is asked as little as can be (on a first install one request for
// each object, and one for each kind), and hardly at all while it gives no
// answer; and that every error is an nf.Error which a person can act on. Regions
// share no connection and no knowledge: one that misbehaves costs nobody else.
//
// It does not decide what is applied, in which order, or how long to wait: that
// is lifecycle's. It keeps nothing on disk.
package cluster
