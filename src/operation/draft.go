package operation

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// flushSteps is the longest time before the begin of a step is stored.
const flushSteps = time.Second

// lateInserts is how often a write is repeated because a stale attempt has inserted a
// record that the write adds. What is added is built again each time.
const lateInserts = 5

// draft is the record of an operation with what is not stored yet. It is safe for
// concurrent use.
type draft struct {
	free    chan struct{} // holds a token while no call uses the draft; a mutex would not do in tests whose time is not real
	stored  nf.Operation
	read    store.Revision // of the stored value; Absent: not known
	text    []byte         // the stored value; nil: not known
	edits   []func(*nf.Operation)
	changes map[int][]nf.Change // by the index of the step
	builds  []func(context.Context) ([]store.Op, error)
	timer   *time.Timer // of the next flush; nil: none
	taken   bool        // another replica has claimed the operation
}

func newDraft() *draft {
	d := &draft{free: make(chan struct{}, 1)}
	d.free <- struct{}{}
	return d
}

// lock waits until no other call uses the draft.
func (d *draft) lock() (unlock func()) {
	<-d.free
	return func() { d.free <- struct{}{} }
}

// reset begins with a stored value. Without a revision, the next write reads it
// first.
func (d *draft) reset(op nf.Operation, read store.Revision) {
	defer d.lock()()
	d.stored, d.read = op, read
}

func (d *draft) note(edit func(*nf.Operation)) {
	defer d.lock()()
	d.edits = append(d.edits, edit)
}

func (d *draft) also(build func(context.Context) ([]store.Op, error)) {
	defer d.lock()()
	d.builds = append(d.builds, build)
}

func (d *draft) change(step int, changes []nf.Change) {
	defer d.lock()()
	if d.changes == nil {
		d.changes = map[int][]nf.Change{}
	}
	d.changes[step] = changes
}

// changesOf returns the changes of a step that are not stored yet, or nil.
func (d *draft) changesOf(step int) []nf.Change {
	defer d.lock()()
	return d.changes[step]
}

// current returns the operation with all edits. It returns ErrTaken if a write has
// shown that another replica has claimed the operation.
func (d *draft) current() (nf.Operation, error) {
	defer d.lock()()
	if d.taken {
		return d.stored, ErrTaken
	}
	return d.edited(d.stored), nil
}

// edited returns an operation with all edits. Followers may hold the one that is
// passed.
func (d *draft) edited(op nf.Operation) nf.Operation {
	op.Steps, op.Warnings = slices.Clone(op.Steps), slices.Clone(op.Warnings)
	for _, edit := range d.edits {
		edit(&op)
	}
	return op
}

// flushSoon stores the draft after flushSteps, unless it is written before. If that
// fails, it tries again, until the context ends or the claim is lost.
func (d *draft) flushSoon(ctx context.Context, a *Attempt) {
	defer d.lock()()
	if d.timer != nil || ctx.Err() != nil {
		return
	}
	d.timer = time.AfterFunc(flushSteps, func() {
		if _, err := d.write(ctx, a, func(*nf.Operation) {}); err != nil && !errors.Is(err, ErrTaken) {
			d.stop()
			d.flushSoon(ctx, a)
		}
	})
}

// stop prevents a flush.
func (d *draft) stop() {
	defer d.lock()()
	d.unschedule()
}

func (d *draft) unschedule() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// write stores the draft and one more edit, in this order: the changes of steps, what
// was added, the operation, and the ops that come after it. It returns the operation.
func (d *draft) write(ctx context.Context, a *Attempt, edit func(*nf.Operation), after ...store.Op) (nf.Operation, error) {
	defer d.lock()()
	for attempt := 0; ; attempt++ {
		if d.taken {
			return d.stored, ErrTaken
		}
		op, err := d.try(ctx, a, edit, after)
		switch nf.KindOf(err) {
		case nf.Exists: // an earlier attempt has stored changes or what was added, or a stale one
			err = d.afterInsert(ctx, a, attempt, err)
		case nf.Conflict: // for example, the operation was cancelled
			d.read = store.Absent
			err = store.Pause(ctx, attempt)
		default:
			if err == nil {
				return op, nil
			}
		}
		if err != nil {
			d.read = store.Absent // it may have been written
			return op, RecordError(err)
		}
	}
}

// afterInsert stores the changes of steps over those that exist, or waits until what was
// added can be added. It returns the error if neither helps.
func (d *draft) afterInsert(ctx context.Context, a *Attempt, attempt int, err error) error {
	switch {
	case len(d.changes) > 0:
		return d.storeChanges(ctx, a)
	case attempt < lateInserts:
		d.read = store.Absent
		return store.Pause(ctx, attempt)
	}
	return err
}

// try is one attempt to write. It returns nf.Conflict if another writer came first, and
// nf.Exists if there are stored changes of one of the steps.
func (d *draft) try(ctx context.Context, a *Attempt, edit func(*nf.Operation), after []store.Op) (nf.Operation, error) {
	if d.read == store.Absent {
		stored, read, err := a.ledger.operations.GetRevision(ctx, a.job.ID)
		if err != nil {
			return d.stored, err
		}
		if d.taken = stored.Claim != a.job.Token; d.taken {
			return d.stored, ErrTaken
		}
		if len(d.edits) > 0 && d.stored.ID != "" { // a write whose answer was lost may have stored what the edits add
			stored.Steps, stored.Warnings = d.stored.Steps, d.stored.Warnings
		}
		d.stored, d.read, d.text = stored, read, nil
	}
	op := d.edited(d.stored)
	edit(&op)
	record, err := a.ledger.operations.ReplaceOp(op.ID, op, d.read)
	if err != nil {
		return op, err
	}
	ops, err := d.opsBefore(ctx, a)
	if err != nil {
		return op, err
	}
	at := len(ops)
	if len(ops) == 0 && len(after) == 0 && bytes.Equal(record.Value, d.text) {
		d.written(op, record.Value, d.read)
		return op, nil
	}
	revisions, err := store.Write(ctx, a.cfg.KV, slices.Concat(ops, []store.Op{record}, after))
	if err == nil {
		d.written(op, record.Value, revisions[at])
	}
	return op, err
}

// written records that everything is stored.
func (d *draft) written(op nf.Operation, text []byte, read store.Revision) {
	d.stored, d.text, d.read = op, text, read
	d.edits, d.changes, d.builds = nil, nil, nil
	d.unschedule()
}

// opsBefore returns the ops that come before the operation's record.
func (d *draft) opsBefore(ctx context.Context, a *Attempt) ([]store.Op, error) {
	var ops []store.Op
	for _, step := range slices.Sorted(maps.Keys(d.changes)) {
		op, err := a.ledger.changes.InsertOp(changesKey(a.job.ID, step), d.changes[step])
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	for _, build := range d.builds {
		built, err := build(ctx)
		if err != nil {
			return nil, err
		}
		ops = append(ops, built...)
	}
	return ops, nil
}

// storeChanges stores the changes of steps over what another attempt may have stored.
func (d *draft) storeChanges(ctx context.Context, a *Attempt) error {
	for step, changes := range d.changes {
		if err := overwrite(ctx, a, a.ledger.changes, changesKey(a.job.ID, step), changes); err != nil {
			return err
		}
	}
	d.changes = nil
	return nil
}
