// Package schema keeps the version of a store's contents, and brings the
// contents of an older release up to date before anything else is done with
// them.
//
// The version is a record of its own, in clear, so that it can be read before
// any key is there. Open lets a store through exactly when it is of the version
// that this program writes; a store that is older is migrated first, step by
// step, each of which may be cut at any write and is then done again. Several
// replicas may open a store at once.
//
// The package does not migrate backwards, and a release that is older than this
// package does not look at the version: nobody may use the store with one while
// it is migrated, or afterwards.
package schema
