// Package store keeps records and blobs with optimistic concurrency, over any
// key-value database.
//
// KV is what a database must offer; its drivers are in the folders beside this
// file, and storetest.Run says what each must do. Table keeps one kind of
// record under a prefix of keys, as JSON. Blobs keeps content of any size in
// chunks, addressed by its digest and held by named users.
//
// The package promises that a record is never overwritten by somebody who has
// not seen its present value (Table.Put is the exception, and says so), and
// that content which is read is the content that was stored. It does not offer
// a change of several records at once, it does not encrypt (store/seal does),
// and it does not cache.
package store
