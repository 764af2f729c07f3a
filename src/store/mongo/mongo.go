// Package mongo stores records in MongoDB: in a replica set, through mongos, or
// in a standalone server.
//
// A write that returned without an error is in the journals of a majority, and
// a Get sees every write that has returned. A write is one command on one
// document, sent once. One that failed with nf.Unreachable may have been
// carried out, and is never retried here. No call lasts longer than its
// context, or 15 seconds.
//
// Blobs are chunks in the same collection, as in every store, so that there is
// one format and one collection to back up. The package does not use GridFS or
// transactions, and does not back up. It does not set up the server, its users
// or its indexes; it needs only the index of _id.
package mongo

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"iter"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// collection holds the records, in the configured database.
const collection = "records"

// record is a document.
//
// A revision is 63 random bits. It must change with each write and never recur,
// even if the key was deleted in between. It cannot be counted in the document,
// because the count would be deleted with it. A counter in a separate document
// would cost a second round trip per write, and all writers would queue for it.
// A clock would have to agree between all processes. Revisions need no order:
// they are only compared for equality. Two random ones of one key are equal
// with a probability of 1 in 9·10¹⁸.
type record struct {
	Key      string         `bson:"_id"`
	Value    []byte         `bson:"value"`
	Revision store.Revision `bson:"rev"`
}

func (r record) entry() store.Entry {
	return store.Entry{Key: r.Key, Value: r.Value, Revision: r.Revision}
}

// Store is a database in MongoDB. Create it with Open.
type Store struct {
	single   *mongo.Collection // for Get and the writes
	ranges   *mongo.Collection // for List
	patience time.Duration     // limit of a call
	close    func() error
}

var _ store.KV = (*Store)(nil)

// Get implements store.KV. It sees every write that has returned: with the read
// concern "linearizable", a primary verifies that it still is one before it
// responds. Neither "majority" on a former primary nor a read from a secondary
// would suffice.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := check(ctx, "read", key); err != nil {
		return store.Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var r record
	err := s.single.FindOne(ctx, byKey(key)).Decode(&r)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return store.Entry{}, fail(nf.NotFound, "read", key)
	}
	if err != nil {
		return store.Entry{}, translate(ctx, "read", quoted(key), err)
	}
	return r.entry(), nil
}

// Put implements store.KV, in one command.
func (s *Store) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := check(ctx, "write", key); err != nil {
		return 0, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return 0, err
	}
	if value == nil {
		value = []byte{} // nil would be stored as null
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	r := record{Key: key, Value: value, Revision: newRevision()}
	var kind nf.Kind
	var err error
	switch expected {
	case store.Absent:
		kind, err = s.insert(ctx, r)
	case store.Any:
		err = s.upsert(ctx, r)
	default:
		kind, err = s.replace(ctx, r, expected)
	}
	switch {
	case err != nil:
		return 0, translate(ctx, "write", quoted(key), err)
	case kind != nf.Internal:
		return 0, fail(kind, "write", key)
	default:
		return r.Revision, nil
	}
}

// insert returns nf.Exists if the key exists, and nf.Internal if it has
// written.
func (s *Store) insert(ctx context.Context, r record) (nf.Kind, error) {
	_, err := s.single.InsertOne(ctx, r)
	if isThere(err) {
		return nf.Exists, nil
	}
	return nf.Internal, err
}

// upsert writes in any case. If two callers find no document, one of them fails
// to insert. That one has written nothing, so upsert retries it.
func (s *Store) upsert(ctx context.Context, r record) error {
	for {
		_, err := s.single.ReplaceOne(ctx, byKey(r.Key), r, options.Replace().SetUpsert(true))
		if !isThere(err) || ctx.Err() != nil {
			return err
		}
	}
}

// replace returns nf.Conflict if the key has another revision or does not
// exist, and nf.Internal if it has written.
func (s *Store) replace(ctx context.Context, r record, expected store.Revision) (nf.Kind, error) {
	done, err := s.single.ReplaceOne(ctx, byRevision(r.Key, expected), r)
	if err == nil && done.MatchedCount == 0 {
		return nf.Conflict, nil
	}
	return nf.Internal, err
}

// Delete implements store.KV, in one command. It needs a second one if the
// first has found nothing to delete.
func (s *Store) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	filter := byKey(key)
	if expected != store.Any {
		filter = byRevision(key, expected)
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	done, err := s.single.DeleteOne(ctx, filter)
	switch {
	case err != nil:
		return translate(ctx, "delete", quoted(key), err)
	case done.DeletedCount > 0:
		return nil
	case expected == store.Any:
		return fail(nf.NotFound, "delete", key)
	}
	switch err := s.single.FindOne(ctx, byKey(key)).Err(); {
	case err == nil:
		return fail(nf.Conflict, "delete", key)
	case errors.Is(err, mongo.ErrNoDocuments):
		return fail(nf.NotFound, "delete", key)
	default:
		return translate(ctx, "delete", quoted(key), err)
	}
}

// The pages that List requests. The server ends a page early when the response
// is full, at 16 MiB.
const (
	pageLimit = 256     // entries
	fullPage  = 8 << 20 // bytes: a smaller page had space for another entry
)

// List implements store.KV. It reads page by page, each from the end of the one
// before it. It may see writes that are made in the meantime, and keeps nothing
// open between pages.
//
// MongoDB compares strings byte by byte, unless the collection was created with
// a collation, and no byte of a key is above '~'. So the keys with a prefix are
// those from the prefix to the prefix followed by the byte after '~'.
func (s *Store) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		first, err := store.FirstKey(prefix, start)
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		from := bson.E{Key: "$gte", Value: first}
		for more, limit := true, store.FirstPage(ctx, pageLimit, pageLimit); more; limit = min(2*limit, pageLimit) {
			var page []record
			page, more, err = s.page(ctx, bson.D{from, {Key: "$lt", Value: prefix + "\x7f"}}, limit)
			if err != nil {
				yield(store.Entry{}, nf.E(nf.KindOf(err), "list", quoted(prefix), err))
				return
			}
			for _, r := range page {
				if !yield(r.entry(), nil) {
					return
				}
				from = bson.E{Key: "$gt", Value: r.Key}
			}
		}
	}
}

// page returns the first records within the bounds, at most as many as the limit,
// and whether there may be more.
func (s *Store) page(ctx context.Context, bounds bson.D, limit int) (page []record, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	// A negative limit asks for one response and no cursor. With the server's
	// default batch size, that response would have at most 101 entries.
	opts := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(-int64(limit)).SetBatchSize(int32(limit))
	found, err := s.ranges.Find(ctx, bson.D{{Key: "_id", Value: bounds}}, opts)
	if err == nil {
		err = found.All(ctx, &page)
	}
	if err != nil {
		return nil, false, translate(ctx, "read", "the records", err)
	}
	return page, isFull(page, limit), nil
}

// isFull reports whether there may be records after a page.
func isFull(page []record, limit int) bool {
	size := 0
	for _, r := range page {
		size += len(r.Value)
	}
	return len(page) == limit || size >= fullPage
}

// Healthy returns nf.Unreachable unless the database responds and has a primary
// that a majority follows. The cause has the details.
func (s *Store) Healthy(ctx context.Context) error {
	_, err := s.Get(ctx, "health")
	if err == nil || nf.KindOf(err) == nf.NotFound {
		return nil
	}
	return nf.E(nf.KindOf(err), "use", "MongoDB", err)
}

// Close implements store.KV.
func (s *Store) Close() error { return s.close() }

func byKey(key string) bson.D { return bson.D{{Key: "_id", Value: key}} }

func byRevision(key string, revision store.Revision) bson.D {
	return append(byKey(key), bson.E{Key: "rev", Value: revision})
}

func newRevision() store.Revision {
	var bits [8]byte
	_, _ = rand.Read(bits[:]) // never fails
	return max(1, store.Revision(binary.BigEndian.Uint64(bits[:])>>1))
}

func check(ctx context.Context, op, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return translate(ctx, op, quoted(key), ctx.Err())
}

func fail(kind nf.Kind, op, key string) error {
	return nf.E(kind, op, quoted(key), nil)
}

func quoted(key string) string { return "key " + strconv.Quote(key) }
