// Package storetest tests a store.KV against its contract, and simulates
// failures.
//
// Run is the conformance suite: a driver's test only needs to call it. It
// checks the errors of the contract, with their kinds. It does not test the end
// of a database's process, which is for the driver's own tests.
//
// Failing fails the calls that a test picks. CrashingStore crashes inside a
// write that a test picks, like the caller's process, and does not recover.
// Relay is the network between a driver and its server. UntilHealthy waits for a
// restarted server. OnDisk keeps large content out of memory.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Run tests a driver against the contract of store.KV, with values of up to
// store.MaxStored bytes. Open returns an empty database and closes it by
// t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) store.KV) {
	RunLimit(t, store.MaxStored, open)
}

// RunLimit is Run for a KV on top of a driver, with values of up to limit
// bytes.
func RunLimit(t *testing.T, limit int, open func(t *testing.T) store.KV) {
	load := load{limit: limit, keys: many, big: 20}
	cases := sequential(load)
	maps.Copy(cases, racing())
	run(t, cases, open)
}

// RunSequential is Run without the concurrent cases, and with less data in the
// others. It is for a server that replaces another one in tests, and that is
// known to be neither atomic nor fast. It does not prove the contract: also
// call Run for the real server.
func RunSequential(t *testing.T, open func(t *testing.T) store.KV) {
	run(t, sequential(load{limit: store.MaxStored, keys: 300, big: 4}), open)
}

// many is more entries than drivers read in one page.
const many = 1300

// load is the amount of data in the cases.
type load struct {
	limit int // bytes in a value
	keys  int // in a long list
	big   int // values of that size in one list
}

// aCase tests one requirement of the contract.
type aCase struct {
	reason string
	run    func(*testing.T, store.KV)
}

func sequential(l load) map[string]aCase {
	cases := map[string]aCase{
		"Put":            {"a write succeeds exactly when the expected revision is the present one", put},
		"Delete":         {"a removal succeeds exactly when the expected revision is the present one", remove},
		"Revisions":      {"no two states of a key have the same revision, even over a removal", revisions},
		"ListPrefix":     {"a list has all keys with the prefix and no other keys", listPrefix},
		"ListStart":      {"a list has the keys from the start on", func(t *testing.T, kv store.KV) { listStart(t, kv, l.keys) }},
		"ListOrder":      {"a list of any length is in the order of bytes", func(t *testing.T, kv store.KV) { listOrder(t, kv, l.keys) }},
		"ListExpecting":  {"a list has all entries, however many its caller expects", listExpecting},
		"ListStops":      {"a loop may stop, and may call the database while it runs", listStops},
		"ListBig":        {"big values are listed whole", func(t *testing.T, kv store.KV) { listBig(t, kv, l) }},
		"Sizes":          {"values up to the limit are kept, and none above it", func(t *testing.T, kv store.KV) { sizes(t, kv, l.limit) }},
		"Keys":           {"keys are kept within their bounds", keys},
		"Context":        {"after the end of the context nothing is done", ended},
		"NoSharedMemory": {"the store does not share memory with the caller", noSharedMemory},
	}
	maps.Copy(cases, writes())
	return cases
}

func racing() map[string]aCase {
	return map[string]aCase{
		"CreateRace": {"of many callers that create a key, exactly one succeeds", createRace},
		"LostUpdate": {"of many callers that edit a key, none overwrites a value that it has not read", lostUpdate},
		"ListRace":   {"a list during writes contains each key exactly once", listRace},
		"WriteRace":  {"of many ordered writes that create a key, one is executed", writeRace},
	}
}

func run(t *testing.T, cases map[string]aCase, open func(t *testing.T) store.KV) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := open(t)
			defer func() {
				if t.Failed() {
					t.Log("because: " + c.reason)
				}
			}()
			c.run(t, kv)
		})
	}
}

func put(t *testing.T, kv store.KV) {
	cases := map[string]struct {
		reason   string
		there    bool
		expected func(now store.Revision) store.Revision
		kind     nf.Kind // of the error; Internal: none
	}{
		"AbsentOnNothing":   {"a new key is created", false, absent, nf.Internal},
		"AbsentOnKey":       {"a key is not created twice", true, absent, nf.Exists},
		"AnyOnNothing":      {"whatever is there may be nothing", false, anything, nf.Internal},
		"AnyOnKey":          {"whatever is there is replaced", true, anything, nf.Internal},
		"PresentOnKey":      {"the present revision may be replaced", true, present, nf.Internal},
		"PastOnKey":         {"another revision may not", true, past, nf.Conflict},
		"FutureOnKey":       {"a revision that is not yet there may not", true, future, nf.Conflict},
		"RevisionOnNothing": {"a deleted key does not have a revision", false, future, nf.Conflict},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			key, now := arrange(t, kv, c.there)
			rev, err := kv.Put(t.Context(), key, []byte("new"), c.expected(now))
			if c.kind != nf.Internal {
				wantKind(t, c.reason, err, c.kind)
				wantUntouched(t, kv, key, c.there, now)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			want := store.Entry{Key: key, Value: []byte("new"), Revision: rev}
			if diff := cmp.Diff(want, get(t, kv, key)); diff != "" {
				t.Errorf("%s: the value differs from the written one (-want +got):\n%s", c.reason, diff)
			}
			if rev == now || rev <= 0 {
				t.Errorf("%s: revision %d follows on %d", c.reason, rev, now)
			}
		})
	}
}

func remove(t *testing.T, kv store.KV) {
	cases := map[string]struct {
		reason   string
		there    bool
		expected func(now store.Revision) store.Revision
		kind     nf.Kind // of the error; Internal: none
	}{
		"Present":           {"the present revision may be removed", true, present, nf.Internal},
		"Any":               {"whatever is there may be removed", true, anything, nf.Internal},
		"Past":              {"another revision may not", true, past, nf.Conflict},
		"Absent":            {"what is there is not absent", true, absent, nf.Conflict},
		"AnyOfNothing":      {"what is not there cannot be removed", false, anything, nf.NotFound},
		"RevisionOfNothing": {"what is not there cannot be removed", false, future, nf.NotFound},
		"AbsentOfNothing":   {"what is not there cannot be removed", false, absent, nf.NotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			key, now := arrange(t, kv, c.there)
			err := kv.Delete(t.Context(), key, c.expected(now))
			if c.kind != nf.Internal {
				wantKind(t, c.reason, err, c.kind)
				wantUntouched(t, kv, key, c.there, now)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			_, err = kv.Get(t.Context(), key)
			wantKind(t, c.reason, err, nf.NotFound)
			wantKind(t, c.reason, kv.Delete(t.Context(), key, store.Any), nf.NotFound)
		})
	}
}

func absent(store.Revision) store.Revision      { return store.Absent }
func anything(store.Revision) store.Revision    { return store.Any }
func present(now store.Revision) store.Revision { return now }
func past(now store.Revision) store.Revision    { return now - 1 }
func future(now store.Revision) store.Revision  { return now + 1000 }

// arrange returns a key that was written twice, so that it has an earlier
// revision, or one that does not exist.
func arrange(t *testing.T, kv store.KV, there bool) (key string, now store.Revision) {
	t.Helper()
	key = t.Name()
	if there {
		mustPut(t, kv, key, "older")
		now = mustPut(t, kv, key, "old")
	}
	return key, now
}

func wantUntouched(t *testing.T, kv store.KV, key string, there bool, now store.Revision) {
	t.Helper()
	if !there {
		_, err := kv.Get(t.Context(), key)
		wantKind(t, "a call that failed changes nothing", err, nf.NotFound)
		return
	}
	want := store.Entry{Key: key, Value: []byte("old"), Revision: now}
	if diff := cmp.Diff(want, get(t, kv, key)); diff != "" {
		t.Errorf("a call that failed changed the entry (-want +got):\n%s", diff)
	}
}

func revisions(t *testing.T, kv store.KV) {
	const key = "key"
	seen := map[store.Revision]bool{}
	for range 3 {
		for range 2 {
			rev := mustPut(t, kv, key, "always the same")
			if seen[rev] {
				t.Errorf("revision %d was given twice", rev)
			}
			seen[rev] = true
		}
		if err := kv.Delete(t.Context(), key, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	now := mustPut(t, kv, key, "always the same")
	for old := range seen {
		_, err := kv.Put(t.Context(), key, nil, old)
		wantKind(t, "a key made again does not have an old revision", err, nf.Conflict)
		wantKind(t, "a key made again does not have an old revision", kv.Delete(t.Context(), key, old), nf.Conflict)
	}
	if got := get(t, kv, key).Revision; got != now {
		t.Errorf("the revision is %d after failed writes, want %d", got, now)
	}
}

func sizes(t *testing.T, kv store.KV, limit int) {
	big := bytes.Repeat([]byte("0123456789abcdef"), limit/16+1)[:limit]
	for name, value := range map[string][]byte{"empty": {}, "one": {0}, "limit": big} {
		mustPut(t, kv, name, string(value))
		if got := get(t, kv, name).Value; !bytes.Equal(got, value) {
			t.Errorf("%s: a value of %d bytes came back as another of %d", name, len(value), len(got))
		}
	}
	_, err := kv.Put(t.Context(), "above", append(big, 'x'), store.Any)
	wantKind(t, "one byte above the limit", err, nf.TooLarge)
	_, err = kv.Get(t.Context(), "above")
	wantKind(t, "a value that is too large is not stored", err, nf.NotFound)
}

func keys(t *testing.T, kv store.KV) {
	longest := strings.Repeat("k", 512)
	for _, key := range []string{longest, " ", "~", "//", "%2F"} {
		mustPut(t, kv, key, "v")
		if got := get(t, kv, key).Key; got != key {
			t.Errorf("key %q came back as %q", key, got)
		}
	}
	before := len(list(t, kv, ""))
	for name, key := range map[string]string{"empty": "", "long": longest + "k", "control": "a\nb", "zero": "a\x00", "delete": "a\x7f", "unicode": "é"} {
		_, err := kv.Get(t.Context(), key)
		wantKind(t, "Get of key "+name, err, nf.Invalid)
		_, err = kv.Put(t.Context(), key, nil, store.Any)
		wantKind(t, "Put of key "+name, err, nf.Invalid)
		wantKind(t, "Delete of key "+name, kv.Delete(t.Context(), key, store.Any), nf.Invalid)
		if key != "" {
			wantKind(t, "List of prefix "+name, listError(t.Context(), kv, key, ""), nf.Invalid)
			wantKind(t, "List from "+name, listError(t.Context(), kv, "", key), nf.Invalid)
		}
	}
	if after := len(list(t, kv, "")); after != before {
		t.Errorf("%d keys are there after bad calls, %d were before", after, before)
	}
}

func ended(t *testing.T, kv store.KV) {
	rev := mustPut(t, kv, "key", "old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := kv.Get(ctx, "key")
	_, createErr := kv.Put(ctx, "other", nil, store.Absent)
	_, putErr := kv.Put(ctx, "key", []byte("new"), rev)
	errs := map[string]error{
		"Get": getErr, "Put Absent": createErr, "Put": putErr,
		"Delete": kv.Delete(ctx, "key", rev), "List": listError(ctx, kv, "", ""), "List of nothing": listError(ctx, kv, "none", ""),
	}
	for name, err := range errs {
		wantKind(t, name, err, nf.Unreachable)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v does not say that the context was cancelled", name, err)
		}
	}
	want := []store.Entry{{Key: "key", Value: []byte("old"), Revision: rev}}
	if diff := cmp.Diff(want, list(t, kv, "")); diff != "" {
		t.Errorf("calls without a context changed the database (-want +got):\n%s", diff)
	}
}

func noSharedMemory(t *testing.T, kv store.KV) {
	value := []byte("value")
	if _, err := kv.Put(t.Context(), "key", value, store.Absent); err != nil {
		t.Fatal(err)
	}
	clear(value)
	wantValue := func(after string) []byte {
		e := get(t, kv, "key")
		if string(e.Value) != "value" {
			t.Errorf("the value is %q after the caller wrote into %s", e.Value, after)
		}
		return e.Value
	}
	clear(wantValue("the value that it stored"))
	clear(wantValue("the value that it read"))
	for _, e := range list(t, kv, "") {
		clear(e.Value)
	}
	wantValue("the values that it listed")
}

func wantKind(t *testing.T, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}

func mustPut(t *testing.T, kv store.KV, key, value string) store.Revision {
	t.Helper()
	rev, err := kv.Put(t.Context(), key, []byte(value), store.Any)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func get(t *testing.T, kv store.KV, key string) store.Entry {
	t.Helper()
	e, err := kv.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func list(t *testing.T, kv store.KV, prefix string) []store.Entry {
	t.Helper()
	var out []store.Entry
	for e, err := range kv.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatalf("cannot list %q: %v", prefix, err)
		}
		out = append(out, e)
	}
	return out
}

// listError returns the error that ends a list, and checks that it does.
func listError(ctx context.Context, kv store.KV, prefix, start string) (found error) {
	for _, err := range kv.List(ctx, prefix, start) {
		if found != nil {
			return fmt.Errorf("the list of %q continues after %w", prefix, found)
		}
		found = err
	}
	return found
}
