package cluster

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestGuardHonoursPatience(t *testing.T) {
	date := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	cases := map[string]struct {
		reason string
		code   int
		after  func() string
		want   time.Duration
	}{
		"429":      {"the API server says for how long", 429, func() string { return "5" }, 5 * time.Second},
		"503":      {"and so it does when it starts", 503, func() string { return "3" }, 3 * time.Second},
		"date":     {"the other form of the header", 429, func() string { return date(4 * time.Second) }, 4 * time.Second},
		"past":     {"a date that has passed", 429, func() string { return date(-time.Hour) }, 0},
		"nonsense": {"what cannot be read counts for nothing", 429, func() string { return "soon" }, 0},
		"negative": {"what cannot be counts for nothing", 429, func() string { return "-5" }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				p, c, _ := alone(t, func(*http.Request) (*http.Response, error) {
					if asked++; asked == 1 {
						return answer(tc.code, "", "Retry-After", tc.after())
					}
					return well(nil)
				})
				start := time.Now()
				if err := c.tryOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
				// The own back-off is up to 150 ms, and dates are in whole seconds.
				if took := time.Since(start); took < tc.want-time.Second || took > tc.want+time.Second {
					t.Errorf("%s: it was asked again after %v, want %v", tc.reason, took, tc.want)
				}
				if state := p.State("east"); state.Breaker != nf.BreakerClosed {
					t.Errorf("%s: the breaker is %s", tc.reason, state.Breaker)
				}
			})
		})
	}
}

// TestGuardPassesPatienceOn has an API server ask for more patience than a caller
// has: that is an answer, and not a wait.
func TestGuardPassesPatienceOn(t *testing.T) {
	date := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	cases := map[string]struct {
		reason string
		code   int
		after  func() string
		want   time.Duration
	}{
		"429":      {"more than a few seconds are the caller's to wait", 429, func() string { return "30" }, 30 * time.Second},
		"503":      {"likewise while it starts", 503, func() string { return "600" }, 10 * time.Minute},
		"date":     {"the other form of the header", 503, func() string { return date(90 * time.Second) }, 90 * time.Second},
		"too long": {"more than an hour is nonsense", 503, func() string { return "86400" }, time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				_, c, _ := alone(t, func(*http.Request) (*http.Response, error) {
					asked++
					return answer(tc.code, "", "Retry-After", tc.after())
				})
				start := time.Now()
				err := c.tryOnce(t.Context())
				wantKind(t, err, nf.Unreachable)
				if took := time.Since(start); took > 0 || asked != 1 {
					t.Errorf("%s: it was asked %d times in %v", tc.reason, asked, took)
				}
				if after := nf.RetryAfterOf(err); after != tc.want {
					t.Errorf("%s: the caller is told to come again in %v, want %v", tc.reason, after, tc.want)
				}
			})
		})
	}
}

func TestGuardPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := alone(t, func(*http.Request) (*http.Response, error) { return answer(429, "", "Retry-After", "5") })
		err := c.tryOnce(t.Context())
		wantKind(t, err, nf.Unreachable)
		if nf.RetryAfterOf(err) != 5*time.Second || nf.ReasonOf(err) != "unavailable" {
			t.Errorf("who asked often enough is told when to come again: %v, %v", nf.RetryAfterOf(err), err)
		}
	})
}
