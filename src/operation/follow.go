package operation

import (
	"context"
	"iter"
	"reflect"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// followPause is the interval for polling an operation that another replica
// runs.
const followPause = time.Second

// Await waits until another operation ends, and returns it, or a zero one if it is no
// longer stored. It releases this operation's place in the meantime. If the context or this
// attempt ends first, it returns the cause: the end of the service is no reason to wait for
// an operation, even if ctx does not end with it.
func (a *Attempt) Await(ctx context.Context, id string) (nf.Operation, error) {
	defer a.Yield()()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer a.atEnd(stop)()
	for op, err := range a.ledger.Follow(ctx, id) {
		if err != nil {
			return nf.Operation{}, RecordError(nf.IgnoreNotFound(err))
		}
		if op.State.Final() {
			return op, nil
		}
	}
	return nf.Operation{}, context.Cause(ctx)
}

// Follow yields an operation at once and whenever it changes. It ends when the
// operation is final, the loop stops, the context ends (which is not an error),
// or the workers have stopped. It sees changes by another replica within a
// second. The caller's context does not affect the operation.
func (l *Ledger) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		leave := l.feed.subscribe(id)
		defer leave()
		// The subscription comes first: no version published after this read is lost.
		last := nf.Operation{}
		op, outdated, err := l.read(ctx, id, true)
		for {
			if err != nil {
				if ctx.Err() == nil || last.ID == "" {
					yield(nf.Operation{}, err)
				}
				return
			}
			if !reflect.DeepEqual(op, last) && !yield(op, nil) || op.State.Final() {
				return
			}
			last = op
			if !l.awaitChange(ctx, outdated) {
				return
			}
			op, outdated, err = l.read(ctx, id, !l.workers.Tracks(id))
		}
	}
}

// read returns an operation, and a channel that closes when a newer version is
// published here. Unless stored is set, it prefers a published version to the
// store.
func (l *Ledger) read(ctx context.Context, id string, stored bool) (nf.Operation, <-chan struct{}, error) {
	op, published, outdated := l.feed.latest(id)
	if published && (op.State.Final() || !stored) {
		return op, outdated, nil
	}
	op, err := l.Get(ctx, id)
	return op, outdated, err
}

// awaitChange waits until a version is published, at most followPause. It
// returns false if the follower has left or the workers have stopped.
func (l *Ledger) awaitChange(ctx context.Context, outdated <-chan struct{}) bool {
	timer := time.NewTimer(followPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.workers.Stopped():
		return false
	case <-outdated:
	case <-timer.C:
	}
	return true
}

// Updates yields the entries of an operation's log after the given number, and
// the operation whenever it changes, as Follow does. The final state comes after
// the last entry.
func (l *Ledger) Updates(ctx context.Context, id string, after int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		f := logReader{l: l, id: id, lastEntry: after, yield: yield}
		begun := false
		for op, err := range l.Follow(ctx, id) {
			if err != nil {
				yield(nf.OperationUpdate{}, err)
				return
			}
			f.batches = op.Batches // they are stored before the version that counts them
			if !begun && !op.State.Final() && !yield(nf.OperationUpdate{Operation: &op}, nil) {
				return
			}
			if !f.catchUp(ctx) || (begun || op.State.Final()) && !yield(nf.OperationUpdate{Operation: &op}, nil) {
				return
			}
			begun = true
		}
	}
}

// logReader is one call of Updates.
type logReader struct {
	l     *Ledger
	id    string
	yield func(nf.OperationUpdate, error) bool

	lastEntry int // number of the last entry that was yielded
	nextBatch int // the next batch to read
	batches   int // that are part of the log
}

// catchUp yields the entries that are new. It returns false if the loop has
// stopped, or they cannot be read.
func (f *logReader) catchUp(ctx context.Context) bool {
	for f.nextBatch < f.batches {
		b, err := f.l.entries.Get(ctx, batchKey(f.id, f.nextBatch))
		if nf.KindOf(err) == nf.NotFound && err != nil {
			return true // the log is being deleted with its operation
		}
		if err != nil {
			if ctx.Err() == nil {
				f.yield(nf.OperationUpdate{}, err)
			}
			return false
		}
		f.nextBatch++
		for _, e := range b.Entries {
			if e.Number <= f.lastEntry {
				continue
			}
			f.lastEntry = e.Number
			if !f.yield(nf.OperationUpdate{Entry: e}, nil) {
				return false
			}
		}
	}
	return true
}
