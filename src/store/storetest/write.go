package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func writes() map[string]aCase {
	return map[string]aCase{
		"Write":        {"an ordered write does all its ops", writeAll},
		"WriteStops":   {"an op that fails leaves exactly the ops before it, or none if the store writes them together", writeStops},
		"WriteFails":   {"a call that fails leaves exactly the calls before it", writeFails},
		"WriteInvalid": {"a list with an invalid op writes nothing", writeInvalid},
	}
}

// arrangeOps returns ops of every sort that succeed, below a prefix where it
// stores what they need.
func arrangeOps(t *testing.T, kv store.KV, prefix string) []store.Op {
	t.Helper()
	put := func(key string) store.Revision { return mustPut(t, kv, prefix+key, "old") }
	put("put")
	put("delete")
	replaced, deleted, checked := put("replace"), put("delete-revision"), put("check")
	return []store.Op{
		{Key: prefix + "insert", Value: []byte("new"), Expect: store.Absent},
		{Key: prefix + "put", Value: []byte("new"), Expect: store.Any},
		{Key: prefix + "delete", Expect: store.Any},
		{Key: prefix + "put-absent", Value: []byte{}, Expect: store.Any},
		{Key: prefix + "delete-absent", Expect: store.Any},
		{Key: prefix + "replace", Value: []byte("new"), Expect: replaced},
		{Key: prefix + "delete-revision", Expect: deleted},
		{Key: prefix + "check", Expect: checked, Check: true},
		{Key: prefix + "check-absent", Expect: store.Absent, Check: true},
	}
}

// apply returns what a list of ops makes of the content.
func apply(content map[string]string, ops []store.Op) map[string]string {
	content = maps.Clone(content)
	for _, op := range ops {
		switch {
		case op.Check:
		case op.Value == nil:
			delete(content, op.Key)
		default:
			content[op.Key] = string(op.Value)
		}
	}
	return content
}

func contentOf(t *testing.T, kv store.KV, prefix string) map[string]string {
	t.Helper()
	content := map[string]string{}
	for _, e := range list(t, kv, prefix) {
		content[e.Key] = string(e.Value)
	}
	return content
}

func writeAll(t *testing.T, kv store.KV) {
	if _, err := store.Write(t.Context(), kv, nil); err != nil {
		t.Errorf("a list without ops fails: %v", err)
	}
	if n := len(list(t, kv, "")); n != 0 {
		t.Errorf("a list without ops wrote %d keys", n)
	}
	ops := arrangeOps(t, kv, "")
	want := apply(contentOf(t, kv, ""), ops)
	revisions, err := store.Write(t.Context(), kv, ops)
	if err != nil {
		t.Fatal(err)
	}
	for i, op := range ops {
		stored := store.Revision(0)
		if op.Value != nil {
			stored = get(t, kv, op.Key).Revision
		}
		if revisions[i] != stored {
			t.Errorf("op %d on %s returns revision %d, and the key has %d", i, op.Key, revisions[i], stored)
		}
	}
	if diff := cmp.Diff(want, contentOf(t, kv, "")); diff != "" {
		t.Errorf("after all ops (-want +got):\n%s", diff)
	}
}

func writeStops(t *testing.T, kv store.KV) {
	cases := map[string]struct {
		reason string
		value  []byte
		check  bool
		there  bool
		expect func(now store.Revision) store.Revision
		kind   nf.Kind
	}{
		"Insert":        {"a key is not created twice", []byte("bad"), false, true, absent, nf.Exists},
		"Replace":       {"another revision is not replaced", []byte("bad"), false, true, past, nf.Conflict},
		"ReplaceAbsent": {"a deleted key is not replaced", []byte("bad"), false, false, future, nf.Conflict},
		"Delete":        {"another revision is not deleted", nil, false, true, past, nf.Conflict},
		"DeleteAbsent":  {"a deleted key does not have a revision", nil, false, false, future, nf.Conflict},
		"Check":         {"a check sees another revision", nil, true, true, past, nf.Conflict},
		"CheckDeleted":  {"a check sees that the key is deleted", nil, true, false, future, nf.Conflict},
		"CheckAbsent":   {"a check sees that the key exists", nil, true, true, absent, nf.Exists},
	}
	for name, c := range cases {
		for place := range len(arrangeOps(t, kv, name+"/")) + 1 {
			prefix := fmt.Sprintf("%s/%d/", name, place)
			ops := arrangeOps(t, kv, prefix)
			bad := store.Op{Key: prefix + "bad", Value: c.value, Check: c.check, Expect: c.expect(0)}
			if c.there {
				bad.Expect = c.expect(mustPut(t, kv, bad.Key, "old"))
			}
			none := contentOf(t, kv, prefix)
			want := apply(none, ops[:place])
			_, err := store.Write(t.Context(), kv, slices.Insert(ops, place, bad))
			wantFailed(t, c.reason, err, place, c.kind)
			if got := contentOf(t, kv, prefix); !maps.Equal(got, none) && !maps.Equal(got, want) {
				t.Errorf("%s: after a failure of op %d (-want +got):\n%s", c.reason, place, cmp.Diff(want, got))
			}
		}
	}
}

func writeFails(t *testing.T, kv store.KV) {
	gone := nf.E(nf.Unreachable, "use", "the database", errors.New("it is unreachable"))
	for _, lost := range []bool{false, true} {
		for place := range len(arrangeOps(t, kv, "x/")) {
			prefix := fmt.Sprintf("%t/%d/", lost, place)
			ops := arrangeOps(t, kv, prefix)
			fail := func(_, key string) error {
				if key == ops[place].Key {
					return gone
				}
				return nil
			}
			failing, done := Failing{KV: kv, Fail: fail}, place
			if lost && ops[place].Key != prefix+"delete-absent" && !ops[place].Check { // a call without an effect has no response to lose
				failing, done = Failing{KV: kv, Lose: fail}, place+1
			}
			want := apply(contentOf(t, kv, prefix), ops[:done])
			_, err := store.Write(t.Context(), failing, ops)
			wantFailed(t, "the database is unreachable", err, place, nf.Unreachable)
			if !errors.Is(err, gone) {
				t.Errorf("the error %v does not wrap its cause", err)
			}
			if diff := cmp.Diff(want, contentOf(t, kv, prefix)); diff != "" {
				t.Errorf("a failure at op %d, response lost: %t (-want +got):\n%s", place, lost, diff)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ops := arrangeOps(t, kv, "ended/")
	want := contentOf(t, kv, "ended/")
	_, err := store.Write(ctx, kv, ops)
	wantFailed(t, "the context has ended", err, 0, nf.Unreachable)
	if diff := cmp.Diff(want, contentOf(t, kv, "ended/")); diff != "" {
		t.Errorf("a write without a context (-want +got):\n%s", diff)
	}
}

func writeInvalid(t *testing.T, kv store.KV) {
	cases := map[string]struct {
		reason string
		op     store.Op
		kind   nf.Kind
	}{
		"PutTwice":     {"a key may occur once", store.Op{Key: "put", Value: []byte("x"), Expect: store.Any}, nf.Invalid},
		"DeleteTwice":  {"a key may occur once, even if it is deleted", store.Op{Key: "put", Expect: store.Any}, nf.Invalid},
		"EmptyKey":     {"a key has at least one byte", store.Op{Value: []byte("x"), Expect: store.Any}, nf.Invalid},
		"LongKey":      {"a key has its limit", store.Op{Key: strings.Repeat("k", 513), Value: []byte("x"), Expect: store.Any}, nf.Invalid},
		"DeleteAbsent": {"an absent key cannot be deleted", store.Op{Key: "other", Expect: store.Absent}, nf.Invalid},
		"CheckAny":     {"a check compares a revision", store.Op{Key: "other", Expect: store.Any, Check: true}, nf.Invalid},
		"CheckValue":   {"a check writes nothing", store.Op{Key: "other", Value: []byte("x"), Check: true}, nf.Invalid},
		"TooLarge":     {"a value has its limit", store.Op{Key: "other", Value: make([]byte, store.MaxValue+1), Expect: store.Any}, nf.TooLarge},
	}
	ops := arrangeOps(t, kv, "")
	want := list(t, kv, "")
	for name, c := range cases {
		_, err := store.Write(t.Context(), kv, append(slices.Clip(ops), c.op))
		wantFailed(t, name+": "+c.reason, err, len(ops), c.kind)
		if diff := cmp.Diff(want, list(t, kv, "")); diff != "" {
			t.Errorf("%s: %s: the list was written in part (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

func wantFailed(t *testing.T, reason string, err error, index int, kind nf.Kind) {
	t.Helper()
	wantKind(t, reason, err, kind)
	if failed, ok := errors.AsType[*store.WriteError](err); !ok || failed.Index != index {
		t.Errorf("%s: the error is %#v, want one of op %d", reason, err, index)
	}
}

// writeRace has many writers whose first op creates the same key: the ops after
// it are those of one writer.
func writeRace(t *testing.T, kv store.KV) {
	const writers = 16
	var all errgroup.Group
	for writer := range writers {
		all.Go(func() error {
			name := strconv.Itoa(writer)
			_, err := store.Write(t.Context(), kv, []store.Op{
				{Key: "lock", Value: []byte(name), Expect: store.Absent},
				{Key: "part/" + name, Value: []byte(name), Expect: store.Any},
				{Key: "state", Value: []byte(name), Expect: store.Any},
			})
			if err != nil {
				wantFailed(t, "another writer has the lock", err, 0, nf.Exists)
			}
			return nil
		})
	}
	_ = all.Wait() // writers report by themselves
	owner := string(get(t, kv, "lock").Value)
	want := map[string]string{"lock": owner, "part/" + owner: owner, "state": owner}
	if diff := cmp.Diff(want, contentOf(t, kv, "")); diff != "" {
		t.Errorf("after a race (-want +got):\n%s", diff)
	}
}
