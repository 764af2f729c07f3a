package operation

import (
	"context"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// stopping reports whether the operation is to stop before its next step. Its undo is not
// stopped.
func (x *execution) stopping() bool {
	if x.attempt.op.Undoing {
		return false
	}
	select {
	case <-x.attempt.job.Stopping:
		return true
	default:
		return false
	}
}

// do runs a step. If the operation is to stop before its next step, a step that only waits
// ends at once.
func (x *execution) do(ctx context.Context, s Step) error {
	if s.Phase != nf.PhaseWait || x.attempt.op.Undoing || x.attempt.job.Stopping == nil {
		return s.Do(ctx)
	}
	limited, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-x.attempt.job.Stopping:
			cancel(ErrCancelled)
		case <-limited.Done():
		}
	})
	err := s.Do(limited)
	stopped := limited.Err() != nil && ctx.Err() == nil
	cancel(nil)
	watching.Wait()
	if err != nil && stopped && !IsStoreError(err) {
		return x.cancelled()
	}
	return err
}
