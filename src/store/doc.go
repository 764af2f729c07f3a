// Package store stores records and blobs with optimistic concurrency, in any
// key-value database.
//
// KV is the contract of a database; its drivers are in the subfolders, and
// storetest.Run tests it. Table stores one kind of record under a key prefix,
// as JSON. Write writes several records in order. Blobs stores content of any
// size in chunks, addressed by its digest and held by named users.
//
// Guarantees: a writer never overwrites a record whose current value it has not
// seen. Table.Put is the exception, and its comment says so. Content that is
// read is the content that was stored.
//
// The package does not change several records atomically, does not encrypt
// (store/seal does), and does not cache.
package store
