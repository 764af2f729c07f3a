package operation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	unsure  int // how many of the waiting entries may already be stored as this batch
}

// Journal returns a journal that continues after the entries of earlier attempts.
// Hide masks secrets in a text.
func (a *Attempt) Journal(ctx context.Context, hide func(string) string) (*Journal, error) {
	j := &Journal{attempt: a, hide: hide}
	for b, err := range a.ledger.entries.All(ctx, a.job.ID+"/") {
		if err != nil {
			return nil, err
		}
		j.batch++
		if n := len(b.Entries); n > 0 {
			j.number = b.Entries[n-1].Number
		}
	}
	return j, nil
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
		op.Entries = last.Number
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

// Flush stores the waiting entries. A batch that may have been stored is
// written again unchanged, because followers may have read it. Flush returns
// ErrTaken if another replica has written the batch.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.flush(ctx)
}

func (j *Journal) flush(ctx context.Context) error {
	for len(j.waiting) > 0 {
		n := len(j.waiting)
		if j.unsure > 0 {
			n = j.unsure
		}
		err := j.attempt.ledger.entries.Insert(ctx, batchKey(j.attempt.job.ID, j.batch), batch{j.waiting[:n]})
		if nf.KindOf(err) == nf.Exists {
			err = j.written(ctx, j.waiting[:n])
		}
		if errors.Is(err, ErrTaken) {
			return err
		}
		if err != nil {
			j.unsure = n
			return RecordError(fmt.Errorf("cannot store the log of operation %s: %w", j.attempt.job.ID, err))
		}
		j.batch++
		j.waiting, j.unsure = j.waiting[n:], 0
	}
	return nil
}

// written returns ErrTaken unless the entries of the next batch are these: an
// earlier call may have written them, and lost the answer.
func (j *Journal) written(ctx context.Context, entries []nf.LogEntry) error {
	there, err := j.attempt.ledger.entries.Get(ctx, batchKey(j.attempt.job.ID, j.batch))
	if err == nil && !reflect.DeepEqual(there.Entries, entries) {
		return ErrTaken
	}
	return err
}
