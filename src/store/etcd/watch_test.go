package etcd

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// TestWatch writes after the call of Watch, before and while the changes are read.
func TestWatch(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) Config{
		"Inside":  func(t *testing.T) Config { return Config{Dir: t.TempDir()} },
		"Outside": func(t *testing.T) Config { return Config{Endpoints: startAlone(t, func(*embed.Config) {})} },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, config(t))
			put := func(key, value string) store.Revision {
				t.Helper()
				revision, err := s.Put(t.Context(), key, []byte(value), store.Any)
				if err != nil {
					t.Fatal(err)
				}
				return revision
			}
			put("a/1", "before")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			changes, err := s.Watch(ctx, "a/")
			if err != nil {
				t.Fatal(err)
			}
			put("b/1", "elsewhere")
			first := put("a/2", "new")
			together, err := s.Write(t.Context(), []store.Op{{Key: "a/1", Value: []byte("changed"), Expect: store.Any}, {Key: "a/2", Expect: store.Any}})
			if err != nil {
				t.Fatal(err)
			}
			want := []store.Change{
				{Entry: store.Entry{Key: "a/2", Value: []byte("new"), Revision: first}},
				{Entry: store.Entry{Key: "a/1", Value: []byte("changed"), Revision: together[0]}},
				{Entry: store.Entry{Key: "a/2", Revision: together[0]}, Deleted: true},
			}
			var got []store.Change
			for c, err := range changes {
				if err != nil {
					if nf.KindOf(err) != nf.Unreachable || !errors.Is(err, context.Canceled) {
						t.Errorf("the watch ends with %v", err)
					}
					break
				}
				if got = append(got, c); len(got) == 3 {
					want = append(want, store.Change{Entry: store.Entry{Key: "a/3", Value: []byte{}, Revision: put("a/3", "")}})
				}
				if len(got) == 4 {
					cancel()
				}
			}
			if diff := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
				t.Errorf("the changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchOfRemovedHistory reads changes that are no longer kept.
func TestWatchOfRemovedHistory(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	changes, err := s.Watch(t.Context(), "a/")
	if err != nil {
		t.Fatal(err)
	}
	var last store.Revision
	for range 3 {
		if last, err = s.Put(t.Context(), "a/1", nil, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.client.Compact(t.Context(), int64(last)); err != nil {
		t.Fatal(err)
	}
	for _, err := range changes {
		if nf.KindOf(err) != nf.Unreachable || nf.ReasonOf(err) != nf.ReasonCompacted {
			t.Errorf("the watch returns %v", err)
		}
		return
	}
	t.Error("the watch has ended without an error")
}

// TestWatchAfterEnd has a context that has ended.
func TestWatchAfterEnd(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Watch(ctx, "a/"); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("the watch returns %v", err)
	}
}

// TestWatchOfFailedServer has an embedded server that fails during the watch. Its
// goroutines then block, and report nothing.
func TestWatchOfFailedServer(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := s.Watch(t.Context(), "a/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "a/1", nil, store.Any); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is broken")
	seen := 0
	for _, err := range changes {
		switch {
		case err == nil:
			seen++
			s.server.fail(broken)
		case nf.KindOf(err) != nf.Unreachable || !errors.Is(err, broken):
			t.Errorf("the watch ends with %v", err)
		}
	}
	if seen != 1 {
		t.Errorf("the watch has reported %d changes, want 1", seen)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.server.etcd.Close() // it has not failed really
}
