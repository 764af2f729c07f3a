package onap

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Operations manages operations.
type Operations interface {
	// Operation returns an operation, or nf.NotFound.
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// Follow yields an operation, and yields it again after each change, until
	// it is final or the context ends.
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
	// Cancel cancels a running operation. It returns nf.Conflict if the
	// operation has ended.
	Cancel(ctx context.Context, id string) (nf.Operation, error)
}

const (
	endingWait = 30 * time.Second      // time that a change waits for an operation that is about to end
	shortWait  = 20 * time.Millisecond // delay after the end of an operation, until the instance is free
)

// runner starts operations and waits for them.
type runner struct {
	operations Operations
	longest    time.Duration // of a wait
	trace      func(*http.Request) string
}

// await waits until done returns true or the operation has ended, and returns
// the operation. If the operation did not succeed, it returns the operation's
// error. After the longest wait it returns nf.Timeout; the operation continues.
func (n *runner) await(ctx context.Context, op nf.Operation, done func(nf.Operation) bool) (nf.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, n.longest)
	defer cancel()
	op, finished, err := northbound.Await(ctx, op, n.operations.Follow, done)
	if finished {
		err = failure(op)
	}
	if finished || err != nil {
		return op, err
	}
	return op, &nf.Error{
		Kind: nf.Timeout, Op: string(op.Verb), Subject: "VNF instance " + op.Subject.ID, Operation: op.ID,
		Err: errors.New("operation " + op.ID + " takes longer than the request may wait, and continues"),
	}
}

// failure returns the error of an operation that did not succeed, or nil. A
// failure of kind nf.NotFound or nf.Internal becomes nf.Failed, because clients
// may see its cause.
func failure(op nf.Operation) error {
	if f := op.Failure; f != nil && (f.Kind == nf.NotFound || f.Kind == nf.Internal) {
		shown := *f
		shown.Kind, op.Failure = nf.Failed, &shown
	}
	return op.Err()
}

// ending reports whether an operation is about to end: it has applied all its
// objects, so its client has a response, or it was cancelled.
func ending(op nf.Operation) bool { return op.State.Final() || northbound.Applied(op) || op.Cancel }

// begin starts a change. If another operation runs on the instance but is about
// to end, begin waits for it instead of returning nf.Busy.
func (n *runner) begin(ctx context.Context, change func(context.Context) (nf.Operation, error)) (nf.Operation, error) {
	wait, cancel := context.WithTimeout(ctx, min(endingWait, n.longest))
	defer cancel()
	for {
		op, err := change(ctx)
		running := nf.OperationOf(err)
		if nf.KindOf(err) != nf.Busy || running == "" {
			return op, err
		}
		last, look := n.operations.Operation(wait, running)
		if look != nil || !ending(last) || !n.over(wait, last) {
			return op, err
		}
	}
}

// over waits until an operation has ended. It returns false if the context ends
// first.
func (n *runner) over(ctx context.Context, op nf.Operation) bool {
	if _, err := n.await(ctx, op, northbound.Ended); err != nil && ctx.Err() != nil {
		return false
	}
	delay.For(ctx, shortWait, nil)
	return ctx.Err() == nil
}

// confirmed starts a change and confirms it if that is required, because ONAP's
// API has no confirmation.
func (n *runner) confirmed(ctx context.Context, opts nf.Options, change func(context.Context, nf.Options) (nf.Operation, error)) (nf.Operation, error) {
	return n.begin(ctx, func(ctx context.Context) (nf.Operation, error) {
		op, err := change(ctx, opts)
		if confirm := nf.ConfirmOf(err); confirm != "" {
			opts.Confirm = confirm
			op, err = change(ctx, opts)
		}
		return op, err
	})
}

// options returns the options of a change: it succeeds once everything is
// applied, and an earlier failure is undone. Seconds is the time for hooks.
func (n *runner) options(r *http.Request, seconds int64) nf.Options {
	const applying = 10 * time.Minute
	return nf.Options{
		OnFailure: nf.Undo, NoWait: true, Trace: n.trace(r),
		Timeout: min(time.Duration(max(seconds, 0))*time.Second+applying, nf.MaxTimeout),
	}
}
