package operation

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

// retryPause is how long an operation waits after it could not go on, for
// example because its record could not be written.
const retryPause = 5 * time.Second

// stops stop an operation that runs.
type stops struct {
	cancel context.CancelCauseFunc // at once
	halt   context.CancelFunc      // before its next step
}

func (s *stops) now()   { s.cancel(ErrCancelled) }
func (s *stops) later() { s.halt() }

// execute runs an operation until it ends or the context ends. The context ends
// with the service or with this replica's lease.
func (w *Workers) execute(ctx context.Context, p *pool, j Job) {
	cancellable, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopping, halt := context.WithCancel(context.WithoutCancel(ctx)) // the end of the service does not stop the operation
	defer halt()
	j.Stopping = stopping.Done()
	w.mu.Lock()
	w.tracked[j.ID] = &stops{cancel: stop, halt: halt} // before the record is read, so that no cancellation is missed
	w.mu.Unlock()
	defer w.untrack(j.ID)
	log := w.cfg.Logger.With("operation", j.ID)
	for {
		err := p.Perform(ctx, cancellable, j)
		if err == nil {
			if err = w.Drop(ctx, j.ID); err == nil {
				return
			}
		}
		switch {
		case errors.Is(err, errAbsent):
			return
		case errors.Is(err, ErrTaken):
			log.WarnContext(ctx, "operation left to the replica that has taken it over")
			return
		case ctx.Err() != nil:
			log.InfoContext(ctx, "operation interrupted; it will be resumed", "cause", context.Cause(ctx))
			return
		}
		log.ErrorContext(ctx, "operation stopped; will retry", "error", err)
		resume := w.Yield(j)
		delay.For(ctx, retryPause, nil)
		resume()
		if ctx.Err() != nil {
			return
		}
	}
}
