// Package dryrun wraps a store.KV for dry runs: it keeps writes in memory,
// where later reads see them, and passes only reads to the store below.
//
// Guarantees: the store below does not change, except that Close closes it.
// Reads, conditional writes and lists give the same results as if the writes
// had been stored.
//
// It does not notice that another process changes a key after it was written
// here, and it does not limit the memory that the writes need.
package dryrun
