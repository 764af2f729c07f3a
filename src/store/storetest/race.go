package storetest

import (
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func createRace(t *testing.T, kv store.KV) {
	const rounds, racers = 10, 24
	for round := range rounds {
		key := "race/" + strconv.Itoa(round)
		var winners atomic.Int32
		var winner atomic.Value
		var all errgroup.Group
		for racer := range racers {
			all.Go(func() error {
				name := strconv.Itoa(racer)
				_, err := kv.Put(t.Context(), key, []byte(name), store.Absent)
				if err == nil {
					winners.Add(1)
					winner.Store(name)
				} else {
					wantKind(t, "who comes too late", err, nf.Exists)
				}
				return nil
			})
		}
		_ = all.Wait() // racers report by themselves
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d of %d created the key, want 1", n, racers)
		}
		if got := string(get(t, kv, key).Value); got != winner.Load() {
			t.Errorf("the value is that of %s, but %s created the key", got, winner.Load())
		}
	}
}

func lostUpdate(t *testing.T, kv store.KV) {
	const writers, edits = 8, 15
	mustPut(t, kv, "counter", "0")
	var all errgroup.Group
	for range writers {
		all.Go(func() error {
			for range edits {
				if err := increment(t, kv, "counter"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := string(get(t, kv, "counter").Value); got != strconv.Itoa(writers*edits) {
		t.Errorf("the counter is %s after %d increments", got, writers*edits)
	}
}

func increment(t *testing.T, kv store.KV, key string) error {
	for {
		e, err := kv.Get(t.Context(), key)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(e.Value))
		if err != nil {
			return err
		}
		_, err = kv.Put(t.Context(), key, []byte(strconv.Itoa(n+1)), e.Revision)
		if err == nil || nf.KindOf(err) != nf.Conflict {
			return err
		}
	}
}
