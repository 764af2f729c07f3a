package cluster

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestGuardReadsDenials has the answer to a watch be an error: it is read under the
// limits of every other answer.
func TestGuardReadsDenials(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   drip
		want   string // the reason; empty: none
		took   time.Duration
	}{
		"slow":    {"an error that comes piece by piece is waited for", drip{left: 3, pause: patience - 1, end: io.EOF}, "", 3 * (patience - 1)},
		"endless": {"but not for ever", drip{left: 1000, pause: patience - 1, end: io.EOF}, "timeout", answerTime},
		"stalled": {"one that does not go on is none", drip{left: 2, pause: patience + 1, end: io.EOF}, "timeout", patience},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, told := alone(t, func(req *http.Request) (*http.Response, error) {
					<-time.After(2 * answerTime) // until it answers, a watch may be silent
					resp, err := answer(403, "")
					body := tc.body
					body.ctx = req.Context()
					resp.Body = io.NopCloser(&body)
					return resp, err
				})
				ended := make(chan error)
				go func() {
					_, err := c.client.verb(http.MethodGet).AbsPath("/api/v1/pods").Param("watch", "true").MaxRetries(0).Stream(t.Context())
					ended <- err
				}()
				<-time.After(2*answerTime + 1)
				if turns := c.transport.usage.turns; turns.TryAcquire(c.transport.usage.limits.turns) {
					t.Errorf("%s: it is read without a turn", tc.reason)
				}
				err := <-ended
				if got := told.calls[0]; err == nil || got.Reason != tc.want || got.Took != 2*answerTime+tc.took {
					t.Errorf("%s: %+v, %v; want reason %q after %v", tc.reason, got, err, tc.want, tc.took)
				}
			})
		})
	}
}

// TestGuardCrowdedByItself has a denial find no turn: the region did answer.
func TestGuardCrowdedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, told := alone(t, func(*http.Request) (*http.Response, error) { return answer(403, "") })
		if !c.transport.usage.turns.TryAcquire(c.transport.usage.limits.turns) {
			t.Fatal("the turns are taken")
		}
		for range 10 {
			_, err := c.client.verb(http.MethodGet).AbsPath("/api/v1/pods").Param("watch", "true").MaxRetries(0).Stream(t.Context())
			if !errors.Is(err, errCrowded) {
				t.Errorf("the error is %v, want %v", err, errCrowded)
			}
		}
		if state := p.State("east"); state.Breaker != nf.BreakerClosed || told.calls[0].Reason != "crowded" {
			t.Errorf("what this process takes does not open the breaker: %+v, %+v", state, told.calls[0])
		}
	})
}
