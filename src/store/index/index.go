package index

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// MostRecords is the default limit of the records of a table. The index of a table with
// so many records takes about 40 MiB.
const MostRecords = 200_000

// The pauses before a table is filled again after a failure.
const (
	shortestPause = time.Second
	longestPause  = 5 * time.Minute
	settled       = time.Minute // after which a failure is the first one again
)

// Config configures an index. KV is required. Without Tables, the index finds nothing.
type Config struct {
	KV     store.KV
	Tables []Table
	// Changes reports the writes of all processes to the database below KV, and Open
	// returns an entry of the database as KV does. Both are nil if only this process
	// writes, and only through the index.
	Changes store.Watcher
	Open    func(context.Context, store.Entry) (store.Entry, error)
	Most    int          // limit of the records of a table; 0: MostRecords
	Logger  *slog.Logger // nil: discard
}

// Table is a table to index.
type Table struct {
	prefix    string
	summarize func(value []byte) (nf.Summary, error)
}

// Of returns the table whose keys begin with the prefix ("instances/").
func Of[T interface{ Summary() nf.Summary }](prefix string) Table {
	return Table{prefix, func(value []byte) (nf.Summary, error) {
		var v T
		err := store.Decode(value, &v)
		return v.Summary(), err
	}}
}

// Status is the state of the index of a table.
type Status struct {
	Records int
	Filled  bool // the index is in use
}

// Store is a store.KV with an index. Create it with New, and run it with Run. It is
// safe for concurrent use.
type Store struct {
	cfg     Config
	tables  []*table
	filling chan struct{} // one table at a time
}

var (
	_ store.KV     = (*Store)(nil)
	_ store.Writer = (*Store)(nil)
	_ store.Finder = (*Store)(nil)
)

// New returns a store with an index. It fails if a required field is missing.
func New(cfg Config) (*Store, error) {
	if cfg.KV == nil || (cfg.Changes == nil) != (cfg.Open == nil) {
		return nil, errors.New("cannot create an index: KV, and both or none of Changes and Open are required")
	}
	if cfg.Most <= 0 {
		cfg.Most = MostRecords
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, filling: make(chan struct{}, 1)}
	for _, t := range cfg.Tables {
		s.tables = append(s.tables, newTable(t, cfg.Most))
	}
	return s, nil
}

// Status returns the state of the index of each table, by its prefix without "/".
func (s *Store) Status() map[string]Status {
	out := map[string]Status{}
	for _, t := range s.tables {
		out[strings.TrimSuffix(t.prefix, "/")] = t.status()
	}
	return out
}

// Version returns a number that differs after each change of a record of a table. It is not
// known before the table is filled, and after a write with an unknown result.
func (s *Store) Version(prefix string) (version uint64, known bool) {
	for _, t := range s.tables {
		if t.prefix == prefix {
			return t.current()
		}
	}
	return 0, false
}

// Find implements store.Finder.
func (s *Store) Find(prefix, start string, c nf.Cursor) (iter.Seq[string], bool) {
	for _, t := range s.tables {
		if t.prefix == prefix {
			return t.find(start, c)
		}
	}
	return nil, false
}

// Run fills the index and follows the store until the context ends. If that fails, it
// starts again after a pause.
func (s *Store) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, t := range s.tables {
		group.Go(func() error {
			s.run(ctx, t)
			return nil
		})
	}
	return group.Wait()
}

func (s *Store) run(ctx context.Context, t *table) {
	for failures := 0; ; failures++ {
		began := time.Now()
		filled, err := s.follow(ctx, t)
		if filled && time.Since(began) > settled {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errFull):
			s.cfg.Logger.WarnContext(ctx, "a table has too many records for its index: lists with filters read all records", "table", t.prefix, "limit", s.cfg.Most)
			return
		}
		s.cfg.Logger.WarnContext(ctx, "failed to keep the index of a table: it will be filled again", "table", t.prefix, "error", err)
		delay.For(ctx, delay.Doubled(shortestPause, longestPause, failures), nil)
	}
}

// follow fills the index of a table and follows the changes, until the context ends or
// a change may be missing. It reports whether the index was filled. The changes are
// followed from before the table is read, so that the index is as recent as they are when
// it is filled.
func (s *Store) follow(ctx context.Context, t *table) (filled bool, err error) {
	t.empty()
	defer t.setFilled(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if s.cfg.Changes != nil {
		changes, err := s.cfg.Changes.Watch(ctx, t.prefix)
		if err != nil {
			return false, err
		}
		group.Go(func() error { return s.apply(ctx, t, changes) })
	}
	group.Go(func() error {
		if err := s.fill(ctx, t); err != nil {
			return err
		}
		t.setFilled(true)
		filled = true
		select {
		case <-ctx.Done():
			return nil
		case <-t.full:
			return errFull
		}
	})
	err = group.Wait()
	return filled, err
}

// errFull is the error of a table with too many records.
var errFull = errors.New("the table has too many records")

// fill reads a table.
func (s *Store) fill(ctx context.Context, t *table) error {
	select {
	case s.filling <- struct{}{}:
		defer func() { <-s.filling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for e, err := range s.cfg.KV.List(ctx, t.prefix, "") {
		if err != nil {
			return err
		}
		t.keep(e, nil)
		select {
		case <-t.full:
			return errFull
		default:
		}
	}
	return nil
}

// apply keeps the changes of a table until the sequence ends.
func (s *Store) apply(ctx context.Context, t *table, changes iter.Seq2[store.Change, error]) error {
	for c, err := range changes {
		switch {
		case err != nil:
			return err
		case c.Deleted:
			t.remove(c.Key, c.Revision)
			continue
		case !t.older(c.Key, c.Revision):
			continue // this process has made the change
		}
		e, err := s.cfg.Open(ctx, c.Entry)
		if err != nil {
			t.doubt(c.Key) // the reader of the record gets the error
			continue
		}
		t.keep(e, nil)
	}
	return nil
}
