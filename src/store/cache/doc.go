// Package cache keeps the records that were read or written last in memory.
//
// It is for a store that only this process writes: it does not see the writes of
// others. A record is forgotten before it is written, and kept after the write, so a
// read returns every write that has returned. After a write with an unknown result,
// the record is never kept again, because the store may apply the write late. Neither are
// a few others: the keys of such records have a limited memory, and may be taken for theirs.
//
// The package does not keep large values or lists, and does not share memory with its
// callers.
package cache
