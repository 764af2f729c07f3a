package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// carry runs an operation to its end, or until the context ends: with the
// service, or with this replica's lease.
func (e *Engine) carry(ctx context.Context, j job) {
	cancellable, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.mu.Lock()
	e.owned[j.id] = stop // before the record is read, so that no cancellation is missed
	e.mu.Unlock()
	defer e.disown(j.id)
	for {
		r := &run{Engine: e, job: j, log: e.cfg.Logger.With("operation", j.id)}
		err := r.attempt(ctx, cancellable)
		if err == nil || errors.Is(err, errOver) {
			if err = e.drop(ctx, j.id); err == nil {
				return
			}
		}
		switch {
		case errors.Is(err, errTaken):
			r.log.WarnContext(ctx, "operation left to the replica that has taken it over")
			return
		case ctx.Err() != nil:
			r.log.InfoContext(ctx, "operation interrupted, to be resumed", "cause", context.Cause(ctx))
			return
		}
		r.log.ErrorContext(ctx, "operation cannot go on, to be tried again", "error", err)
		if r.rest(ctx, retryPause) != nil {
			return
		}
	}
}

// attempt reads the operation and carries it on.
func (r *run) attempt(ctx, cancellable context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	ctx, end := r.cfg.Trace.Operation(ctx, r.op)
	stoppable, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(cancellable, func() { stop(context.Cause(cancellable)) })()
	err := r.proceed(ctx, stoppable)
	end(r.op, err)
	return err
}

// rest gives the operation's place to others for a while.
func (r *run) rest(ctx context.Context, d time.Duration) error {
	r.queue.give(r.job.region)
	defer r.queue.regain(r.job.region)
	return pause(ctx, d)
}

// errOver says that an operation has ended already.
var errOver = errors.New("the operation is over")

// begin reads the operation and marks it running, by this replica.
func (r *run) begin(ctx context.Context) error {
	resumed := false
	op, err := r.operations.Update(ctx, r.job.id, func(op *nf.Operation) error {
		if op.State.Final() {
			return errOver
		}
		if op.Started.IsZero() {
			op.Started = r.now()
		}
		if resumed = op.Attempts > 0 && op.Claim != r.job.token; resumed || op.Attempts == 0 {
			op.Attempts++
		}
		op.Claim = r.job.token
		return op.Move(nf.Running)
	})
	if nf.KindOf(err) == nf.NotFound {
		return errOver // its request was not accepted, and said so
	}
	if err != nil {
		return recordError(err)
	}
	r.op = op
	r.log = r.log.With("verb", op.Verb, "instance", op.Instance)
	if resumed {
		r.cfg.Meter.Resumed(op)
		r.log.InfoContext(ctx, "operation resumes", "attempt", op.Attempts)
	}
	r.tell(op)
	in, err := r.bind(ctx)
	switch {
	case err != nil && nf.KindOf(err) != nf.NotFound:
		return recordError(err)
	case err == nil && in.Operation == op.ID:
		r.secrets = secretsOf(op.Target, inForce(in))
		return nil
	case len(op.Steps) == 0:
		// The process died between recording the operation and accepting it.
		err = errors.Join(r.withdraw(ctx, op), r.conclude(ctx, errUnheeded))
	default:
		// It has let go of the instance, which may be another's by now: all
		// that is left to do is to say so.
		err = r.conclude(ctx, nil)
	}
	if err != nil {
		return recordError(err)
	}
	return errOver
}

// bind makes the instance of the operation know this claim: whoever had it
// before cannot write it from then on.
func (r *run) bind(ctx context.Context) (nf.Instance, error) {
	return r.instances.Update(ctx, r.op.Instance, func(in *nf.Instance) error {
		if in.Operation == r.op.ID {
			in.Claim = r.job.token
		}
		return nil
	})
}
