package audit

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The place of an entry begins with its hour, so that a list reads only the
// hours that it needs.
const (
	hour = "2006-01-02T15"
	day  = "2006-01-02T"
)

// Entries yields the entries of all replicas that the filter selects, newest
// first. An error ends the sequence. The error is nf.Invalid if Before is not a
// place.
func (l *Log) Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error] {
	return func(yield func(nf.AuditEntry, error) bool) {
		first, last, err := l.hours(f)
		if err != nil {
			yield(nf.AuditEntry{}, err)
			return
		}
		for at := last; !at.Before(first); {
			if empty, err := l.empty(ctx, at.Format(day)); err != nil {
				yield(nf.AuditEntry{}, err)
				return
			} else if empty {
				at = at.Truncate(24 * time.Hour).Add(-time.Hour)
				continue
			}
			if !l.yieldHour(ctx, at, f, yield) {
				return
			}
			at = at.Add(-time.Hour)
		}
	}
}

// hours returns the first and the last hour that have selected entries.
func (l *Log) hours(f nf.AuditFilter) (first, last time.Time, err error) {
	now := l.cfg.Clock().UTC()
	first, last = now.Add(-l.cfg.Retention-24*time.Hour), now.Add(time.Hour) // collection may be late, and a clock wrong
	if f.From.After(first) {
		first = f.From.UTC()
	}
	if !f.To.IsZero() && f.To.Before(last) {
		last = f.To.UTC()
	}
	if f.Before != "" {
		before, err := time.Parse(hour, f.Before[:min(len(f.Before), len(hour))])
		if err != nil {
			return first, last, nf.E(nf.Invalid, "list", "audit entries", nf.Violations{{Field: "marker", Message: "is unknown; use the marker of a previous response"}})
		}
		if before.Before(last) {
			last = before
		}
	}
	return first.Truncate(time.Hour), last.Truncate(time.Hour), nil
}

func (l *Log) empty(ctx context.Context, prefix string) (bool, error) {
	for _, err := range l.entries.All(ctx, prefix) {
		return false, wrapped(err)
	}
	return true, nil
}

// yieldHour yields the entries of one hour, and reports whether to continue.
func (l *Log) yieldHour(ctx context.Context, at time.Time, f nf.AuditFilter, yield func(nf.AuditEntry, error) bool) bool {
	entries, err := l.entries.List(ctx, at.Format(hour)+"/")
	if err != nil {
		yield(nf.AuditEntry{}, wrapped(err))
		return false
	}
	for _, e := range slices.Backward(entries) {
		if !f.Matches(e) || f.Before != "" && e.Place() >= f.Before {
			continue
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot list the audit log: %w", err)
}
