package bundle

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// runs is how many runs of an instance's tests are remembered.
const runs = 100

// Run is one run of an instance's tests: what ONAP calls a health check. How it
// goes is said by the operation that it is.
type Run struct {
	ID        string    `json:"id"`
	Instance  string    `json:"instance"` // as ONAP's API calls it
	Operation string    `json:"operation"`
	Created   time.Time `json:"created"`
}

func (r Run) id() string { return r.Instance + "/" + r.ID }

// Begin remembers a run, and forgets the oldest when there are too many.
func (l *Ledger) Begin(ctx context.Context, r Run) error {
	if err := l.runs.Insert(ctx, r.id(), r); err != nil {
		return err
	}
	all, err := l.Runs(ctx, r.Instance)
	if err != nil || len(all) <= runs {
		return err
	}
	for _, old := range all[:len(all)-runs] {
		if err := nf.UnlessGone(l.runs.Delete(ctx, old.id())); err != nil {
			return err
		}
	}
	return nil
}

// Run returns a run of an instance's tests, or nf.NotFound.
func (l *Ledger) Run(ctx context.Context, instance, id string) (Run, error) {
	if id == "" {
		return Run{}, nf.E(nf.NotFound, "get", "health check "+strconv.Quote(id), nil)
	}
	return l.runs.Get(ctx, Run{ID: id, Instance: instance}.id())
}

// Runs returns the runs of an instance's tests, the oldest first.
func (l *Ledger) Runs(ctx context.Context, instance string) ([]Run, error) {
	all, err := l.runs.List(ctx, instance+"/")
	slices.SortStableFunc(all, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// End forgets a run, or fails with nf.NotFound.
func (l *Ledger) End(ctx context.Context, r Run) error { return l.runs.Delete(ctx, r.id()) }
