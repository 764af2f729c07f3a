package storetest_test

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestCrashingStoreWorks runs the whole contract on a store that does not crash.
func TestCrashingStoreWorks(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return storetest.NewCrashingStore(memory.New()) })
}

// TestCrashingStoreCrashes lets a process that makes a, b and c, and removes b, die at
// each of its writes.
func TestCrashingStoreCrashes(t *testing.T) {
	process := func(t *testing.T, kv store.KV) (writes int, err error) {
		for _, key := range []string{"a", "b", "c"} {
			if _, err := kv.Put(t.Context(), key, nil, store.Absent); err != nil {
				return writes, err
			}
			writes++
			if _, err := kv.Get(t.Context(), key); err != nil {
				return writes, err
			}
		}
		if err := kv.Delete(t.Context(), "b", store.Any); err != nil {
			return writes, err
		}
		return writes + 1, nil
	}
	cases := map[string]struct {
		reason string
		at     int
		done   bool
		left   []string
		calls  int
		wrote  int // as far as the process knows
	}{
		"Never":      {"there is no such write", 5, true, []string{"a", "c"}, 7, 4},
		"First":      {"nothing was written", 1, false, nil, 1, 0},
		"FirstDone":  {"it was written, and nobody was told", 1, true, []string{"a"}, 1, 0},
		"Third":      {"two were written", 3, false, []string{"a", "b"}, 5, 2},
		"ThirdDone":  {"three were written, and two were told", 3, true, []string{"a", "b", "c"}, 5, 2},
		"Delete":     {"a removal is a write", 4, false, []string{"a", "b", "c"}, 7, 3},
		"DeleteDone": {"a removal is a write", 4, true, []string{"a", "c"}, 7, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := memory.New()
			m := storetest.NewCrashingStore(kv)
			if _, err := m.Put(t.Context(), "before", nil, store.Any); err != nil {
				t.Fatal(err)
			}
			if err := m.Delete(t.Context(), "before", store.Any); err != nil {
				t.Fatal(err)
			}
			m.CrashAt(c.at, c.done)
			wrote, err := process(t, m)
			if dies := c.wrote < 4; dies != (nf.KindOf(err) == nf.Unreachable) {
				t.Errorf("%s: the process ends with %v", c.reason, err)
			}
			if wrote != c.wrote {
				t.Errorf("%s: the process knows of %d writes, want %d", c.reason, wrote, c.wrote)
			}
			if diff := cmp.Diff(c.left, keysOf(t, kv)); diff != "" {
				t.Errorf("%s: what is left (-want +got):\n%s", c.reason, diff)
			}
			if got := m.Calls() - 2; got != c.calls {
				t.Errorf("%s: %d calls are counted, want %d", c.reason, got, c.calls)
			}
			if got, want := m.Writes()-2, min(c.at, 4); got != want {
				t.Errorf("%s: %d writes are counted, want %d", c.reason, got, want)
			}
		})
	}
}

// TestCrashingStoreStaysCrashed sees to it that nothing works after the last write, and
// that nothing of it is counted or reaches the database.
func TestCrashingStoreStaysCrashed(t *testing.T) {
	kv, ctx := memory.New(), t.Context()
	for _, key := range []string{"old", "older"} {
		if _, err := kv.Put(ctx, key, nil, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	m := storetest.NewCrashingStore(kv)
	m.CrashAt(1, true)
	var cut error
	for e, err := range m.List(ctx, "", "") {
		switch {
		case e.Key == "old":
			_, err := m.Put(ctx, "zz", nil, store.Absent)
			wantUnreachable(t, "the last write", err)
		case err == nil:
			t.Errorf("%q is listed after the death", e.Key)
		default:
			cut = err
		}
	}
	wantUnreachable(t, "a list that had begun", cut)
	select {
	case <-m.Crashed():
	default:
		t.Error("nothing is on its way, and it is not dead")
	}
	m.CrashAt(1, false) // one dies once
	for range 2 {
		_, err := m.Get(ctx, "old")
		wantUnreachable(t, "Get", err)
		_, err = m.Put(ctx, "new", nil, store.Any)
		wantUnreachable(t, "Put", err)
		wantUnreachable(t, "Delete", m.Delete(ctx, "old", store.Any))
		for _, err = range m.List(ctx, "", "") {
			wantUnreachable(t, "List", err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if calls, writes := m.Calls(), m.Writes(); calls != 2 || writes != 1 {
		t.Errorf("%d calls and %d writes are counted, want 2 and 1", calls, writes)
	}
	if diff := cmp.Diff([]string{"old", "older", "zz"}, keysOf(t, kv)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestCrashingStoreWaits has a write on its way while another is the last: the one who
// comes after must not meet it.
func TestCrashingStoreWaits(t *testing.T) {
	kv := memory.New()
	begun, goOn := make(chan struct{}), make(chan struct{})
	m := storetest.NewCrashingStore(storetest.Failing{KV: kv, Fail: func(_, key string) error {
		if key == "slow" {
			close(begun)
			<-goOn
		}
		return nil
	}})
	m.CrashAt(2, false)
	var all errgroup.Group
	all.Go(func() error {
		_, err := m.Put(t.Context(), "slow", nil, store.Absent)
		return err
	})
	<-begun
	_, err := m.Put(t.Context(), "last", nil, store.Absent)
	wantUnreachable(t, "the last write", err)
	select {
	case <-m.Crashed():
		t.Error("it is dead while a write is on its way")
	default:
	}
	close(goOn)
	if err := all.Wait(); err != nil {
		t.Errorf("a write that had begun fails: %v", err)
	}
	<-m.Crashed()
	if diff := cmp.Diff([]string{"slow"}, keysOf(t, kv)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestCrashingStoreRace has many write at once: one write is the last.
func TestCrashingStoreRace(t *testing.T) {
	const writers, at = 20, 7
	kv := memory.New()
	m := storetest.NewCrashingStore(kv)
	m.CrashAt(at, true)
	var told atomic.Int32
	var all errgroup.Group
	for i := range writers {
		all.Go(func() error {
			_, err := m.Put(t.Context(), strconv.Itoa(i), nil, store.Absent)
			if err == nil {
				told.Add(1)
				return nil
			}
			if nf.KindOf(err) != nf.Unreachable {
				return err
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	<-m.Crashed()
	if got := len(keysOf(t, kv)); got != at || told.Load() != at-1 {
		t.Errorf("%d of %d writes were carried out and %d were told, want %d and %d", got, writers, told.Load(), at, at-1)
	}
	if m.Writes() != at || m.Calls() != at {
		t.Errorf("%d writes and %d calls are counted, want %d", m.Writes(), m.Calls(), at)
	}
}

func wantUnreachable(t *testing.T, what string, err error) {
	t.Helper()
	if nf.KindOf(err) != nf.Unreachable || errors.Unwrap(err) == nil {
		t.Errorf("%s: the error is %v, want one that says the process has died", what, err)
	}
}

func keysOf(t *testing.T, kv store.KV) (keys []string) {
	t.Helper()
	for e, err := range kv.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

// TestCrashingStoreIgnores: writes of ignored keys do not lead to the crash, and fail after
// it as all calls do.
func TestCrashingStoreIgnores(t *testing.T) {
	put := func(kv store.KV, key string) error {
		_, err := kv.Put(t.Context(), key, []byte("x"), store.Any)
		return err
	}
	c := storetest.NewCrashingStore(memory.New())
	c.Ignore("leases/")
	c.CrashAt(2, false)
	for _, key := range []string{"leases/a", "a", "leases/a"} {
		if err := put(c, key); err != nil || c.HasCrashed() {
			t.Fatalf("the write of %s failed before the crash: %v", key, err)
		}
	}
	if err := put(c, "b"); nf.KindOf(err) != nf.Unreachable || !c.HasCrashed() || c.Writes() != 2 {
		t.Errorf("the second write does not crash: %v, %d writes", err, c.Writes())
	}
	if err := put(c, "leases/a"); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("an ignored key is written after the crash: %v", err)
	}
	chosen := storetest.NewCrashingStore(memory.New())
	chosen.Crash()
	chosen.Crash()
	<-chosen.Crashed()
	if err := put(chosen, "a"); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a write after the crash: %v", err)
	}
}
