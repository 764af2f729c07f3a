// Package schema stores the version of a store's contents, and migrates the
// contents of an older release before they are used.
//
// The version is a separate, unencrypted record, so that it can be read before
// any key is available. Open accepts a store only if it has the version that
// this program writes. It first migrates an older store, step by step. Each
// step may be interrupted at any write, and is then repeated. Several replicas
// may open a store at once.
//
// The package does not migrate to an earlier version. The version is checked
// only when a store is opened: a process of an older release that has opened
// the store before must not use it during or after a migration.
package schema
