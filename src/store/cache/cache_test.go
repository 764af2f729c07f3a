package cache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/cache"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return cache.New(memory.New()) })
}

var errAway = nf.E(nf.Unreachable, "use", "the store", nil)

// TestReads counts the reads that reach the store below.
func TestReads(t *testing.T) {
	put := func(value string, expected store.Revision) func(context.Context, store.KV) {
		return func(ctx context.Context, kv store.KV) { _, _ = kv.Put(ctx, "a", []byte(value), expected) }
	}
	write := func(op store.Op) func(context.Context, store.KV) {
		return func(ctx context.Context, kv store.KV) { _, _ = store.Write(ctx, kv, []store.Op{op}) }
	}
	cases := map[string]struct {
		reason string
		do     func(context.Context, store.KV)
		want   string // the value, or "" if there is none
		reads  int32  // of three reads
	}{
		"Nothing":     {"what was read is kept, also that there is nothing", func(context.Context, store.KV) {}, "", 1},
		"Put":         {"what was written is kept", put("x", store.Absent), "x", 0},
		"PutConflict": {"a write that has failed tells nothing", put("x", 7), "", 1},
		"Delete": {"what was deleted is kept as absent", func(ctx context.Context, kv store.KV) {
			put("x", store.Any)(ctx, kv)
			_ = kv.Delete(ctx, "a", store.Any)
		}, "", 0},
		"Write":         {"what was written together is kept", write(store.Op{Key: "a", Value: []byte("x")}), "x", 0},
		"WriteConflict": {"a list that has failed tells nothing", write(store.Op{Key: "a", Value: []byte("x"), Expect: 7}), "", 1},
		"Check":         {"a check tells nothing", write(store.Op{Key: "a", Check: true}), "", 1},
		"Large": {"a large value is not kept", func(ctx context.Context, kv store.KV) {
			put(string(make([]byte, 9<<10)), store.Any)(ctx, kv)
		}, string(make([]byte, 9<<10)), 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var reads atomic.Int32
			kv := cache.New(storetest.Failing{KV: memory.New(), Fail: func(method, _ string) error {
				if method == "Get" && reads.Add(1) < 0 {
					return errAway
				}
				return nil
			}})
			c.do(t.Context(), kv)
			reads.Store(0)
			for range 3 {
				e, err := kv.Get(t.Context(), "a")
				if nf.IgnoreNotFound(err) != nil || string(e.Value) != c.want || (err != nil) != (c.want == "") {
					t.Errorf("%s: the read returns %d bytes and the error %v", c.reason, len(e.Value), err)
				}
			}
			if reads.Load() != c.reads {
				t.Errorf("%s: %d of 3 reads reach the store, want %d", c.reason, reads.Load(), c.reads)
			}
		})
	}
}

// TestLateWrite lets the store apply a write after it has reported that it is
// unreachable, and after the key was read again.
func TestLateWrite(t *testing.T) {
	below := memory.New()
	kv := cache.New(storetest.Failing{KV: below, Fail: func(method, _ string) error {
		if method == "Put" {
			return errAway
		}
		return nil
	}})
	if _, err := kv.Put(t.Context(), "a", []byte("late"), store.Absent); nf.KindOf(err) != nf.Unreachable {
		t.Fatalf("the write returns %v", err)
	}
	if _, err := kv.Get(t.Context(), "a"); nf.KindOf(err) != nf.NotFound {
		t.Fatalf("the read before the write is applied returns %v", err)
	}
	if _, err := below.Put(t.Context(), "a", []byte("late"), store.Absent); err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "a"); err != nil || string(e.Value) != "late" {
		t.Errorf("the read after the write was applied returns %q, %v", e.Value, err)
	}
}

// TestFailedWrites has very many writes fail, and then writes and reads 100 keys.
func TestFailedWrites(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		key    string // of the failed writes, before their number
		least  int64  // number of the 100 reads that reach the store
		most   int64
	}{
		"Full":    {"nothing was written, so that nothing is uncertain", &nf.Error{Kind: nf.Unreachable, Op: "write", Subject: "a key", Reason: nf.ReasonNoSpace}, "a/", 0, 0},
		"Unknown": {"their results are unknown, but few other keys are taken for theirs", errAway, "audit/", 0, 10},
		"Same":    {"a write with an unknown result may still change the key", errAway, "a/", 100, 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			var reads atomic.Int64
			kv := cache.New(storetest.Failing{KV: memory.New(), Fail: func(method, _ string) error {
				if method == "Get" {
					reads.Add(1)
				}
				if failing.Load() {
					return tc.err
				}
				return nil
			}})
			failing.Store(true)
			for i := range 20_000 {
				if _, err := kv.Put(t.Context(), fmt.Sprint(tc.key, i), []byte("v"), store.Absent); nf.KindOf(err) != nf.Unreachable {
					t.Fatal(err)
				}
			}
			failing.Store(false)
			for i := range 100 {
				key := fmt.Sprint("a/", i)
				if _, err := kv.Put(t.Context(), key, []byte("v"), store.Absent); err != nil {
					t.Fatal(err)
				}
				if e, err := kv.Get(t.Context(), key); err != nil || string(e.Value) != "v" {
					t.Errorf("%s: the read returns %q, %v", tc.reason, e.Value, err)
				}
			}
			if n := reads.Load(); n < tc.least || n > tc.most {
				t.Errorf("%s: %d of 100 reads reach the store, want %d to %d", tc.reason, n, tc.least, tc.most)
			}
		})
	}
}

// TestReadDuringWrite has reads that began before a write, and return after it, with
// the former value.
func TestReadDuringWrite(t *testing.T) {
	below := memory.New()
	if _, err := below.Put(t.Context(), "a", []byte("old"), store.Absent); err != nil {
		t.Fatal(err)
	}
	has, proceed := make(chan struct{}), make(chan struct{})
	var stalled atomic.Bool
	kv := cache.New(storetest.Failing{KV: below, Lose: func(method, _ string) error {
		if method == "Get" && stalled.CompareAndSwap(false, true) {
			close(has)
			<-proceed
		}
		return nil
	}})
	var reader errgroup.Group
	reader.Go(func() error {
		e, err := kv.Get(t.Context(), "a")
		if err == nil && string(e.Value) != "old" {
			err = fmt.Errorf("the first read returns %q", e.Value)
		}
		return err
	})
	<-has
	if _, err := kv.Put(t.Context(), "a", []byte("new"), store.Any); err != nil {
		t.Fatal(err)
	}
	close(proceed)
	if err := reader.Wait(); err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "a"); err != nil || string(e.Value) != "new" {
		t.Errorf("a read after the write returns %q, %v", e.Value, err)
	}
}

// TestNoMemoryIsShared changes what was passed in and returned.
func TestNoMemoryIsShared(t *testing.T) {
	kv := cache.New(memory.New())
	value := []byte("x")
	if _, err := kv.Put(t.Context(), "a", value, store.Any); err != nil {
		t.Fatal(err)
	}
	value[0] = 'y'
	e, err := kv.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	e.Value[0] = 'z'
	if e, err = kv.Get(t.Context(), "a"); err != nil || string(e.Value) != "x" {
		t.Errorf("the value is %q, %v", e.Value, err)
	}
}
