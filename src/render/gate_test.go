package render_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const gateWait = 10 * time.Second

// hold takes a place.
func hold(t *testing.T, g *render.Gate, region string) *render.Turn {
	t.Helper()
	turn, err := g.Enter(t.Context(), region)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// stall is a rendering that holds one byte and waits for its region until answer is
// closed. It sends its name when it has its place again, and leaves.
func stall(t *testing.T, g *render.Gate, region string, answer <-chan struct{}, back chan<- string) {
	t.Helper()
	turn := hold(t, g, region)
	go func() {
		defer turn.Leave()
		err := turn.Yield(t.Context(), 1, func() error { <-answer; return nil })
		back <- fmt.Sprint(region, err)
	}()
	synctest.Wait()
}

func TestGate(t *testing.T) {
	t.Parallel()
	const full = "cannot read package: 2 renderings are running; try again"
	cases := map[string]struct {
		reason  string
		stalled []string // regions of renderings that wait for them
		held    []string // regions of other renderings
		region  string
		want    string
	}{
		"Free":         {"a place is free", nil, []string{"east"}, "east", ""},
		"Full":         {"all places are taken", nil, []string{"", "west"}, "east", full},
		"Region":       {"a region has its share, though places are free", []string{"east", "east"}, nil, "east", "cannot read package: 2 renderings for cloud region east are running; try again"},
		"Other region": {"a rendering that waits for its region occupies no place", []string{"east", "east"}, nil, "west", ""},
		"No region":    {"nor is in the way of uploads", []string{"east", "east"}, []string{"west"}, "", ""},
		"Memory":       {"unless they would hold too much together", []string{"east", "east", "west", "west"}, nil, "", full},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := render.NewGate(render.GateConfig{AtOnce: 2, Wait: gateWait, Aside: 2})
				answer, back := make(chan struct{}), make(chan string, len(tc.stalled))
				for _, region := range tc.stalled {
					stall(t, g, region, answer, back)
				}
				for _, region := range tc.held {
					defer hold(t, g, region).Leave()
				}
				before, got := time.Now(), ""
				turn, err := g.Enter(t.Context(), tc.region)
				if err != nil {
					got = err.Error()
				} else {
					turn.Leave()
				}
				if got != tc.want {
					t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
				}
				if waited := time.Since(before); err != nil && (nf.KindOf(err) != nf.TooManyRequests || nf.RetryAfterOf(err) != gateWait/2 || waited != gateWait) {
					t.Errorf("%s: %s after %v, to be tried again after %v", tc.reason, nf.KindOf(err), waited, nf.RetryAfterOf(err))
				}
				close(answer)
				ended := []string{}
				for range tc.stalled {
					ended = append(ended, <-back)
				}
				slices.Sort(ended)
				if got, want := strings.Join(ended, " "), strings.TrimSpace(strings.Join(append(tc.stalled, ""), "<nil> ")); got != want {
					t.Errorf("%s: those that have waited for a region end with %s, want %s", tc.reason, got, want)
				}
			})
		})
	}
}

// TestGateOrder lets a rendering whose region has answered go before those that
// have not begun, except the first.
func TestGateOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := render.NewGate(render.GateConfig{AtOnce: 1, Wait: gateWait})
		answer, back := make(chan struct{}), make(chan string)
		stall(t, g, "east", answer, back)
		held := hold(t, g, "")
		for _, name := range []string{"first", "second", "third"} {
			go func() {
				turn := hold(t, g, "")
				back <- name
				turn.Leave()
			}()
			synctest.Wait()
		}
		close(answer)
		synctest.Wait()
		held.Leave()
		var got []string
		for range 4 {
			got = append(got, <-back)
		}
		if diff := cmp.Diff([]string{"first", "east<nil>", "second", "third"}, got); diff != "" {
			t.Errorf("the order of those that wait (-want +got):\n%s", diff)
		}
	})
}

// TestGateReturn has renderings whose region has answered while others have all
// places.
func TestGateReturn(t *testing.T) {
	t.Parallel()
	errRegion := errors.New("the region fails")
	cases := map[string]struct {
		reason string
		answer error
		cancel bool
		want   string
		kind   nf.Kind
		waited time.Duration
	}{
		"Full":   {"it waits for its turn", nil, false, "1 renderings are running; try again", nf.TooManyRequests, gateWait},
		"Leaves": {"no longer than its caller", nil, true, "context canceled", nf.Cancelled, 0},
		"Fails":  {"and not at all without an answer: it ends", errRegion, false, errRegion.Error(), nf.KindOf(errRegion), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := render.NewGate(render.GateConfig{AtOnce: 1, Wait: gateWait})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				turn := hold(t, g, "east")
				var other *render.Turn
				before := time.Now()
				err := turn.Yield(ctx, 1, func() error {
					if other = hold(t, g, "west"); tc.cancel {
						cancel()
					}
					return tc.answer
				})
				if err == nil || !strings.Contains(err.Error(), tc.want) || nf.KindOf(err) != tc.kind || time.Since(before) != tc.waited {
					t.Errorf("%s: %s %v after %v", tc.reason, nf.KindOf(err), err, time.Since(before))
				}
				turn.Leave()
				other.Leave()
				hold(t, g, "east").Leave() // detects a place that was not returned, or was returned twice
			})
		})
	}
}

// TestNoGate has no limits.
func TestNoGate(t *testing.T) {
	t.Parallel()
	var g *render.Gate
	turn := hold(t, g, "east")
	if err := turn.Yield(t.Context(), render.MaxMemory, func() error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("it returns the error of the region: %v", err)
	}
	turn.Leave()
}
