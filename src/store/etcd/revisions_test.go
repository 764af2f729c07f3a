package etcd

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// revisionOf returns a revision of a key as it is in the database file. A value of nil
// is a deletion.
func revisionOf(t *testing.T, revision uint64, name string, value []byte) (key, record []byte) {
	t.Helper()
	key = append(binary.BigEndian.AppendUint64(nil, revision), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
	kv := &mvccpb.KeyValue{Key: []byte(name)}
	if value == nil {
		key = append(key, 't')
	} else {
		kv.CreateRevision, kv.ModRevision, kv.Version = 3, int64(revision), 2
		kv.Value = []byte(withSum(name, value))
	}
	record, err := proto.Marshal(kv)
	must(t, err)
	return key, record
}

// TestDamagedRevision flips each bit of a record. Either that is noticed, or the key,
// its revision and its value are what they were.
func TestDamagedRevision(t *testing.T) {
	key, whole := revisionOf(t, 7, "regions/east", []byte("a value"))
	must(t, newRevisions(true).add(key, whole))
	for i := range whole {
		for bit := range 8 {
			record := slices.Clone(whole)
			record[i] ^= 1 << bit
			if newRevisions(true).add(key, record) != nil {
				continue
			}
			var is mvccpb.KeyValue
			must(t, proto.Unmarshal(record, &is))
			if string(is.Key) != "regions/east" || is.ModRevision != 7 || string(withoutSum(string(is.Key), is.Value)) != "a value" {
				t.Errorf("bit %d of byte %d is overlooked: %v", bit, i, &is)
			}
		}
	}
}

// TestDamagedDeletion flips each bit of a deletion. Either that is noticed, or it
// deletes the same key.
func TestDamagedDeletion(t *testing.T) {
	key, whole := revisionOf(t, 7, "regions/east", nil)
	for i := range whole {
		for bit := range 8 {
			record := slices.Clone(whole)
			record[i] ^= 1 << bit
			r := newRevisions(true)
			must(t, r.add(revisionOf(t, 5, "regions/east", []byte("a value"))))
			must(t, r.add(revisionOf(t, 6, "regions/west", []byte("a value"))))
			if r.add(key, record) != nil || r.checkDeletions() != nil {
				continue
			}
			var is mvccpb.KeyValue
			must(t, proto.Unmarshal(record, &is))
			if string(is.Key) != "regions/east" {
				t.Errorf("bit %d of byte %d is overlooked: %v", bit, i, &is)
			}
		}
	}
}

func TestDeletions(t *testing.T) {
	value := []byte("a value")
	type revision struct {
		number uint64
		key    string
		value  []byte
	}
	cases := map[string]struct {
		reason    string
		revisions []revision
		compacted uint64
		unmarked  bool
		refused   bool
	}{
		"Deleted": {
			reason:    "a record was deleted",
			revisions: []revision{{2, "a", value}, {3, "a", value}, {4, "a", nil}},
		},
		"WrittenAgain": {
			reason:    "a record may be written and deleted again",
			revisions: []revision{{2, "a", value}, {3, "a", nil}, {4, "a", value}, {5, "a", nil}},
		},
		"DeletedTwice": {
			reason:    "the second deletion belongs to another key",
			revisions: []revision{{2, "a", value}, {3, "a", nil}, {4, "a", nil}},
			refused:   true,
		},
		"Unknown": {
			reason:    "the deletion belongs to another key",
			revisions: []revision{{2, "a", value}, {3, "b", nil}, {4, "a", nil}},
			refused:   true,
		},
		"Compacted": {
			reason:    "etcd keeps a deletion at the revision of a compaction without what it deleted",
			revisions: []revision{{3, "a", nil}, {4, "b", value}, {5, "b", nil}},
			compacted: 3,
		},
		"UnknownAfterCompaction": {
			reason:    "a compaction keeps the records that were there at its revision",
			revisions: []revision{{2, "a", value}, {5, "b", nil}},
			compacted: 3,
			refused:   true,
		},
		"Accepted": {
			reason:    "without a watermark, the operator accepts damage",
			revisions: []revision{{2, "a", nil}},
			unmarked:  true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRevisions(!c.unmarked)
			for _, one := range c.revisions {
				must(t, r.add(revisionOf(t, one.number, one.key, one.value)))
			}
			r.compacted = c.compacted
			if err := r.checkDeletions(); (err != nil) != c.refused {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}
