package lifecycle

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// run is one attempt at an operation on an instance, with what its steps work
// with. Each write of the instance compares the token of the worker's claim.
type run struct {
	attempt *operation.Attempt
	records *records

	cluster  Cluster
	plan     render.Plan  // the desired state; zero for terminate
	settings []nf.Setting // those that remain with the plan; nil for an instance that has none yet
	redactor redactor     // of the target revision and of the one in force
}

// op returns the operation as last written.
func (r *run) op() nf.Operation { return r.attempt.Op() }

// instance reads the operation's instance.
func (r *run) instance(ctx context.Context) (nf.Instance, error) {
	return r.records.instances.Get(ctx, r.op().Subject.ID)
}

// edit edits the instance; see operation.Locks.
func (r *run) edit(ctx context.Context, edit func(*nf.Instance)) error {
	_, err := r.records.locks.Edit(ctx, r.attempt, edit)
	return err
}

// inventory edits the instance's inventory.
func (r *run) inventory(ctx context.Context, edit func([]nf.Item) []nf.Item) error {
	return r.edit(ctx, func(in *nf.Instance) { in.Inventory = edit(in.Inventory) })
}

// unlock edits the instance and unlocks it for the next operation, once; see
// operation.Locks.
func (r *run) unlock(edit func(*nf.Instance)) { r.records.locks.Release(r.attempt, edit) }

// counted notes the numbers of the current step: its objects, those that are done, and
// the changes.
func (r *run) counted(objects, current, changes int) {
	r.attempt.Note(func(op *nf.Operation) {
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current, step.Changes = objects, current, changes
	})
}

// progress publishes the current step's progress to followers, without storing
// it.
func (r *run) progress(current, objects int, message string) {
	message = r.redactor.values.Text(message)
	r.attempt.Progress(func(s *nf.Step) {
		s.Current, s.Objects = current, objects
		s.Report(message)
	})
}
