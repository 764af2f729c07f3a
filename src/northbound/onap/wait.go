package onap

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Operations is what the API asks of the operations.
type Operations interface {
	// Operation returns an operation, or nf.NotFound.
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// Follow yields an operation as it is, and again whenever it changes, until
	// it is final or the context ends.
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
	// Cancel asks a running operation to stop; nf.Conflict when it has ended.
	Cancel(ctx context.Context, id string) (nf.Operation, error)
}

const (
	patience = 30 * time.Second      // that a change has with one that is only ending
	glance   = 20 * time.Millisecond // between looks at whether an ended one has let go
)

// applied reports whether an operation has done what creating waits for. One
// that is being taken back has not, though it had.
func applied(op nf.Operation) bool { return !op.Applied.IsZero() && !op.Undoing }

// ended reports whether an operation has ended.
func ended(op nf.Operation) bool { return op.State.Final() }

// await waits until done says that an operation has got far enough, and returns
// the last that was seen of it. One that has ended badly is its error, and one
// that takes too long is nf.Timeout: the request's end never ends the operation.
func (a *API) await(ctx context.Context, op nf.Operation, done func(nf.Operation) bool) (nf.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Wait)
	defer cancel()
	for latest, err := range a.cfg.Operations.Follow(ctx, op.ID) {
		if err != nil && ctx.Err() == nil {
			return op, err
		}
		if err != nil {
			break
		}
		op = latest
		if op.State.Final() && op.State != nf.Succeeded {
			return op, failure(op)
		}
		if op.State.Final() || done(op) {
			return op, nil
		}
	}
	return op, &nf.Error{
		Kind: nf.Timeout, Op: string(op.Verb), Subject: "VNF instance " + op.Instance, Operation: op.ID,
		Err: errors.New("operation " + op.ID + " takes longer than a request may, and goes on"),
	}
}

// failure returns the error that an operation ended with.
func failure(op nf.Operation) error {
	f := op.Failure
	if f == nil {
		f = &nf.Failure{Kind: nf.Failed, Message: "the operation " + string(op.State)}
		if op.State == nf.OperationCancelled {
			f.Kind, f.Message = nf.Cancelled, "the operation was cancelled"
		}
	}
	kind, verb, subject := f.Kind, string(op.Verb), "VNF instance "+op.Instance
	if kind == nf.NotFound || kind == nf.Internal {
		kind = nf.Failed // everybody can read what the operation says
	}
	began := "cannot " + verb + " " + subject + ": " // so may the record, and once is enough
	return &nf.Error{
		Kind: kind, Op: verb, Subject: subject, Reason: f.Reason, Operation: op.ID,
		Err: errors.New(strings.TrimPrefix(f.Message, began)),
	}
}

// ending reports whether an operation is only ending: it has applied all its
// objects, and its client has been told that it is done, or it was asked to stop.
func ending(op nf.Operation) bool { return op.State.Final() || applied(op) || op.Cancel }

// begin begins a change. While an operation runs on the instance that is only
// ending, begin waits rather than refuse.
func (a *API) begin(ctx context.Context, change func(context.Context) (nf.Operation, error)) (nf.Operation, error) {
	wait, cancel := context.WithTimeout(ctx, min(patience, a.cfg.Wait))
	defer cancel()
	for {
		op, err := change(ctx)
		running := nf.OperationOf(err)
		if nf.KindOf(err) != nf.Busy || running == "" {
			return op, err
		}
		last, look := a.cfg.Operations.Operation(wait, running)
		if look != nil || !ending(last) || !a.over(wait, last) {
			return op, err
		}
	}
}

// over waits until an operation has ended; false when the context ends first.
func (a *API) over(ctx context.Context, op nf.Operation) bool {
	if _, err := a.await(ctx, op, ended); err != nil && ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(glance)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// confirmed begins a change, and confirms it when that is asked for: ONAP's API
// has no word for it, and its clients mean what they say.
func (a *API) confirmed(ctx context.Context, opts nf.Options, change func(context.Context, nf.Options) (nf.Operation, error)) (nf.Operation, error) {
	return a.begin(ctx, func(ctx context.Context) (nf.Operation, error) {
		op, err := change(ctx, opts)
		if confirm := nf.ConfirmOf(err); confirm != "" {
			opts.Confirm = confirm
			op, err = change(ctx, opts)
		}
		return op, err
	})
}
