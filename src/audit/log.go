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

// Config configures a log. KV is required.
type Config struct {
	KV        store.KV
	File      string           // path; empty: entries are only in the store
	Replica   string           // name of the replica that writes the entries
	Retention time.Duration    // how long entries are kept in the store; default 90 days
	Clock     func() time.Time // default time.Now
	Logger    *slog.Logger     // default: discard
	Failed    func()           // called for each entry that could not be written; default: no-op
}

func (c *Config) complete() error {
	if c.KV == nil {
		return errors.New("cannot create an audit log: KV is required")
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

// Log is the audit log. It is safe for concurrent use.
type Log struct {
	cfg     Config
	entries store.Table[nf.AuditEntry]
	file    *file // nil: no file
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

// Close closes the file. It is called once, after all other calls.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.close()
}

// Record writes an entry, and sets its time and replica. It returns when the
// entry is on disk and in the store. It returns nf.Unreachable if the entry may
// be missing; the caller must then not carry out the request.
func (l *Log) Record(ctx context.Context, e nf.AuditEntry) error {
	e.Time, e.Replica = l.cfg.Clock().UTC(), l.cfg.Replica
	err := l.write(ctx, e)
	if err == nil {
		return nil
	}
	l.cfg.Failed()
	l.cfg.Logger.ErrorContext(ctx, "failed to write an audit entry", "id", e.ID, "phase", e.Phase, "error", err)
	return nf.E(nf.Unreachable, "write", "the audit log", err)
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
	sweepBatch = 1000 // entries deleted in one batch
)

// Run deletes entries older than the retention from the store, and logs the
// head of the file. It does both every hour until the context ends.
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
		l.cfg.Logger.InfoContext(ctx, "audit file head changed", "file", l.cfg.File, "sha256", l.file.head())
	}
	n, err := l.Forget(ctx, l.cfg.Clock().Add(-l.cfg.Retention))
	switch {
	case err != nil && ctx.Err() == nil:
		l.cfg.Logger.WarnContext(ctx, "failed to delete expired audit entries", "error", err)
	case n > 0:
		l.cfg.Logger.InfoContext(ctx, "expired audit entries deleted", "entries", n)
	}
}

// Forget deletes the entries from before a time from the store, and returns
// their number. The file keeps them.
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
			// Another replica may delete them at the same time.
			if err := nf.IgnoreNotFound(l.entries.Delete(ctx, e.Place())); err != nil {
				return forgotten, err
			}
			forgotten++
		}
		if len(old) < sweepBatch {
			return forgotten, nil
		}
	}
}
