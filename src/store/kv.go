package store

import (
	"context"
	"iter"
)

// KV is what a database must offer to keep the service's records. It has no
// transaction over several keys, so that every database can be one.
//
// Keys are non-empty, at most 512 bytes, of printable ASCII; values are at most
// MaxStored bytes in a driver, and less in a KV that adds to them on their way
// to one. A key or value that is out of bounds is nf.Invalid or nf.TooLarge.
// Implementations are safe for concurrent use, do not share memory
// with the caller, and return nf.NotFound, nf.Exists, nf.Conflict,
// nf.Unreachable (the database does not answer, or the context ended), nf.Invalid
// and nf.TooLarge, and no other kind.
type KV interface {
	// Get returns the entry of a key, or nf.NotFound.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes a value if the key's revision is the expected one, and
	// returns the new revision. With Absent it creates, and fails with
	// nf.Exists when the key is there; with Any it writes whatever is there;
	// with a revision it fails with nf.Conflict when the key has another
	// revision or is gone.
	Put(ctx context.Context, key string, value []byte, expected Revision) (Revision, error)

	// Delete removes a key if its revision is the expected one: nf.NotFound
	// when it is not there, nf.Conflict when it has another revision. Any
	// removes whatever is there.
	Delete(ctx context.Context, key string, expected Revision) error

	// List returns the entries whose keys begin with the prefix, in the order
	// of the keys' bytes. An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]

	// Close releases what the store holds. It is called once, last.
	Close() error
}

// The sizes of one value: etcd refuses requests above 1.5 MiB by default, and a
// request carries more than the value.
const (
	MaxValue  = 1 << 20          // what every KV accepts, and what its users keep to
	MaxStored = MaxValue + 4<<10 // what a driver accepts: there is room for a seal
)

// ReasonNoSpace is the reason of an nf.Unreachable error when a database refuses a
// write because its quota is used up. The cause says what to do.
const ReasonNoSpace = "no-space"

// Revision is the version of one key. It changes with each write, and a key
// that was deleted and made again never gets an old one back.
type Revision int64

// Expected revisions that are none.
const (
	Absent Revision = 0  // the key must not exist
	Any    Revision = -1 // whatever is there
)

// Entry is one key with its value.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}
