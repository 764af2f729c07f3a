package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
)

// Config configures the store to back up or restore into. KV and Raw are
// required.
type Config struct {
	KV      store.KV         // as its users see it
	Raw     store.KV         // the same store, including the records about itself
	Skip    []string         // key prefixes that are neither written nor restored, and do not count as content
	Replace bool             // restore into a store that is not empty, and delete its records
	Version int              // latest version of the contents that can be restored; 0: any
	Clock   func() time.Time // nil: time.Now
}

// Write writes all records to w, encrypted to the recipients. Each of them can
// read the backup. It returns nf.Conflict if the store has no version yet or
// its restore is incomplete, nf.Invalid if the recipients cannot be combined,
// and errors of the store. After an error the output is not a backup, and
// Restore rejects it.
func Write(ctx context.Context, c Config, w io.Writer, recipients ...age.Recipient) (Summary, error) {
	if err := c.complete(); err != nil {
		return Summary{}, err
	}
	present, err := c.present(ctx)
	if err != nil {
		return Summary{}, err
	}
	sealed, err := age.Encrypt(w, recipients...)
	if err != nil {
		return Summary{}, nf.E(nf.Invalid, "encrypt", "the backup", err)
	}
	e, err := newEncoder(sealed, present, c.Clock().UTC().Truncate(time.Second))
	if err != nil {
		return Summary{}, failWrite(err)
	}
	for entry, err := range c.KV.List(ctx, "", "") {
		if err != nil {
			return Summary{}, failWrite(err)
		}
		if c.skips(entry.Key) {
			continue
		}
		if err := e.entry(entry.Key, entry.Value); err != nil {
			return Summary{}, failWrite(err)
		}
	}
	summary, err := e.end()
	if err := errors.Join(err, sealed.Close()); err != nil {
		return Summary{}, failWrite(err)
	}
	return summary, nil
}

func failWrite(err error) error { return fmt.Errorf("cannot write the backup: %w", err) }

func (c *Config) complete() error {
	if c.KV == nil || c.Raw == nil {
		return errors.New("cannot create or restore a backup: KV and Raw are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return nil
}

// present returns the version of the store. It returns nf.Conflict if a restore
// is incomplete or the store has no version.
func (c *Config) present(ctx context.Context) (int, error) {
	switch cut, err := c.cut(ctx); {
	case err != nil:
		return 0, err
	case cut:
		return 0, &nf.Error{Kind: nf.Conflict, Op: "back up", Subject: "the store", Reason: nf.ReasonRestore,
			Err: errors.New("the restore of a backup into it is incomplete")}
	}
	rec, err := schema.Read(ctx, c.Raw)
	if nf.KindOf(err) == nf.NotFound {
		return 0, nf.E(nf.Conflict, "back up", "the store", errors.New("it has no version: it is new, or must first be migrated by starting the service"))
	}
	return rec.Version, err
}

// cut reports whether a restore was started and has not ended.
func (c *Config) cut(ctx context.Context) (bool, error) {
	_, err := c.Raw.Get(ctx, schema.RestoreKey)
	if nf.KindOf(err) == nf.NotFound {
		return false, nil
	}
	return err == nil, err
}

// skips reports whether a key is excluded from backups.
func (c *Config) skips(key string) bool {
	return strings.HasPrefix(key, schema.Prefix) ||
		slices.ContainsFunc(c.Skip, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Check reads a whole backup and returns its summary. It returns nf.Forbidden
// if none of the identities decrypts it, nf.Unsupported if a later release
// wrote it, and nf.Invalid if it is incomplete or damaged.
func Check(ctx context.Context, r io.Reader, identities ...age.Identity) (Summary, error) {
	return read(ctx, r, identities, func(string, []byte) error { return nil })
}

// Restore writes the records of a backup into the store. It reads the backup
// twice, from the current position of r, and writes nothing before it has
// verified all of it.
//
// It returns the errors of Check, and nf.Unsupported if the contents have a
// later version than Config.Version. It returns nf.Conflict if the store has
// records, unless Config.Replace is set or they come from an interrupted
// restore. After any other error the restore must be repeated before the store
// can be used.
func Restore(ctx context.Context, c Config, r io.ReadSeeker, identities ...age.Identity) (Summary, error) {
	if err := c.complete(); err != nil {
		return Summary{}, err
	}
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return Summary{}, failRead(err)
	}
	seen, err := Check(ctx, r, identities...)
	if err != nil {
		return Summary{}, err
	}
	if c.Version > 0 && seen.Schema > c.Version {
		return Summary{}, nf.E(nf.Unsupported, nf.ReasonRestore, "the backup",
			fmt.Errorf("its data has version %d, but this release supports version %d", seen.Schema, c.Version))
	}
	if err := c.vacant(ctx); err != nil {
		return Summary{}, err
	}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return Summary{}, failRead(err)
	}
	if err := c.fill(ctx, seen, r, identities); err != nil {
		return Summary{}, fmt.Errorf("the restore is incomplete; run it again: %w", err)
	}
	return seen, nil
}

// vacant returns nf.Conflict if the store has records.
func (c *Config) vacant(ctx context.Context) error {
	if cut, err := c.cut(ctx); err != nil || cut || c.Replace {
		return err
	}
	n := 0
	for e, err := range c.Raw.List(ctx, "", "") {
		if err != nil {
			return fmt.Errorf("cannot check whether the store is empty: %w", err)
		}
		if !c.skips(e.Key) {
			n++
		}
	}
	if n > 0 {
		return nf.E(nf.Conflict, "restore into", "the store", fmt.Errorf("it is not empty: it has %d records", n))
	}
	return nil
}

// fill replaces the content of the store with the backup. Order matters: the
// restore mark is written first and deleted last.
func (c *Config) fill(ctx context.Context, want Summary, r io.Reader, identities []age.Identity) error {
	mark, err := json.Marshal(struct {
		Begun  time.Time `json:"begun"`
		Backup string    `json:"backup"`
	}{c.Clock().UTC(), want.SHA256})
	if err != nil {
		return err
	}
	if _, err := c.Raw.Put(ctx, schema.RestoreKey, mark, store.Any); err != nil {
		return err
	}
	if err := c.clear(ctx); err != nil {
		return err
	}
	err = schema.Write(ctx, c.Raw, schema.Record{Version: want.Schema, Created: c.Clock().UTC()})
	if err != nil {
		return err
	}
	got, err := read(ctx, r, identities, func(key string, value []byte) error {
		if c.skips(key) {
			return nil
		}
		_, err := c.KV.Put(ctx, key, value, store.Any)
		return err
	})
	if err != nil {
		return err
	}
	if got.SHA256 != want.SHA256 {
		return nf.E(nf.Conflict, nf.ReasonRestore, "the backup", errors.New("it changed while it was read"))
	}
	return c.Raw.Delete(ctx, schema.RestoreKey, store.Any)
}

// clear deletes the existing records.
func (c *Config) clear(ctx context.Context) error {
	for e, err := range store.Parts(ctx, c.Raw, store.PartSize) {
		if err != nil {
			return err
		}
		if c.skips(e.Key) {
			continue
		}
		if err := nf.IgnoreNotFound(c.Raw.Delete(ctx, e.Key, store.Any)); err != nil {
			return err
		}
	}
	return nil
}
