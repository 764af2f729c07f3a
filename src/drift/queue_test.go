package drift_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/drift"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// counted is a Source that counts the comparisons of each instance, and finds no drift.
type counted struct {
	mu    sync.Mutex
	times map[string]int
	each  chan struct{} // if not nil: receives after each comparison
}

func (c *counted) Drift(_ context.Context, id string, _ []string) (nf.Instance, []nf.Drift, error) {
	c.mu.Lock()
	c.times[id]++
	c.mu.Unlock()
	if c.each != nil {
		c.each <- struct{}{}
	}
	return nf.Instance{ID: id, LastOperation: "op", Drift: nf.DriftPolicy{Mode: nf.DriftWarn}}, nil, nil
}

func (c *counted) Correct(context.Context, nf.Instance, []nf.Ref) (nf.Operation, bool, error) {
	return nf.Operation{}, false, nil
}

func instances(n int) []nf.Instance {
	out := make([]nf.Instance, n)
	for i := range out {
		out[i] = nf.Instance{
			ID: fmt.Sprint("vnf-", i), Region: "east", State: nf.Ready, LastOperation: "op", Drift: nf.DriftPolicy{Mode: nf.DriftWarn},
			Inventory: []nf.Item{{Ref: ref("a")}},
		}
	}
	return out
}

// TestEachIsComparedOnce follows many instances, then changes objects of some and
// ends the following of others before they are due.
func TestEachIsComparedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		source := &counted{times: map[string]int{}}
		w, err := drift.New(drift.Config{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		all := instances(many)
		w.Follow(all)
		ctx, stop := context.WithCancel(t.Context())
		var over sync.WaitGroup
		over.Go(func() { _ = w.Run(ctx) })
		pass(time.Second)
		want := map[string]int{}
		for _, in := range all {
			want[in.ID] = 1
		}
		check := func(reason string) {
			t.Helper()
			source.mu.Lock()
			defer source.mu.Unlock()
			if d := cmp.Diff(want, source.times); d != "" {
				t.Errorf("%s: -want +got:\n%s", reason, d)
			}
		}
		check("each is compared when it is followed")

		watch := w.Census(inEast, ref(""))
		for i, in := range all[:many/2] {
			watch.See(drift.Mark{Owner: in.ID, Key: ref("a").Key(), Stamp: uint64(i + 1), Status: nf.Current})
		}
		w.Follow(all[many/4:])
		for _, in := range all[many/4 : many/2] {
			want[in.ID]++
		}
		pass(time.Minute)
		check("those that changed are compared again, but not those that are followed no more")
		stop()
		over.Wait()
	})
}

// BenchmarkCompare follows instances and compares each once. The time of one should
// not depend on their number.
func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := instances(n)
			for b.Loop() {
				source := &counted{times: map[string]int{}, each: make(chan struct{}, n)}
				w, err := drift.New(drift.Config{Source: source})
				if err != nil {
					b.Fatal(err)
				}
				ctx, stop := context.WithCancel(b.Context())
				var over sync.WaitGroup
				w.Follow(all)
				over.Go(func() { _ = w.Run(ctx) })
				for range all {
					<-source.each
				}
				stop()
				over.Wait()
				if len(source.times) != n {
					b.Fatal("not all were compared")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/instance")
		})
	}
}
