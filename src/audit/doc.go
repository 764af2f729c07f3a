// Package audit records requests: the caller, the request and its outcome.
// Entries are written to the store, where the entries of all replicas can be
// listed, and to a file of this replica. The file is synced before an entry
// counts as written.
//
// Guarantees: an accepted entry is in both. Each line of the file contains the
// SHA-256 of the line before it, so Verify finds a line that was changed,
// inserted or removed. The file may be renamed at any time.
//
// The package does not decide what is recorded, and does not sign anything. A
// user with write access to the file can replace it with a new, consistent one.
// Such a file does not match the entries in the store or the heads in the log.
package audit
