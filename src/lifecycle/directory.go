package lifecycle

import (
	"context"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// unlistTime is how long the removal of an instance waits for a directory. It is short
// because a directory that does not respond must not fail an operation.
const unlistTime = 30 * time.Second

// Directory lists the objects of instances for others, as A&AI does. It follows the
// records of the instances; the engine does not tell it of changes.
type Directory interface {
	// Gone waits until the directory has nothing of an instance whose record says that
	// it is to have nothing, or until the context ends. It reports which.
	Gone(ctx context.Context, instance string) bool
}

// unlistSteps returns the step that has the directory remove an instance whose objects
// are deleted or orphaned: its client may delete what they were related to as soon as
// the operation ends.
func (w *work) unlistSteps() []operation.Step {
	if w.directory == nil {
		return nil
	}
	return []operation.Step{w.step(nf.PhaseUnlist, w.unlist)}
}

func (w *work) unlist(ctx context.Context) error {
	in, err := w.run.instance(ctx)
	if err != nil {
		return operation.RecordError(err)
	}
	if in.AAIInForce().Writer != nf.AAINone {
		if err := w.run.edit(ctx, func(in *nf.Instance) { in.Unlisted = true }); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, unlistTime)
	defer cancel()
	if w.directory.Gone(limited, in.ID) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.run.attempt.Note(func(op *nf.Operation) {
		op.Warnings = append(op.Warnings, "A&AI still has objects of the instance; the service deletes them when A&AI responds")
	})
	return nil
}

// HandOver has SO's adapter for CNFs write the objects of an instance to A&AI from now
// on. It works while an operation is running on the instance, which it does not end with
// another writer. It returns nf.NotFound if there is no such instance.
func HandOver(ctx context.Context, e *Engine, id string) error {
	_, err := e.records.instances.Update(ctx, id, func(in *nf.Instance) error {
		in.AAIAdapter = true
		return nil
	})
	return err
}
