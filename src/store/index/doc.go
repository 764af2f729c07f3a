// Package index finds records by their attributes, without reading the others.
//
// It keeps the scope of each record of some tables in memory, and hashes of its
// attributes. Run fills the index, and follows the store: this process reports its own
// writes, and a store.Watcher those of other processes. A record that this process has written is found as soon as the write
// has returned, and one that another process has written when the watch reports it.
// After a write with an unknown result, the index offers the record whatever is asked
// for, until it was read again.
//
// Find may offer a record that has changed or was deleted, or one whose attribute has the
// hash of another, so its caller reads the record and checks it. Apart from the delay of
// the watch, it never leaves out a record that meets the conditions.
//
// Until a table is filled, and if it has too many records, Find offers nothing and says
// so; the caller then reads the store. The package does not keep records or the values of
// attributes, and writes nothing to the store.
package index
