// Package backup writes all records of a store into one encrypted stream, and
// brings them back into an empty store of any kind.
//
// The stream is an age file: who has one of the identities that it was
// encrypted to reads it with age alone, and finds lines of JSON (format.go).
// A stream that is cut, damaged or not ours is refused before anything is
// written. A restore that is cut leaves a mark, which keeps services from
// starting on the half; repeating it makes it whole. Both work through a stream
// of any length in constant memory.
//
// A backup is as consistent as the store's List: with etcd it is the store at
// one instant; with others, records that are written meanwhile may be in it or
// not, each for itself, so stop the service first. The package does not watch
// over who uses the store during a restore: nobody may.
package backup
