package budget_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	mib   = 1 << 20
	total = 256 * mib // of a budget
)

// TestNobodyWaitsForever has requests that need different amounts reserve them step by
// step. In the bubble's time they need less than a second together, so one that is
// refused waited for others that waited, too.
func TestNobodyWaitsForever(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			b, random := budget.New(64*mib), rand.New(rand.NewPCG(seed, 0))
			var held atomic.Int64
			var all errgroup.Group
			for range 40 {
				needs := 1 + random.Int64N(total)
				steps := random.Int64N(8) + 1
				all.Go(func() error {
					r := b.Open(needs)
					defer r.Close()
					for range steps {
						if err := r.Reserve(t.Context(), needs/steps); err != nil {
							return err
						}
						if now := held.Add(needs / steps); now > total {
							return fmt.Errorf("%d bytes are reserved", now)
						}
						<-time.After(time.Millisecond) // others have their turn
					}
					held.Add(-needs / steps * steps)
					return nil
				})
			}
			if err := all.Wait(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		needs  []int64 // of others
		has    []int64 // that these have reserved
		most   int64   // that this one needs
		mine   int64   // that it reserves
		want   nf.Kind // 0: it is reserved
	}{
		"Free":       {"there is enough", nil, nil, total, total, 0},
		"Taken":      {"there is not", []int64{total}, []int64{total}, 1, 1, nf.TooManyRequests},
		"Unfinished": {"neither could finish", []int64{200 * mib}, []int64{150 * mib}, 200 * mib, 60 * mib, nf.TooManyRequests},
		"Beside":     {"another can finish", []int64{200 * mib}, []int64{150 * mib}, 200 * mib, 50 * mib, 0},
		"InTurn": {
			"one can finish when another has", []int64{100 * mib, 200 * mib}, []int64{90 * mib, 100 * mib}, 200 * mib, 56 * mib, 0,
		},
		"Last": {"what needs no more finishes by itself", []int64{200 * mib}, []int64{100 * mib}, 156 * mib, 156 * mib, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(64 * mib)
				for i, needs := range tc.needs {
					if err := b.Open(needs).Reserve(t.Context(), tc.has[i]); err != nil {
						t.Fatal(err)
					}
				}
				mine := b.Open(tc.most)
				err := mine.Reserve(t.Context(), tc.mine)
				if (err != nil) != (tc.want != 0) || err != nil && nf.KindOf(err) != tc.want {
					t.Errorf("%s: %v", tc.reason, err)
				}
				if err != nil && nf.RetryAfterOf(err) == 0 {
					t.Errorf("%s: it does not say when to come again: %v", tc.reason, err)
				}
			})
		})
	}
}

func TestReserveEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(64 * mib)
		all := b.Open(total)
		if err := all.Reserve(t.Context(), total); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		mine := b.Open(mib)
		if err := mine.Reserve(ctx, mib); nf.KindOf(err) != nf.Cancelled {
			t.Errorf("a client that leaves still waits: %v", err)
		}
		time.AfterFunc(time.Second, all.Close)
		if err := mine.Reserve(t.Context(), mib); err != nil {
			t.Errorf("memory that is released is not reserved again: %v", err)
		}
		all.Close() // again
		if err := b.Open(total).Reserve(t.Context(), total-mib+1); nf.KindOf(err) != nf.TooManyRequests {
			t.Errorf("memory is released twice: %v", err)
		}
	})
}

// TestNew has one request need more than the usual size of a budget.
func TestNew(t *testing.T) {
	t.Parallel()
	for most, size := range map[int64]int64{mib: total, total + mib: total + mib} {
		if err := budget.New(most).Open(size).Reserve(t.Context(), size); err != nil {
			t.Errorf("a budget for %d bytes does not have %d: %v", most, size, err)
		}
	}
}
