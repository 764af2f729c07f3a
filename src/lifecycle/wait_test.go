package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRegionThatGoesAway takes the region away in the middle of an operation.
func TestRegionThatGoesAway(t *testing.T) {
	cases := map[string]struct {
		reason   string
		outage   time.Duration
		waits    bool
		onFailed nf.OnFailure
		state    nf.OperationState
		live     []string
	}{
		"Short": {
			reason: "an operation waits for its region", outage: 5 * time.Minute,
			state: nf.Succeeded, live: []string{"a", "b"},
		},
		"TooLong": {
			reason: "it does so until its deadline, and what was done is taken back when the region is back", outage: 20 * time.Minute,
			state: nf.OperationFailed, live: []string{},
		},
		"TooLongKept": {
			reason: "what was done is kept, and no more is done", outage: 20 * time.Minute, onFailed: nf.Keep,
			state: nf.OperationFailed, live: []string{"a"},
		},
		"WaitForRegion": {
			reason: "an operation that waits for its region has no time limit", outage: 24 * time.Hour, waits: true,
			state: nf.Succeeded, live: []string{"a", "b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				s.cluster.script("a", nf.InProgress, "its image is being pulled")
				op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"},
					Options: nf.Options{WaitForRegion: tc.waits, OnFailure: tc.onFailed, Timeout: 15 * time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				s.cluster.leave(&nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "the region", Reason: "tcp", Err: errors.New("no route")})
				s.cluster.script("a", nf.Current, "")
				<-time.After(time.Minute)
				now, err := e.Operation(t.Context(), op.ID)
				if err != nil || now.Waiting == nil || now.Waiting.Reason != "tcp" || now.Waiting.For != "cannot reach the region: no route" || !now.Waiting.Next.After(now.Waiting.Since) {
					t.Errorf("%s: what it waits for is not told: %+v", tc.reason, now.Waiting)
				}
				<-time.After(tc.outage - time.Minute)
				s.cluster.leave(nil)
				op = e.end(t, op)
				if op.State != tc.state || op.Waiting != nil {
					t.Errorf("%s: %s, waiting %v, %+v", tc.reason, op.State, op.Waiting, op.Failure)
				}
				if op.Failure != nil && (op.Failure.Kind != nf.Timeout || op.Failure.Step == "" || op.Failure.Message == "") {
					t.Errorf("%s: the failure explains nothing: %+v", tc.reason, op.Failure)
				}
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestAbsentRegionTakesNoPlace lets more operations wait for a region than there
// are places: another region's is not held up.
func TestAbsentRegionTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		west := newFakeCluster()
		e := s.start(func(c *config) { // with four places
			c.Open = func(_ context.Context, region, _ string) (lifecycle.Cluster, error) {
				return map[string]*fakeCluster{"east": s.cluster, "west": west}[region], nil
			}
		})
		s.cluster.script("a", nf.InProgress, "")
		var waiting []nf.Operation
		for i := range 12 {
			op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: fmt.Sprint("ns", i), Spec: nf.Spec{Package: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, op)
		}
		s.cluster.leave(errors.New("away"))
		started := time.Now()
		op := e.up(t, "a", func(req *nf.InstantiateRequest) { req.Region = "west" })
		if took := time.Since(started); op.State != nf.Succeeded || took > 5*time.Second {
			t.Errorf("the other region's operation: %s after %s", op.State, took)
		}
		s.cluster.leave(nil)
		s.cluster.script("a", nf.Current, "")
		for _, op := range waiting {
			if op = e.end(t, op); op.State != nf.Succeeded {
				t.Errorf("one that waited: %s %+v", op.State, op.Failure)
			}
		}
	})
}
