package operation_test

import (
	"errors"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestJoinSlowStore joins while the store does not respond at first, or rejects writes.
func TestJoinSlowStore(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		full := &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "the store", Reason: nf.ReasonNoSpace, Err: errors.New("it is full")}
		cases := []struct {
			reason   string
			err      error
			failures int
			joins    bool
			attempts int
		}{
			{"a slow store responds in the end", errAway, 4, true, 5},
			{"a store that is away is an error", errAway, 100, false, 5},
			{"a full store does not recover by itself", full, 100, false, 1},
		}
		for _, tc := range cases {
			attempts := 0
			_, err := g.tryJoin(t, func(c *operation.Config, _ *operation.Kind) {
				c.KV = storetest.Failing{KV: c.KV, Fail: func(method, _ string) error {
					if method != "Put" {
						return nil
					}
					if attempts++; attempts > tc.failures {
						return nil
					}
					return tc.err
				}}
			})
			if (err == nil) != tc.joins || attempts != tc.attempts {
				t.Errorf("%s: %d attempts, %v", tc.reason, attempts, err)
			}
		}
	})
}
