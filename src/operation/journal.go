package operation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// batch is a batch of entries of an operation's log, stored in one write.
type batch struct {
	Entries []nf.LogEntry `json:"entries"`
}

// batchKey returns the key of a batch.
func batchKey(operation string, number int) string { return fmt.Sprintf("%s/%08d", operation, number) }

const (
	flushAfter = 500 * time.Millisecond // most time before an entry is stored
	flushAt    = 64                     // most entries in a batch
	maxText    = 4 << 10                // most bytes of a text
	maxEntries = 20_000                 // most entries of an operation
)

// Clip truncates a text of a log or a step to 4 KiB and replaces invalid UTF-8.
func Clip(s string) string { return strings.ToValidUTF8(nf.Clip(s, maxText), "\ufffd") }

// Journal writes the log of an operation during one attempt. While entries are
// written periodically, it is the only one that may write the operation.
type Journal struct {
	attempt *Attempt
	hide    func(string) string

	mu      sync.Mutex
	batch   int // number of the next batch
	number  int // number of the last entry
	waiting []nf.LogEntry
}

// Journal returns a journal that continues after the entries of earlier attempts.
// Hide masks secrets in a text.
func (a *Attempt) Journal(hide func(string) string) *Journal {
	return &Journal{attempt: a, hide: hide, batch: a.op.Batches, number: a.op.Entries}
}

// Add adds an entry about the current step. It sets the number, the time and the
// step. The entry is stored with others, if there are enough of them.
func (j *Journal) Add(ctx context.Context, e nf.LogEntry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.add(e); len(j.waiting) < flushAt {
		return nil
	}
	return j.publish(ctx)
}

// Publish adds an entry and stores it at once.
func (j *Journal) Publish(ctx context.Context, e nf.LogEntry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
	return j.publish(ctx)
}

// Periodically stores waiting entries at short intervals, until it is stopped.
func (j *Journal) Periodically(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			delay.For(ctx, flushAfter, nil)
			j.mu.Lock()
			_ = j.publish(ctx) // entries that cannot be written now wait
			j.mu.Unlock()
		}
	})
	return func() { cancel(); running.Wait() }
}

func (j *Journal) add(e nf.LogEntry) {
	if j.number >= maxEntries {
		return
	}
	if j.number++; j.number == maxEntries {
		e = nf.LogEntry{Kind: nf.EventNote, Message: fmt.Sprintf("the limit of %d events is reached; later events are not stored", maxEntries)}
	}
	e.Number, e.Time, e.Step = j.number, j.attempt.Now().Round(0), j.attempt.Current() // as it will be read
	for _, text := range []*string{&e.Play, &e.Task, &e.Host, &e.Message} {
		*text = Clip(j.hide(*text))
	}
	j.waiting = append(j.waiting, e)
}

// publish stores the waiting entries, and the last of them as the step's
// progress.
func (j *Journal) publish(ctx context.Context) error {
	if len(j.waiting) == 0 {
		return nil
	}
	last := j.waiting[len(j.waiting)-1]
	if err := j.flush(ctx); err != nil {
		return err
	}
	return j.attempt.Save(ctx, func(op *nf.Operation) {
		op.Steps[len(op.Steps)-1].Report(Clip(progress(last)), last.Mentions...)
	})
}

// progress returns an entry as one line.
func progress(e nf.LogEntry) string {
	text := e.Task
	if text == "" {
		text = e.Message
	}
	if e.Host != "" {
		text += " (" + e.Host + ")"
	}
	return text
}

// Flush stores the waiting entries. They become part of the log with the next
// write of the operation's record. Flush returns ErrTaken if another replica has
// claimed the operation.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flush(ctx)
}

func (j *Journal) flush(ctx context.Context) error {
	if len(j.waiting) == 0 {
		return nil
	}
	err := j.store(ctx, batch{j.waiting})
	if errors.Is(err, ErrTaken) {
		return err
	}
	if err != nil {
		return RecordError(fmt.Errorf("cannot store the log of operation %s: %w", j.attempt.job.ID, err))
	}
	j.batch++
	batches, entries := j.batch, j.waiting[len(j.waiting)-1].Number
	j.attempt.Note(func(op *nf.Operation) { op.Batches, op.Entries = batches, entries })
	j.waiting = nil
	return nil
}

// store writes the next batch. A record with its key is not part of the log: an
// attempt that has not counted it has written it, or a stalled one writes it late.
// After this attempt has overwritten it, no other one can.
func (j *Journal) store(ctx context.Context, b batch) error {
	return overwrite(ctx, j.attempt, j.attempt.ledger.entries, batchKey(j.attempt.job.ID, j.batch), b)
}
