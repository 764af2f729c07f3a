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

// Prefix is where keys begin that are about the store itself. Their values are
// never sealed.
const Prefix = "meta/"

// RestoreKey is the key of a record that is there while a backup is being
// restored: what else is in the store then is not whole.
const RestoreKey = Prefix + "restore"

const recordKey = Prefix + "schema"

// Record says what the contents of a store are. The JSON form is stored.
type Record struct {
	Version  int       `json:"version"`             // from 1, the first release's, which had no such record
	SealedBy string    `json:"sealed_by,omitempty"` // the primary sealing key of who opened it last
	Created  time.Time `json:"created"`
	Migrated time.Time `json:"migrated,omitzero"` // to this version
}

// Migration leads from one version to the next.
//
// Run does it, in place. It may be cut anywhere, by the end of its process; it
// may run in several replicas at once, and in one while another has finished
// and is at work already. So it recognises what is done already, and replaces
// nothing that it has not seen: it writes with the revision that it has read.
type Migration struct {
	Name string // what it does: "seal every record"
	Run  func(ctx context.Context) error
}

// Config is what a store is opened with. Raw is required.
type Config struct {
	Raw        store.KV    // the store itself
	Sealed     store.KV    // the store as its users see it; nil: Raw
	SealedBy   string      // the primary sealing key, for the record
	Migrations []Migration // the first leads from version 1 to 2; the last one's is the present version
	Logger     *slog.Logger
	Clock      func() time.Time // nil: time.Now
}

// Version returns the version that a program with so many migrations writes.
func Version(migrations []Migration) int { return len(migrations) + 1 }

// Open brings the store to the present version and notes it. An empty store
// gets it at once.
//
// It fails with nf.Unsupported when the store is of a later version,
// nf.Conflict and the reason "restore" when a restore was cut and has to be
// repeated, with the error of a migration, and with that of reading a record:
// nf.Unreachable and the reason "key" when the keys are not those of the store.
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
				fmt.Errorf("its contents are of version %d, and this program knows version %d: use the release that wrote them, or a later one", rec.Version, present))
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

// whole refuses a store that was restored in part.
func (c Config) whole(ctx context.Context) error {
	_, err := c.Raw.Get(ctx, RestoreKey)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the state of the store: %w", err)
	}
	return &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "the store", Reason: "restore",
		Err: errors.New("the restore of a backup into it has not ended: let it end, or repeat it")}
}

// find returns the store's record, and writes it first when there is none. The
// record exists before anything is done on the strength of it, so of many who
// find a store without one, all go by the same.
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

// migrate takes one step and notes it, unless somebody else has.
func (c Config) migrate(ctx context.Context, rec Record, rev store.Revision) error {
	next := c.Migrations[rec.Version-1]
	log := c.Logger.With("from", rec.Version, "to", rec.Version+1, "migration", next.Name)
	log.InfoContext(ctx, "the store is being migrated")
	if err := next.Run(ctx); err != nil {
		return fmt.Errorf("cannot migrate the store from version %d to %d (%s): %w", rec.Version, rec.Version+1, next.Name, err)
	}
	rec.Version, rec.Migrated, rec.SealedBy = rec.Version+1, c.Clock().UTC(), c.SealedBy
	if _, err := write(ctx, c.Raw, rec, rev); err != nil && nf.KindOf(err) != nf.Conflict {
		return err
	}
	log.InfoContext(ctx, "the store is migrated")
	return nil
}

// check reads one record, to see that the keys are those of the store, and
// notes the primary key. That just this record is damaged is no reason to keep
// all others from being used.
func (c Config) check(ctx context.Context, rec Record, rev store.Revision) error {
	for _, err := range c.Sealed.List(ctx, "") {
		if nf.KindOf(err) == nf.Internal && err != nil {
			c.Logger.ErrorContext(ctx, "a record is damaged", "error", err)
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
		return nil // another replica has noted its own
	}
	return err
}

func sealedBy(rec Record) string {
	if rec.SealedBy == "" {
		return ""
	}
	return ", last sealed by key " + rec.SealedBy
}

// Read returns the store's record, or nf.NotFound.
func Read(ctx context.Context, raw store.KV) (Record, error) {
	rec, _, err := read(ctx, raw)
	return rec, err
}

// Write puts the record whatever is there. It is for who fills a store by
// himself, while nobody else uses it.
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
		return Record{}, 0, fmt.Errorf("cannot read the version of the store, kept as %q: %w", recordKey, err)
	}
	return rec, e.Revision, nil
}

// parse ignores fields that it does not know: a later version must be told from
// damage.
func parse(value []byte) (Record, error) {
	var rec Record
	if err := json.Unmarshal(value, &rec); err != nil {
		return Record{}, err
	}
	if rec.Version < 1 {
		return Record{}, errors.New("there is no version " + strconv.Itoa(rec.Version))
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

// used reports whether there is anything in the store but what is about it.
func used(ctx context.Context, raw store.KV) (bool, error) {
	for e, err := range raw.List(ctx, "") {
		if err != nil {
			return false, fmt.Errorf("cannot see whether the store is empty: %w", err)
		}
		if !strings.HasPrefix(e.Key, Prefix) {
			return true, nil
		}
	}
	return false, nil
}
