package lifecycle_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestTakenOver stalls a replica that begins an operation until another replica
// has taken the operation over. When the first one continues, it writes nothing,
// and the other one ends the operation.
func TestTakenOver(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string // of the read at which the replica stalls
		read   int32  // which of the reads of such a key; the first of an instance accepts the request
	}{
		"BeforeItMarks":           {"it has not read the operation", "operations/", 1},
		"BeforeItComparesToMark":  {"the claim is compared after the revision of the operation was read", "claims/", 1},
		"BeforeItFences":          {"it has marked the operation", "instances/", 2},
		"BeforeItComparesToFence": {"the claim is compared after the revision of the instance was read", "claims/", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.script("a", nf.InProgress, "")
				woken := make(chan struct{})
				var reads atomic.Int32
				var one, two meter
				a := s.replica(&one, func(c *config) {
					c.Work.Lease = time.Hour // while it stalls, its own timers do not fire
					c.KV = storetest.Failing{KV: s.kv, Fail: func(method, key string) error {
						if method == "Get" && strings.HasPrefix(key, tc.key) && reads.Add(1) == tc.read {
							<-woken
						}
						return nil
					}}
				})
				op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"}})
				if err != nil {
					t.Fatal(err)
				}
				b := s.replica(&two)
				<-time.After(2 * lease) // the other one waits for a
				before := s.everything()
				close(woken)
				synctest.Wait()
				if diff := cmp.Diff(before, s.everything()); diff != "" {
					t.Errorf("%s: the stalled replica has written (-want +got):\n%s", tc.reason, diff)
				}
				s.cluster.script("a", nf.Current, "")
				if op = b.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: the operation is %s: %+v", tc.reason, op.State, op.Failure)
				}
				synctest.Wait()
				if one.ends() != 0 || two.ends() != 1 {
					t.Errorf("%s: the stalled replica has ended it %d times, the other one %d times", tc.reason, one.ends(), two.ends())
				}
			})
		})
	}
}
