package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Prefix is the key prefix of records about the store itself. Their values are
// never encrypted.
const Prefix = "meta/"

// RestoreKey is the key of a record that exists while a backup is being
// restored. While it exists, the store's contents are incomplete.
const RestoreKey = Prefix + "restore"

const recordKey = Prefix + "schema"

// Record describes the contents of a store. The JSON form is stored.
type Record struct {
	Version  int       `json:"version"`             // from 1, the version of release 0.1.0
	SealedBy string    `json:"sealed_by,omitempty"` // the primary encryption key of the process that opened it last
	Created  time.Time `json:"created"`
	Migrated time.Time `json:"migrated,omitzero"` // to this version
}

// Migration migrates the contents from one version to the next.
//
// Run does it in place. It may be interrupted anywhere by the end of its
// process. It may run in several replicas at once, and in one while another has
// finished and already uses the store. So it must detect what is already done,
// and overwrite nothing that it has not seen: it writes with the revision that
// it has read.
type Migration struct {
	Name string // for logs and errors: "seal every record"
	Run  func(ctx context.Context) error
}

// Config configures Open. Raw is required.
type Config struct {
	Raw        store.KV    // the store itself
	Sealed     store.KV    // the store as its users see it, with decrypted values; nil: Raw
	SealedBy   string      // the primary encryption key, for the record
	Migrations []Migration // the first leads from version 1 to 2, the last to the current version
	Logger     *slog.Logger
	Clock      func() time.Time // nil: time.Now
}

// Version returns the version that a program with the given migrations writes.
func Version(migrations []Migration) int { return len(migrations) + 1 }

// Open migrates the store to the current version and records it. An empty store
// gets the current version at once.
//
// It returns nf.Unsupported if the store has a later version. It returns
// nf.Conflict with the reason ReasonRestore if a restore was interrupted and must
// be repeated. It returns the error of a migration, or of reading a record:
// nf.Unreachable with the reason ReasonKey if the keys are not those of the store.
func Open(ctx context.Context, config Config) error {
	c, err := config.complete()
	if err != nil {
		return err
	}
	for {
		if err := c.whole(ctx); err != nil {
			return err
		}
		rec, rev, err := c.find(ctx)
		if err != nil {
			return err
		}
		switch present := Version(c.Migrations); {
		case rec.Version > present:
			return nf.E(nf.Unsupported, "use", "the store",
				fmt.Errorf("its data has version %d, but this release supports version %d; use the release that wrote the data, or a later one", rec.Version, present))
		case rec.Version == present:
			return c.check(ctx, rec, rev)
		}
		if err := c.migrate(ctx, rec, rev); err != nil {
			return err
		}
	}
}

func (c Config) complete() (Config, error) {
	if c.Raw == nil {
		return c, errors.New("cannot open the store: Raw is required")
	}
	if c.Sealed == nil {
		c.Sealed = c.Raw
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c, nil
}

// whole returns nf.Conflict if a restore of the store has not ended.
func (c Config) whole(ctx context.Context) error {
	_, err := c.Raw.Get(ctx, RestoreKey)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the state of the store: %w", err)
	}
	return &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "the store", Reason: nf.ReasonRestore,
		Err: errors.New("the restore of a backup into it is incomplete; wait for it or run it again")}
}

// find returns the store's record, and creates it if there is none. The record
// is stored before it is used, so several replicas that find a store without
// one all use the same.
func (c Config) find(ctx context.Context) (Record, store.Revision, error) {
	for {
		rec, rev, err := read(ctx, c.Raw)
		if nf.KindOf(err) != nf.NotFound {
			return rec, rev, err
		}
		rec = Record{Version: 1, Created: c.Clock().UTC()}
		used, err := used(ctx, c.Raw)
		if err != nil {
			return Record{}, 0, err
		}
		if !used {
			rec.Version, rec.SealedBy = Version(c.Migrations), c.SealedBy
		}
		rev, err = write(ctx, c.Raw, rec, store.Absent)
		if nf.KindOf(err) != nf.Exists {
			return rec, rev, err
		}
	}
}

// migrate runs one migration and records it, unless another replica already
// has.
func (c Config) migrate(ctx context.Context, rec Record, rev store.Revision) error {
	next := c.Migrations[rec.Version-1]
	log := c.Logger.With("from", rec.Version, "to", rec.Version+1, "migration", next.Name)
	log.InfoContext(ctx, "store migration started")
	if err := next.Run(ctx); err != nil {
		return fmt.Errorf("cannot migrate the store from version %d to %d (%s): %w", rec.Version, rec.Version+1, next.Name, err)
	}
	rec.Version, rec.Migrated, rec.SealedBy = rec.Version+1, c.Clock().UTC(), c.SealedBy
	if _, err := write(ctx, c.Raw, rec, rev); err != nil && nf.KindOf(err) != nf.Conflict {
		return err
	}
	log.InfoContext(ctx, "store migrated")
	return nil
}

// check reads one record, to verify that the keys are those of the store, and
// records the primary key. If only this record is damaged, the others remain
// usable, so that is not an error.
func (c Config) check(ctx context.Context, rec Record, rev store.Revision) error {
	for _, err := range c.Sealed.List(ctx, "", "") {
		if nf.KindOf(err) == nf.Internal && err != nil {
			c.Logger.ErrorContext(ctx, "failed to decrypt a record", "error", err)
		} else if err != nil {
			return fmt.Errorf("cannot read the store%s: %w", sealedBy(rec), err)
		}
		break
	}
	if rec.SealedBy == c.SealedBy {
		return nil
	}
	rec.SealedBy = c.SealedBy
	_, err := write(ctx, c.Raw, rec, rev)
	if nf.KindOf(err) == nf.Conflict {
		return nil // another replica has recorded its own
	}
	return err
}

func sealedBy(rec Record) string {
	if rec.SealedBy == "" {
		return ""
	}
	return ", last encrypted with key " + rec.SealedBy
}

// Read returns the store's record, or nf.NotFound.
func Read(ctx context.Context, raw store.KV) (Record, error) {
	rec, _, err := read(ctx, raw)
	return rec, err
}

// Write writes the record unconditionally. It is for a caller that fills a
// store while no other process uses it.
func Write(ctx context.Context, raw store.KV, rec Record) error {
	_, err := write(ctx, raw, rec, store.Any)
	return err
}

func read(ctx context.Context, raw store.KV) (Record, store.Revision, error) {
	e, err := raw.Get(ctx, recordKey)
	if err != nil {
		return Record{}, 0, nf.E(nf.KindOf(err), "read", "the version of the store", err)
	}
	rec, err := parse(e.Value)
	if err != nil {
		return Record{}, 0, fmt.Errorf("cannot read the version of the store, stored as %q: %w", recordKey, err)
	}
	return rec, e.Revision, nil
}

// parse ignores unknown fields, so that a later version is not reported as
// damage.
func parse(value []byte) (Record, error) {
	var rec Record
	if err := json.Unmarshal(value, &rec); err != nil {
		return Record{}, err
	}
	if rec.Version < 1 {
		return Record{}, errors.New("invalid version of a store: " + strconv.Itoa(rec.Version))
	}
	return rec, nil
}

func write(ctx context.Context, raw store.KV, rec Record, expected store.Revision) (store.Revision, error) {
	value, err := json.Marshal(rec)
	if err != nil {
		return 0, fmt.Errorf("cannot write the version of the store: %w", err)
	}
	rev, err := raw.Put(ctx, recordKey, value, expected)
	if err != nil {
		return 0, nf.E(nf.KindOf(err), "write", "the version of the store", err)
	}
	return rev, nil
}

// used reports whether the store has any record that is not about the store
// itself.
func used(ctx context.Context, raw store.KV) (bool, error) {
	for e, err := range raw.List(ctx, "", "") {
		if err != nil {
			return false, fmt.Errorf("cannot check whether the store is empty: %w", err)
		}
		if !strings.HasPrefix(e.Key, Prefix) {
			return true, nil
		}
	}
	return false, nil
}
