package etcd

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"
)

// compactedKeys are the keys under which etcd records up to which revision it has
// removed history, or may have.
var compactedKeys = []string{string(schema.ScheduledCompactKeyName), string(schema.FinishedCompactKeyName)}

// revisions checks the revisions of a database file in their order. A deletion has no
// value and so no checksum. It is checked by its key, which must have a record then.
type revisions struct {
	marked    bool   // the folder has a watermark
	compacted uint64 // there is no complete history up to this revision
	stray     uint64 // the last deletion of a key that had no record

	seed    maphash.Seed
	present map[uint64]struct{} // hashes of the keys that have a record
}

// newRevisions checks no checksums and no deletions in a folder without a watermark:
// an operator deletes the watermark to accept damaged values.
func newRevisions(marked bool) *revisions {
	return &revisions{marked: marked, seed: maphash.MakeSeed(), present: map[uint64]struct{}{}}
}

// add returns an error if etcd cannot read a revision of a key, or if the checksum of
// its value is missing or wrong.
func (r *revisions) add(key, value []byte) error {
	deleted := len(key) == 18 && key[17] == 't'
	var kv mvccpb.KeyValue
	if len(key) != 17 && !deleted || key[8] != '_' || proto.Unmarshal(value, &kv) != nil {
		return fmt.Errorf("revision %x cannot be read", key)
	}
	revision, name := binary.BigEndian.Uint64(key), maphash.Bytes(r.seed, kv.Key)
	if deleted {
		if _, ok := r.present[name]; !ok {
			r.stray = revision
		}
		delete(r.present, name)
		return nil
	}
	if uint64(kv.ModRevision) != revision {
		return fmt.Errorf("revision %x cannot be read", key)
	}
	r.present[name] = struct{}{}
	if !r.marked {
		return nil
	}
	if err := checkSum(string(kv.Key), kv.Value); err != nil {
		return fmt.Errorf("key %q: %w", kv.Key, err)
	}
	return nil
}

// checkDeletions returns an error if a key was deleted that had no record, which etcd
// does not do. It is called last, when it is known which revisions were compacted.
func (r *revisions) checkDeletions() error {
	if r.marked && r.stray > r.compacted {
		return fmt.Errorf("revision %d deletes a key that had no record", r.stray)
	}
	return nil
}
