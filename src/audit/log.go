package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config is what a log is made of. KV is required.
type Config struct {
	KV        store.KV
	File      string           // empty: entries are in the store only
	Replica   string           // that writes the entries
	Retention time.Duration    // how long entries are kept in the store; default 90 days
	Clock     func() time.Time // default time.Now
	Logger    *slog.Logger     // default: discard
	Failed    func()           // told of every entry that could not be written; default: nobody
}

func (c *Config) complete() error {
	if c.KV == nil {
		return errors.New("cannot make an audit: KV is required")
	}
	if c.Retention <= 0 {
		c.Retention = 90 * 24 * time.Hour
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Failed == nil {
		c.Failed = func() {}
	}
	return nil
}

// Log is the record. It is safe for concurrent use.
type Log struct {
	cfg     Config
	entries store.Table[nf.AuditEntry]
	file    *file // nil: there is none
}

// New returns the log, and opens its file.
func New(cfg Config) (*Log, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, entries: store.NewTable[nf.AuditEntry](cfg.KV, "audit/", "audit entry")}
	if cfg.File != "" {
		l.file = &file{name: cfg.File}
		if err := l.file.begin(); err != nil {
			return nil, fmt.Errorf("cannot open the audit file: %w", err)
		}
	}
	return l, nil
}

// Close closes the file. It is called once, last.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.close()
}

// Record writes an entry down, with the time and the replica. It returns when
// the entry is on disk and in the store, or nf.Unreachable when it may not be:
// then what it announces must not be done.
func (l *Log) Record(ctx context.Context, e nf.AuditEntry) error {
	e.Time, e.Replica = l.cfg.Clock().UTC(), l.cfg.Replica
	err := l.write(ctx, e)
	if err == nil {
		return nil
	}
	l.cfg.Failed()
	l.cfg.Logger.ErrorContext(ctx, "an audit entry could not be written", "id", e.ID, "phase", e.Phase, "error", err)
	return nf.E(nf.Unreachable, "write", "the audit", err)
}

func (l *Log) write(ctx context.Context, e nf.AuditEntry) (err error) {
	if l.file != nil {
		if e.Prev, err = l.file.append(e); err != nil {
			return fmt.Errorf("cannot write to its file: %w", err)
		}
	}
	return l.entries.Insert(ctx, e.Place(), e)
}

const (
	sweepEvery = time.Hour
	sweepBatch = 1000 // entries that are forgotten at once
)

// Run forgets entries that are older than the retention, and logs the head of
// the file, every hour until the context ends.
func (l *Log) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		l.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (l *Log) sweep(ctx context.Context) {
	if l.file != nil {
		l.cfg.Logger.InfoContext(ctx, "the audit file has a new head", "file", l.cfg.File, "sha256", l.file.head())
	}
	n, err := l.Forget(ctx, l.cfg.Clock().Add(-l.cfg.Retention))
	switch {
	case err != nil && ctx.Err() == nil:
		l.cfg.Logger.WarnContext(ctx, "old audit entries could not be forgotten", "error", err)
	case n > 0:
		l.cfg.Logger.InfoContext(ctx, "old audit entries were forgotten", "entries", n)
	}
}

// Forget removes the entries from before a time from the store, and returns how
// many there were. The file keeps them.
func (l *Log) Forget(ctx context.Context, before time.Time) (int, error) {
	forgotten := 0
	for {
		var old []nf.AuditEntry
		for e, err := range l.entries.All(ctx, "") {
			if err != nil {
				return forgotten, err
			}
			if !e.Time.Before(before) || len(old) == sweepBatch {
				break
			}
			old = append(old, e)
		}
		for _, e := range old {
			// Another replica may be at it, too.
			if err := nf.UnlessGone(l.entries.Delete(ctx, e.Place())); err != nil {
				return forgotten, err
			}
			forgotten++
		}
		if len(old) < sweepBatch {
			return forgotten, nil
		}
	}
}
