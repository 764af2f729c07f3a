package bundle

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// runs is the number of test runs kept of an instance.
const runs = 100

// Run is one run of an instance's tests, which ONAP calls a health check. Its
// state is that of its operation.
type Run struct {
	ID        string    `json:"id"`
	Instance  string    `json:"instance"` // the id in ONAP's API
	Operation string    `json:"operation"`
	Created   time.Time `json:"created"`
}

func (r Run) id() string { return r.Instance + "/" + r.ID }

// AddRun stores a run, and deletes the oldest ones above the limit.
func (ir *InstanceRecords) AddRun(ctx context.Context, r Run) error {
	if err := ir.runs.Insert(ctx, r.id(), r); err != nil {
		return err
	}
	all, err := ir.Runs(ctx, r.Instance)
	if err != nil || len(all) <= runs {
		return err
	}
	for _, old := range all[:len(all)-runs] {
		if err := nf.IgnoreNotFound(ir.runs.Delete(ctx, old.id())); err != nil {
			return err
		}
	}
	return nil
}

// Run returns a run of an instance's tests, or nf.NotFound.
func (ir *InstanceRecords) Run(ctx context.Context, instance, id string) (Run, error) {
	if id == "" {
		return Run{}, nf.E(nf.NotFound, "get", "health check "+strconv.Quote(id), nil)
	}
	return ir.runs.Get(ctx, Run{ID: id, Instance: instance}.id())
}

// Runs returns the runs of an instance's tests, the oldest first.
func (ir *InstanceRecords) Runs(ctx context.Context, instance string) ([]Run, error) {
	all, err := ir.runs.List(ctx, instance+"/")
	slices.SortStableFunc(all, func(a, b Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// DeleteRun deletes a run, or returns nf.NotFound.
func (ir *InstanceRecords) DeleteRun(ctx context.Context, r Run) error {
	return ir.runs.Delete(ctx, r.id())
}
