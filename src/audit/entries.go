package audit

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// The place of an entry begins with its time: the hour, and then the rest.
const (
	hour  = "2006-01-02T15"
	place = hour + "/04:05.000000000"
)

// A list is newest first, but the store lists in the order of time. So a list reads
// backward by windows of time, whose lengths adapt to the number of entries in them.
const (
	firstWindow   = time.Second
	leastWindow   = time.Millisecond
	longestWindow = 365 * 24 * time.Hour
	fewEntries    = 16  // of a window: the next one is longer
	manyEntries   = 128 // of a window: the next one is shorter
	mostEntries   = 256 // read of a window before a shorter one is read instead
)

// Entries yields the entries of all replicas that the filter selects, newest
// first. An error ends the sequence. The error is nf.Invalid if Before is not a
// place. It reads few more entries than it examines. If the store has an index, it
// examines only those that f selects, and leaves out those that do not meet f.In.
func (l *Log) Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		first, end, err := l.bounds(f)
		if err != nil {
			yield(nf.AuditEntry{}, err)
			return
		}
		entries, ok := l.found(ctx, f, end)
		if !ok {
			entries = l.read(ctx, f, first, end)
		}
		for e, err := range entries {
			if err == nil && e.Time.Before(first) || !yield(e, err) {
				return
			}
		}
	}
}

// read yields the entries from a time until before another that a filter selects,
// newest first.
func (l *Log) read(ctx context.Context, f nf.AuditFilter, first, end time.Time) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		now := l.cfg.Clock()
		w := window{end: end, length: max(end.Sub(now), firstWindow), most: longestWindow} // the future is one window
		for w.end.After(first) {
			start := later(w.end.Add(-w.length), first)
			entries, all, err := l.between(ctx, start, w.end, w.length > leastWindow)
			if err != nil {
				yield(nf.AuditEntry{}, err)
				return
			}
			if !all {
				w.narrow(start)
				continue
			}
			read := len(entries)
			for _, e := range selected(entries, f) {
				if !yield(e, nil) {
					return
				}
			}
			w.advance(start, read, now)
		}
	}
}

// found yields the entries from before a time that an index finds for a filter, newest
// first. It returns false without an index.
func (l *Log) found(ctx context.Context, f nf.AuditFilter, end time.Time) (iter.Seq2[nf.AuditEntry, error], bool) {
	last := end.UTC().Format(place)
	if f.Before != "" {
		last = min(last, f.Before)
	}
	return l.entries.Find(ctx, nf.Cursor{After: last, Backward: true, Where: f.Where(), In: f.In})
}

// selected returns the entries that a filter selects, the last one first.
func selected(entries []nf.AuditEntry, f nf.AuditFilter) []nf.AuditEntry {
	entries = slices.DeleteFunc(entries, func(e nf.AuditEntry) bool {
		return !f.Matches(e) || f.Before != "" && e.Place() >= f.Before
	})
	slices.Reverse(entries)
	return entries
}

// window is the time whose entries are read next.
type window struct {
	end    time.Time
	length time.Duration
	most   time.Duration // limit of the length, until the end is before dense
	dense  time.Time     // start of a window with too many entries
}

// narrow shortens a window with very many entries.
func (w *window) narrow(start time.Time) {
	w.length = max(w.length/16, leastWindow)
	w.most, w.dense = w.length, start
}

// advance moves the window to before its start.
func (w *window) advance(start time.Time, entries int, now time.Time) {
	switch {
	case w.end.After(now):
		w.length = firstWindow
	case entries < fewEntries:
		w.length = min(w.length*4, w.most)
	case entries > manyEntries:
		w.length = max(w.length/2, leastWindow)
	}
	if w.end = start; !w.end.After(w.dense) {
		w.most = longestWindow
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// bounds returns the time from which and the time before which entries are selected.
func (l *Log) bounds(f nf.AuditFilter) (first, end time.Time, err error) {
	now := l.cfg.Clock().UTC()
	first, end = now.Add(-l.cfg.Retention-24*time.Hour).Truncate(time.Hour), now.Truncate(time.Hour).Add(2*time.Hour) // collection may be late, and a clock wrong
	if f.From.After(first) {
		first = f.From.UTC()
	}
	if !f.To.IsZero() && f.To.Before(end) {
		end = f.To.UTC()
	}
	if f.Before != "" {
		before, err := after(f.Before)
		if err != nil {
			return first, end, nf.E(nf.Invalid, "list", "audit entries", nf.Violations{{Field: "marker", Message: "is unknown; use the marker of a previous response"}})
		}
		if before.Before(end) {
			end = before
		}
	}
	return first, end, nil
}

// after returns a time shortly after that of a place.
func after(where string) (time.Time, error) {
	at, err := time.Parse(place, where[:min(len(where), len(place))])
	if err == nil {
		return at.Add(time.Nanosecond), nil
	}
	at, err = time.Parse(hour, where[:min(len(where), len(hour))])
	return at.Add(time.Hour), err
}

// between returns the entries from a time until before another. If limited is true and
// there are very many, it returns false and only some of them.
func (l *Log) between(ctx context.Context, start, end time.Time, limited bool) (entries []nf.AuditEntry, all bool, err error) {
	for e, err := range l.entries.From(store.Expecting(ctx, mostEntries/8), "", start.UTC().Format(place)) {
		if err != nil {
			return nil, false, fmt.Errorf("cannot list the audit log: %w", err)
		}
		if !e.Time.Before(end) {
			break
		}
		if entries = append(entries, e); limited && len(entries) > mostEntries {
			return entries, false, nil
		}
	}
	return entries, true, nil
}
