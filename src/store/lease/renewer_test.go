package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// TestRenewer has a renewal every two seconds of a lease of ten, which others may
// take for lapsed ten seconds after the last.
func TestRenewer(t *testing.T) {
	errAway := errors.New("the store is away")
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	cases := map[string]struct {
		reason string
		renew  func(ctx context.Context, at time.Duration) error
		stop   time.Duration // when its context ends
		told   []string
	}{
		"Sole": {"no other process can declare it expired", func(context.Context, time.Duration) error { return errAway }, 9 * time.Second,
			[]string{"failed 0s", "failed 2s", "failed 4s", "failed 6s", "failed 8s"}},
		"Well": {"it goes on", func(context.Context, time.Duration) error { return nil }, 5 * time.Second,
			[]string{"renewed 0s", "renewed 2s", "renewed 4s"}},
		"Over": {"another has ended it", func(_ context.Context, at time.Duration) error {
			if at > 0 {
				return nf.E(nf.Conflict, "renew", "it", lease.ErrLost)
			}
			return nil
		}, 5 * time.Second, []string{"renewed 0s", "lost 2s"}},
		"Away": {"it is given up before anybody may take it", func(_ context.Context, at time.Duration) error {
			if at > 2*time.Second {
				return errAway
			}
			return nil
		}, 9 * time.Second, []string{"renewed 0s", "renewed 2s", "failed 4s", "failed 6s", "failed 8s", "lost 8.666666666s"}},
		"Never": {"it was new when it began to be kept", func(context.Context, time.Duration) error { return errAway }, 7 * time.Second,
			[]string{"failed 0s", "failed 2s", "failed 4s", "failed 6s", "lost 6.666666666s"}},
		"Back": {"two failures are none", func(_ context.Context, at time.Duration) error {
			if at == 2*time.Second || at == 4*time.Second {
				return errAway
			}
			return nil
		}, 11 * time.Second, []string{"renewed 0s", "failed 2s", "failed 4s", "renewed 6s", "renewed 8s", "renewed 10s"}},
		"Hangs": {"a renewal does not hang for ever", func(ctx context.Context, at time.Duration) error {
			if at > 0 {
				return hang(ctx)
			}
			return nil
		}, 7 * time.Second, []string{"renewed 0s", "failed 5.333333333s", "lost 6.666666666s"}},
		"Stopped": {"who stops it is not told that it failed", func(ctx context.Context, _ time.Duration) error { return hang(ctx) }, time.Second, nil},
		"Slow": {"the time counts from the beginning of a renewal", func(_ context.Context, at time.Duration) error {
			if at > 0 {
				return errAway
			}
			<-time.After(3 * time.Second)
			return nil
		}, 6900 * time.Millisecond, []string{"renewed 0s", "failed 5s", "lost 6.666666666s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var mu sync.Mutex
				var told []string
				tell := func(what string, at time.Time) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, what+" "+at.Sub(began).String())
				}
				ctx, stop := context.WithTimeout(t.Context(), tc.stop)
				defer stop()
				lease.Renewer{
					Lasts: lasts, Sole: strings.HasSuffix(t.Name(), "/Sole"),
					Renew:   func(ctx context.Context) error { return tc.renew(ctx, time.Since(began)) },
					Lose:    func() { tell("lost", time.Now()) },
					Renewed: func(at time.Time) { tell("renewed", at) },
					Failed:  func(error) { tell("failed", time.Now()) },
					Sleep:   func(ctx context.Context, d time.Duration) { delay.For(ctx, d, nil) },
				}.Run(ctx)
				synctest.Wait()
				if diff := cmp.Diff(tc.told, told); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
