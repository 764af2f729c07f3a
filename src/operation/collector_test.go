package operation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestCollectorAll checks that stale records of a former process are removed
// only if the whole store was scanned: an incomplete scan takes records for
// stale that are needed.
func TestCollectorAll(t *testing.T) {
	cases := map[string]struct {
		reason string
		fails  error // of the scan
		want   []string
	}{
		"Complete":   {"what one scan finds is removed", nil, []string{"x"}},
		"Incomplete": {"an incomplete scan proves nothing", errors.New("the store is away"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				var removed []string
				c := operation.Collector{Ledger: g.join(t).Ledger(), Kind: kind, Find: func(_ context.Context, found operation.StaleRecords) error {
					found["x"] = func(context.Context) error { removed = append(removed, "x"); return nil }
					return tc.fails
				}}
				if err := c.All(t.Context()); !errors.Is(err, tc.fails) {
					t.Errorf("%s: the error is %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, removed); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestAloneOnce checks that a process that joins again does not take the records
// of its own requests for those of a former process.
func TestAloneOnce(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		calls := 0
		r := g.join(t, func(c *operation.Config, k *operation.Kind) {
			c.Sole = true
			k.Alone = func(context.Context) error { calls++; return nil }
		}).run(t)
		r.cut.set(true)
		pass(t, 2*lease)
		r.cut.set(false)
		pass(t, lease)
		if err := r.Healthy(t.Context()); err != nil || calls != 1 {
			t.Errorf("after the lease was lost and gained again: %v, and %d calls, want 1", err, calls)
		}
	})
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
		stay := []string{"changes/op-1/0000", "operationlogs/op-1/00000000"}
		for _, key := range append([]string{"changes/gone/0000", "operationlogs/gone/00000000", "operationlogs/gone/00000001", "operationlogs/op-1/00000001"}, stay...) {
			if _, err := g.kv.Put(t.Context(), key, []byte("{}"), store.Absent); err != nil {
				t.Fatal(err)
			}
		}
		ledger := g.join(t).run(t).Ledger()
		c := operation.Collector{Ledger: ledger, Kind: kind, Retention: time.Hour, Find: func(ctx context.Context, found operation.StaleRecords) error {
			return ledger.Scan(ctx, kind, found, func(nf.Operation) {})
		}}
		ctx, stop := context.WithTimeout(t.Context(), 25*time.Minute)
		defer stop()
		c.Run(ctx)
		var left []string
		for e, err := range g.kv.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(e.Key, "replicas/") {
				left = append(left, e.Key)
			}
		}
		want := []string{stay[0], stay[1], "operations/op-1"}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
