// Package audit keeps the record of who asked for what, and what came of it: in
// the store, where all replicas' entries can be listed, and in a file of this
// replica's own, which is synced before an entry counts as written.
//
// It promises that an entry which was accepted is in both, that each line of
// the file has the SHA-256 of the line before it, so that Verify finds a line
// that was changed, put in or taken out, and that the file may be renamed away
// at any time.
//
// It does not decide what is recorded, and does not sign anything: somebody who
// may write the file can make a whole new one. What he cannot do is make it fit
// the entries in the store, and the heads in the log.
package audit
