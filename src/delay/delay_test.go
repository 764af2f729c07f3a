package delay_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

func TestFor(t *testing.T) {
	const long = time.Hour
	cases := map[string]struct {
		reason  string
		d       time.Duration
		arrange func(cancel context.CancelFunc, s delay.Signal)
		woken   bool
		lasts   time.Duration
	}{
		"Time":    {"the time passes", long, func(context.CancelFunc, delay.Signal) {}, false, long},
		"None":    {"a time that has passed is the shortest", -long, func(context.CancelFunc, delay.Signal) {}, false, time.Nanosecond},
		"Ended":   {"the context has ended", long, func(cancel context.CancelFunc, _ delay.Signal) { cancel() }, false, 0},
		"Ends":    {"the context ends", long, func(cancel context.CancelFunc, _ delay.Signal) { time.AfterFunc(time.Minute, cancel) }, false, time.Minute},
		"Signal":  {"a signal ends the wait", long, func(_ context.CancelFunc, s delay.Signal) { time.AfterFunc(time.Minute, s.Send) }, true, time.Minute},
		"Earlier": {"an earlier signal is kept", long, func(_ context.CancelFunc, s delay.Signal) { s.Send() }, true, 0},
		"Closed":  {"a closed channel is a signal", long, func(_ context.CancelFunc, s delay.Signal) { close(s) }, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := delay.NewSignal()
				tc.arrange(cancel, s)
				began := time.Now()
				if woken, lasted := delay.For(ctx, tc.d, s), time.Since(began); woken != tc.woken || lasted != tc.lasts {
					t.Errorf("%s: woken %t after %v, want %t after %v", tc.reason, woken, lasted, tc.woken, tc.lasts)
				}
			})
		})
	}
}

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := delay.NewSignal()
		for range 3 {
			s.Send()
		}
		if !delay.For(t.Context(), time.Hour, s) {
			t.Error("the signal was lost")
		}
		if delay.For(t.Context(), time.Hour, s) {
			t.Error("signals that were sent together wake twice")
		}
	})
}

func TestDoubled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason         string
		first, longest time.Duration
		n              int
		want           time.Duration
	}{
		"First":    {"no failure, no doubling", time.Second, time.Minute, 0, time.Second},
		"Negative": {"nor for fewer", time.Second, time.Minute, -1, time.Second},
		"Doubled":  {"each failure doubles the pause", time.Second, time.Minute, 3, 8 * time.Second},
		"Longest":  {"the pause has a limit", time.Second, 10 * time.Second, 4, 10 * time.Second},
		"Many":     {"the limit holds for any number of failures", time.Second, 2 * time.Hour, math.MaxInt, 2 * time.Hour},
		"Larger":   {"the limit holds for the first pause", time.Minute, time.Second, 0, time.Second},
	} {
		if got := delay.Doubled(tc.first, tc.longest, tc.n); got != tc.want {
			t.Errorf("%s: %s: %v, want %v", name, tc.reason, got, tc.want)
		}
	}
}
