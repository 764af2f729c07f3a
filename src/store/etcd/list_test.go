package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestListIsSnapshot writes during a list of many pages. The list has what was there
// when it began.
func TestListIsSnapshot(t *testing.T) {
	const keys = firstPage * 8
	cases := map[string]Config{
		"Inside":  {Dir: t.TempDir()},
		"Outside": {Endpoints: startAlone(t, func(*embed.Config) {})},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, config)
			fillKeys(t, s, keys)
			seen := 0
			for e, err := range s.List(t.Context(), "key/", "") {
				if err != nil {
					t.Fatal(err)
				}
				if want := keyOf(seen); e.Key != want || string(e.Value) != "old" {
					t.Fatalf("entry %d is %s=%s, want %s=old", seen, e.Key, e.Value, want)
				}
				if seen%(firstPage/2) == 0 { // several times in a page
					for _, key := range []string{keyOf(keys - 1), keyOf(keys - 1 - seen/2)} {
						if _, err := s.Put(t.Context(), key, []byte("new"), store.Any); err != nil {
							t.Fatal(err)
						}
					}
				}
				seen++
			}
			if seen != keys {
				t.Errorf("%d entries are listed, want %d", seen, keys)
			}
			if e, err := s.Get(t.Context(), keyOf(keys-1)); err != nil || string(e.Value) != "new" {
				t.Errorf("the last entry is %s, %v, want the new value", e.Value, err)
			}
		})
	}
}

// TestPartsNeedNoHistory rewrites all entries while the history is removed again and
// again. A single list would need the history of the whole loop.
func TestPartsNeedNoHistory(t *testing.T) {
	const keys, part = 1000, 100
	s := open(t, Config{Endpoints: startAlone(t, func(*embed.Config) {})})
	fillKeys(t, s, keys)
	rewritten := 0
	for e, err := range store.Parts(t.Context(), s, part) {
		must(t, err)
		rev, err := s.Put(t.Context(), e.Key, []byte("new"), e.Revision)
		must(t, err)
		if rewritten++; rewritten%part == 0 {
			_, err := s.client.Compact(t.Context(), int64(rev))
			must(t, err)
		}
	}
	if rewritten != keys {
		t.Errorf("%d of %d entries were rewritten", rewritten, keys)
	}
}

// TestFirstLargePage lists large entries after many small ones.
func TestFirstLargePage(t *testing.T) {
	const most = 8 << 20
	s := open(t, Config{Dir: t.TempDir()})
	fillKeys(t, s, 600)
	large := make([]byte, 64<<10)
	for i := range 2 * maxPage {
		_, err := s.Put(t.Context(), fmt.Sprintf("large/%03d", i), large, store.Absent)
		must(t, err)
	}
	p := page{from: "\x00", end: "\x00", limit: firstPage}
	for more := true; more; {
		var entries []store.Entry
		var err error
		entries, more, err = s.page(t.Context(), &p)
		must(t, err)
		size := 0
		for _, e := range entries {
			size += len(e.Value)
		}
		if size > most {
			t.Errorf("a page has %d entries of together %d bytes, want at most %d bytes", len(entries), size, most)
		}
	}
}

// TestListOfBlockedServer lists while a write holds a lock of the embedded server, as it
// does after a failure of the disk. The list ends with its context.
func TestListOfBlockedServer(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	fillKeys(t, s, 1)
	reading := s.server.etcd.Server.Backend().ReadTx()
	reading.RLock() // the write waits for it, and later reads for the write
	var blocked errgroup.Group
	blocked.Go(func() error {
		_, err := s.Put(context.WithoutCancel(t.Context()), keyOf(1), nil, store.Any)
		return err
	})
	list := func() (last error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for _, last = range s.List(ctx, "key/", "") {
		}
		return last
	}
	ended := make(chan error, 1)
	go func() {
		err := list()
		for err == nil { // the write is not waiting yet
			err = list()
		}
		ended <- errors.Join(err, list()) // from its start on, the write waits
	}()
	select {
	case err := <-ended:
		if nf.KindOf(err) != nf.Unreachable {
			t.Errorf("the list returns %v (%s), want unreachable", err, nf.KindOf(err))
		}
	case <-time.After(hang):
		t.Error("the list does not end with its context")
	}
	reading.RUnlock()
	must(t, blocked.Wait())
}

// TestUseAfterClose uses a store that is closed.
func TestUseAfterClose(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	must(t, err)
	fillKeys(t, s, 1)
	must(t, s.Close())
	if _, err := s.Get(t.Context(), keyOf(0)); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a read returns %v (%s), want unreachable", err, nf.KindOf(err))
	}
	if _, err := s.Put(t.Context(), keyOf(0), nil, store.Any); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a write returns %v (%s), want unreachable", err, nf.KindOf(err))
	}
}

// BenchmarkFirstPage reads the first page of lists of several lengths.
func BenchmarkFirstPage(b *testing.B) {
	for _, keys := range []int{100, 50_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			s, err := Open(b.Context(), Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { must(b, s.Close()) }()
			fillKeys(b, s, keys)
			for b.Loop() {
				for _, err := range s.List(store.Expecting(b.Context(), 1), "key/", "") {
					if err != nil {
						b.Fatal(err)
					}
					break
				}
			}
		})
	}
}

func keyOf(i int) string { return fmt.Sprintf("key/%06d", i) }

func fillKeys(t testing.TB, s *Store, keys int) {
	t.Helper()
	ops := make([]store.Op, keys)
	for i := range ops {
		ops[i] = store.Op{Key: keyOf(i), Value: []byte("old"), Expect: store.Absent}
	}
	if _, err := s.Write(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
}
