package shared

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// countEvery is the interval between two counts of the resources.
const countEvery = 30 * time.Second

// Run counts the resources until the context ends. It is called once.
func (r *Resources) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if counts, err := r.count(ctx); err == nil { // otherwise they stay as last counted
			r.counts.Store(&counts)
		}
		delay.For(ctx, countEvery, nil)
	}
	return nil
}

// Counts returns the number of resources by region, driver and state, as last counted. It
// returns nil until the resources were counted once.
func (r *Resources) Counts() []nf.SharedCount {
	if counts := r.counts.Load(); counts != nil {
		return *counts
	}
	return nil
}

func (r *Resources) count(ctx context.Context) ([]nf.SharedCount, error) {
	numbers := map[nf.SharedCount]int{}
	for s, err := range r.table.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		numbers[nf.SharedCount{Region: s.Region, Driver: s.Driver, State: s.State}]++
	}
	out := make([]nf.SharedCount, 0, len(numbers))
	for c, n := range numbers {
		c.Number = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b nf.SharedCount) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.State, b.State))
	})
	return out, nil
}
