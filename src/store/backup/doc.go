// Package backup writes all records of a store into one encrypted stream, and
// restores them into an empty store of any kind.
//
// The stream is an age file: each identity that it is encrypted to can decrypt
// it with age alone. It contains lines of JSON (format.go). A truncated,
// damaged or foreign stream is rejected before anything is written. An
// interrupted restore leaves a mark, so that services do not start on
// incomplete data; repeating the restore completes it. Both handle a stream of
// any length in constant memory.
//
// A backup is as consistent as the store's List. With etcd it is a snapshot.
// With other databases, each record that is written during the backup may be in
// it or not, so stop the service first. The package does not lock the store
// during a restore: stop all its users.
package backup
