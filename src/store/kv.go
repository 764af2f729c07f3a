package store

import (
	"context"
	"iter"
)

// KV is the contract of a database for the service's records. It has no
// transactions over several keys, so that any database can implement it. A database that
// has them can implement Writer, too.
//
// Keys are non-empty printable ASCII of at most 512 bytes. Values have at most
// MaxStored bytes in a driver, and fewer in a KV that enlarges them before it
// passes them to a driver. A key or value out of bounds is nf.Invalid or
// nf.TooLarge. Implementations are safe for concurrent use and do not share
// memory with the caller. They return only nf.NotFound, nf.Exists, nf.Conflict,
// nf.Unreachable (the database does not respond, or the context ended),
// nf.Invalid and nf.TooLarge.
type KV interface {
	// Get returns the entry of a key, or nf.NotFound.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes a value if the key's revision is the expected one, and returns
	// the new revision. With Absent it creates the key, and returns nf.Exists if
	// the key exists. With Any it writes in any case. With a revision it returns
	// nf.Conflict if the key has another revision or does not exist.
	Put(ctx context.Context, key string, value []byte, expected Revision) (Revision, error)

	// Delete deletes a key if its revision is the expected one. It returns
	// nf.NotFound if the key does not exist, and nf.Conflict if it has another
	// revision. Any matches every revision.
	Delete(ctx context.Context, key string, expected Revision) error

	// List returns the entries whose keys begin with the prefix and are not less
	// than start, in the order of the keys' bytes. An error ends the sequence.
	// Prefix and start are empty or within the bounds of keys, and start need
	// not begin with the prefix.
	List(ctx context.Context, prefix, start string) iter.Seq2[Entry, error]

	// Close releases the store's resources. It is called once, after all other
	// calls.
	Close() error
}

// The maximum sizes of a value. etcd rejects requests above 1.5 MiB by default,
// and a request contains more than the value.
const (
	MaxValue  = 1 << 20          // limit of every KV, for its users
	MaxStored = MaxValue + 4<<10 // limit of a driver; leaves room for the encryption's overhead
)

// Revision is the version of one key. It changes with each write. A key that is
// deleted and created again never gets an earlier revision.
type Revision int64

// Special values of an expected revision.
const (
	Absent Revision = 0  // the key must not exist
	Any    Revision = -1 // any state of the key
)

// Entry is one key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}
