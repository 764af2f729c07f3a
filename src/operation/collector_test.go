package operation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// gcInterval is the pause between two searches for stale records.
const gcInterval = 10 * time.Minute

// thing is a subject of the operations in these tests.
type thing struct {
	ID, Operation, Claim, Last, State string
	Updated                           time.Time
}

func thingsIn(kv store.KV) operation.Locks[thing] {
	return operation.Locks[thing]{Subjects: store.NewTable[thing](kv, "things/", "thing"), Of: func(v *thing) operation.Lock {
		return operation.Lock{Subject: nf.Subject{Kind: kind, ID: v.ID}, Operation: &v.Operation, Claim: &v.Claim, Last: &v.Last, Updated: &v.Updated}
	}}
}

// thingSweep implements operation.Sweep.
type thingSweep struct {
	things operation.Locks[thing]
	find   func(found operation.StaleRecords) error
}

func (s thingSweep) Subjects(ctx context.Context, named operation.Named) error {
	return s.things.Scan(ctx, named, func(thing) {}, func(_ context.Context, v *thing) error { v.State = "given up"; return nil })
}

func (s thingSweep) Operation(nf.Operation) {}

func (s thingSweep) Find(_ context.Context, found operation.StaleRecords) error { return s.find(found) }

// sweeping returns the option of a kind whose subjects are things. Find adds the
// stale records that only the kind knows.
func sweeping(sole bool, find func(found operation.StaleRecords) error) option {
	return func(c *operation.Config, k *operation.Kind) {
		c.Sole, k.Retention = sole, 24*time.Hour
		k.Sweep = func() operation.Sweep { return thingSweep{thingsIn(c.KV), find} }
	}
}

func findsNothing(operation.StaleRecords) error { return nil }

// TestSoleProcess checks that the first search of the only process unlocks the subjects
// that a former one has left locked, but only if the whole store was searched: an
// incomplete search takes locks for stale that are needed. Other records are removed if
// a second search finds them.
func TestSoleProcess(t *testing.T) {
	cases := map[string]struct {
		reason   string
		sole     bool
		fails    error // of the search
		unlocked bool
		removed  int32 // by the second search
	}{
		"Complete":   {"one search is enough for locks", true, nil, true, 1},
		"Incomplete": {"an incomplete search proves nothing", true, errors.New("the store is away"), false, 0},
		"Shared":     {"another process may be accepting a request", false, nil, false, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				things := thingsIn(g.kv)
				if err := things.Subjects.Insert(t.Context(), "a", thing{ID: "a", Operation: "op-1", Claim: "token", Last: "op-1"}); err != nil {
					t.Fatal(err)
				}
				var removed atomic.Int32
				g.join(t, sweeping(tc.sole, func(found operation.StaleRecords) error {
					found["x"] = func(context.Context) error { removed.Add(1); return nil }
					return tc.fails
				})).run(t)
				pass(t, 2*time.Minute)
				got, err := things.Subjects.Get(t.Context(), "a")
				if err != nil || (got.Operation == "") != tc.unlocked || removed.Load() != 0 {
					t.Errorf("%s: after one search: %+v, %v, %d removed", tc.reason, got, err, removed.Load())
				}
				pass(t, gcInterval)
				if removed.Load() != tc.removed {
					t.Errorf("%s: two searches have removed %d records, want %d", tc.reason, removed.Load(), tc.removed)
				}
			})
		})
	}
}

// TestStartReadsLittle joins and runs a replica on a store with many operations. The
// records that it reads at first must not depend on their number.
func TestStartReadsLittle(t *testing.T) {
	for name, sole := range map[string]bool{"Sole": true, "Shared": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				operations := store.NewTable[nf.Operation](g.kv, "operations/", "operation")
				for i := range 300 {
					op := nf.Operation{ID: fmt.Sprintf("op-%03d", i), Subject: nf.Subject{Kind: kind, ID: "a"}, State: nf.Succeeded, Finished: time.Now(), Steps: make([]nf.Step, 1)}
					if err := operations.Insert(t.Context(), op.ID, op); err != nil {
						t.Fatal(err)
					}
				}
				counting := &countingKV{KV: g.kv, reads: map[string]int{}}
				g.join(t, func(c *operation.Config, _ *operation.Kind) { c.KV = counting }, sweeping(sole, findsNothing)).run(t)
				pass(t, time.Minute-time.Second)
				if diff := cmp.Diff(map[string]int{}, counting.counts()); diff != "" {
					t.Errorf("the records that are read within a minute (-want +got):\n%s", diff)
				}
				pass(t, 2*time.Second)
				if got := len(counting.counts()); got != 300 {
					t.Errorf("the first search reads %d records", got)
				}
			})
		})
	}
}

// TestAloneOnce checks that a process that joins again does not take the records
// of its own requests for those of a former process.
func TestAloneOnce(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		var calls atomic.Int32
		r := g.join(t, sweeping(true, func(operation.StaleRecords) error { calls.Add(1); return nil })).run(t)
		pass(t, time.Minute+time.Second)
		r.cut.set(true)
		pass(t, 2*lease)
		r.cut.set(false)
		pass(t, lease)
		if err := r.Healthy(t.Context()); err != nil || calls.Load() != 1 {
			t.Errorf("after the lease was lost and gained again: %v, and %d calls, want 1", err, calls.Load())
		}
	})
}

// TestAloneOnceAfterSearch has a process join again after a search that has run
// meanwhile. Nothing but the workers' own code may order the two: the race
// detector looks for the rest.
func TestAloneOnceAfterSearch(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		began, calls := time.Now(), 0
		away := func(string, string) error {
			if since := time.Since(began); since > gcInterval-2*lease && since < gcInterval+2*lease {
				return errAway
			}
			return nil
		}
		r := g.join(t, func(c *operation.Config, _ *operation.Kind) { c.KV = storetest.Failing{KV: g.kv, Fail: away} },
			sweeping(true, func(operation.StaleRecords) error { calls++; return nil })).run(t)
		pass(t, gcInterval+5*lease)
		if err := r.Healthy(t.Context()); err != nil || calls != 1 {
			t.Errorf("after the lease was lost and gained again: %v, and %d calls, want 1", err, calls)
		}
	})
}

// countingKV counts how often each record is read.
type countingKV struct {
	store.KV

	mu    sync.Mutex
	reads map[string]int
}

func (c *countingKV) count(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.HasPrefix(key, "claims/") && !strings.HasPrefix(key, "replicas/") { // the workers read these, too
		c.reads[key]++
	}
}

func (c *countingKV) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.reads)
}

func (c *countingKV) Get(ctx context.Context, key string) (store.Entry, error) {
	c.count(key)
	return c.KV.Get(ctx, key)
}

func (c *countingKV) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range c.KV.List(ctx, prefix, start) {
			c.count(e.Key)
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestOneRound checks that a process that starts reads every record once, and that it
// deletes expired operations, which it reads again with their details.
func TestOneRound(t *testing.T) {
	for name, sole := range map[string]bool{"Sole": true, "Shared": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				operations := store.NewTable[nf.Operation](g.kv, "operations/", "operation")
				old := time.Now().Add(-48 * time.Hour)
				for id, ended := range map[string]time.Time{"op-1": old, "op-2": old, "op-3": time.Now()} {
					op := nf.Operation{ID: id, Subject: nf.Subject{Kind: kind, ID: "a"}, State: nf.Succeeded, Finished: ended, Steps: make([]nf.Step, 1), Batches: 1}
					if err := operations.Insert(t.Context(), id, op); err != nil {
						t.Fatal(err)
					}
					for _, key := range []string{"changes/" + id + "/0000", "operationlogs/" + id + "/00000000", "operationsof/thing/a/" + id, "operationsin/thing/default//" + id, "idempotency/" + id} {
						if _, err := g.kv.Put(t.Context(), key, []byte(`{"operation":"`+id+`"}`), store.Absent); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := thingsIn(g.kv).Subjects.Insert(t.Context(), "a", thing{ID: "a", Last: "op-2"}); err != nil {
					t.Fatal(err)
				}
				want := map[string]int{}
				for _, key := range g.keys(t) {
					want[key] = 1
				}
				want["operations/op-1"], want["changes/op-1/0000"], want["operationlogs/op-1/00000000"] = 2, 2, 2
				counting := &countingKV{KV: g.kv, reads: map[string]int{}}
				g.join(t, func(c *operation.Config, _ *operation.Kind) { c.KV = counting }, sweeping(sole, findsNothing)).run(t)
				pass(t, 9*time.Minute)
				if diff := cmp.Diff(want, counting.counts()); diff != "" {
					t.Errorf("the reads of each record (-want +got):\n%s", diff)
				}
				left := slices.DeleteFunc(g.keys(t), func(key string) bool { return !strings.HasPrefix(key, "operations/") })
				if diff := cmp.Diff([]string{"operations/op-2", "operations/op-3"}, left); diff != "" {
					t.Errorf("the subject's last operation and young ones stay (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLateLock checks that a subject is unlocked if the operation that locks it
// has ended or does not exist.
func TestLateLock(t *testing.T) {
	cases := map[string]struct {
		reason string
		op     *nf.Operation // that locks the subject; nil: it does not exist
		want   thing
	}{
		"Running": {"the operation will unlock it", &nf.Operation{State: nf.Running}, thing{ID: "a", Operation: "op-1", Claim: "token", Last: "op-1"}},
		"Ended":   {"the lock came after the end", &nf.Operation{State: nf.OperationFailed, Finished: time.Now()}, thing{ID: "a", Last: "op-1", State: "given up"}},
		"Unknown": {"the request was withdrawn", nil, thing{ID: "a", Last: "op-1", State: "given up"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				things := thingsIn(g.kv)
				if err := things.Subjects.Insert(t.Context(), "a", thing{ID: "a", Operation: "op-1", Claim: "token", Last: "op-1"}); err != nil {
					t.Fatal(err)
				}
				if tc.op != nil {
					op := *tc.op
					op.ID, op.Subject = "op-1", nf.Subject{Kind: kind, ID: "a"}
					if err := store.NewTable[nf.Operation](g.kv, "operations/", "operation").Insert(t.Context(), op.ID, op); err != nil {
						t.Fatal(err)
					}
				}
				g.join(t, sweeping(false, findsNothing)).run(t)
				pass(t, 12*time.Minute)
				got, err := things.Subjects.Get(t.Context(), "a")
				if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(thing{}, "Updated")); diff != "" || err != nil {
					t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
				}
			})
		})
	}
}

// TestStaleRecords checks that the collector removes what dead and stalled
// processes have left of operations, and nothing else.
func TestStaleRecords(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		dying := g.join(t, func(c *operation.Config, _ *operation.Kind) {
			c.KV = storetest.Failing{KV: g.kv, Fail: func(method, key string) error {
				if method == "Delete" || strings.HasPrefix(key, "claims/") { // it dies before it writes the claim
					return errAway
				}
				return nil
			}}
		})
		key := nf.RequestKey{Client: "so", Key: "k", Digest: "d"}
		if err := dying.Reserve(t.Context(), operation.Job{ID: "gone", Subject: nf.Subject{Kind: kind}}, key); err == nil {
			t.Fatal("the process has not died")
		}
		op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: kind, ID: "s"}, State: nf.Succeeded, Finished: time.Now(), Steps: make([]nf.Step, 1), Batches: 1}
		if err := store.NewTable[nf.Operation](g.kv, "operations/", "operation").Insert(t.Context(), op.ID, op); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"gone", "op-1"} {
			for _, key := range []string{"operationsof/thing/s/", "operationsin/thing/default/east/"} {
				if _, err := g.kv.Put(t.Context(), key+id, []byte(`{"subject":{"kind":"thing","id":"s"},"operation":"`+id+`","scope":{"project":"default","region":"east"}}`), store.Absent); err != nil {
					t.Fatal(err)
				}
			}
		}
		stay := []string{"changes/op-1/0000", "operationlogs/op-1/00000000"}
		for _, key := range append([]string{"changes/gone/0000", "operationlogs/gone/00000000", "operationlogs/gone/00000001", "operationlogs/op-1/00000001"}, stay...) {
			if _, err := g.kv.Put(t.Context(), key, []byte("{}"), store.Absent); err != nil {
				t.Fatal(err)
			}
		}
		g.join(t).run(t)
		pass(t, 25*time.Minute)
		left := g.keys(t)
		want := []string{stay[0], stay[1], "operations/op-1", "operationsin/thing/default/east/op-1", "operationsof/thing/s/op-1"}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestExpiresBesideDamage checks that one record that cannot be read, and one operation
// that cannot be deleted, do not keep the other expired operations.
func TestExpiresBesideDamage(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		operations := store.NewTable[nf.Operation](g.kv, "operations/", "operation")
		for _, id := range []string{"op-1", "op-2"} {
			op := nf.Operation{ID: id, Subject: nf.Subject{Kind: kind, ID: "a"}, State: nf.Succeeded, Finished: time.Now().Add(-48 * time.Hour)}
			if err := operations.Insert(t.Context(), id, op); err != nil {
				t.Fatal(err)
			}
		}
		g.join(t, sweeping(false, func(operation.StaleRecords) error { return errors.New("it cannot be decrypted") }), func(_ *operation.Config, k *operation.Kind) {
			k.Expire = func(_ context.Context, op nf.Operation) error {
				if op.ID == "op-1" {
					return errors.New("it cannot be deleted")
				}
				return nil
			}
		}).run(t)
		pass(t, 2*time.Minute)
		var left []string
		for op, err := range operations.All(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, op.ID)
		}
		if diff := cmp.Diff([]string{"op-1"}, left); diff != "" {
			t.Errorf("the operations that are left (-want +got):\n%s", diff)
		}
	})
}
