package site_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestTakenOver stalls a replica that begins an operation until another replica
// has taken the operation over and runs it. When the first one continues, it writes nothing,
// and the other one ends the operation.
func TestTakenOver(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string // of the read at which the replica stalls
		read   int32  // which of the reads of such a key; the first of a site accepts the request
	}{
		"BeforeTheCheck":          {"it has not read the operation", "operations/", 1},
		"DuringTheCheck":          {"it has read an operation that had not started", "sites/", 2},
		"BeforeItMarks":           {"it knows that the operation was accepted", "operations/", 2},
		"BeforeItFences":          {"it has marked the operation", "sites/", 3},
		"BeforeItComparesToMark":  {"the claim is compared after the revision of the operation was read", "claims/", 1},
		"BeforeItComparesToFence": {"the claim is compared after the revision of the site was read", "claims/", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				begun, proceed := make(chan struct{}, 2), make(chan struct{})
				w.play = func(ctx context.Context, _ site.Job, _ teller) error {
					begun <- struct{}{}
					select {
					case <-proceed:
					case <-ctx.Done():
					}
					return context.Cause(ctx)
				}
				woken := make(chan struct{})
				var reads atomic.Int32
				first, stop := w.start(t, func(c *config) {
					c.Work.Lease = time.Hour // while it stalls, its own timers do not fire
					c.KV = storetest.Failing{KV: w.kv, Fail: func(method, key string) error {
						if method == "Get" && strings.HasPrefix(key, tc.key) && reads.Add(1) == tc.read {
							<-woken
						}
						return nil
					}}
				})
				op, err := first.Create(t.Context(), request())
				must(t, err)
				next, _ := w.start(t)
				<-begun
				synctest.Wait()
				before := w.records(t)
				close(woken)
				synctest.Wait()
				if diff := cmp.Diff(before, w.records(t)); diff != "" {
					t.Errorf("%s: the stalled replica has written (-want +got):\n%s", tc.reason, diff)
				}
				close(proceed)
				op, _ = end(t, next, op)
				if op.State != nf.Succeeded {
					t.Errorf("%s: the operation is %s: %+v", tc.reason, op.State, op.Failure)
				}
				stop()
				synctest.Wait() // the claim goes after the end is reported
				if left := keys(t, w, "claims/"); len(left) > 0 || len(w.started()) != 1 {
					t.Errorf("%s: %d runs, and the list of work has %v", tc.reason, len(w.started()), left)
				}
			})
		})
	}
}
