package operation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/operation"
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
