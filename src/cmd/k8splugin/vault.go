package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/backup"
	"github.com/multicloud-k8s/k8splugin/src/store/metered"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// vault is an opened store: sealed, and raw below that.
type vault struct {
	*seal.Store

	db   database
	keys seal.Keys

	mu      sync.Mutex
	records map[string]int // by key, when they were counted last
}

// leases returns the records that a lease lives by: they are rewritten every few
// seconds, and mean nothing in another store.
func leases() []string { return []string{"replicas/", "notifiers/", "rounds/", "siteleases/"} }

// migrations bring a store from one release's form to the next one's.
func migrations(sealed *seal.Store) []schema.Migration {
	return []schema.Migration{
		{Name: "seal every record", Run: func(ctx context.Context) error {
			_, err := sealed.Adopt(ctx)
			return err
		}},
		{Name: "keep each use of a region, package or namespace as a record", Run: func(ctx context.Context) error {
			return errors.Join(store.SpreadUsers(ctx, sealed, "regions/", ""), store.SpreadUsers(ctx, sealed, "packages/", ""),
				store.SpreadUsers(ctx, sealed, "namespaces/", "key"))
		}},
	}
}

// openVault opens the store that the configuration names, in the present form.
func openVault(ctx context.Context, cfg Config, see sight) (*vault, error) {
	v, err := openRaw(ctx, cfg, see.log)
	if err != nil {
		return nil, err
	}
	// Below the seal: what is measured is the database.
	v.db.KV = metered.New(v.db.KV, see.metrics.StoreRequest)
	v.Store = seal.New(v.db.KV, v.keys)
	kek, err := v.keys.Primary(ctx)
	if err == nil {
		err = schema.Open(ctx, schema.Config{Raw: v.db.KV, Sealed: v.Store, SealedBy: kek.ID(), Migrations: migrations(v.Store), Logger: see.log})
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// openRaw opens the store and its keys, whatever form it is in.
func openRaw(ctx context.Context, cfg Config, log *slog.Logger) (*vault, error) {
	db, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	keys, err := cfg.keys(ctx, db, log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &vault{Store: seal.New(db.KV, keys), db: db, keys: keys}, nil
}

// keys returns the encryption keys of the store. If the store has records, the keys
// must include the one that the records are encrypted with. Only a new store that
// no other process can open is given a new key.
func (c Config) keys(ctx context.Context, db database, log *slog.Logger) (seal.Keys, error) {
	inUse, err := keyInUse(ctx, db.KV)
	if err != nil {
		return nil, err
	}
	where, remedy := fmt.Sprintf("key file %q", c.keyFile()), "put the right file there"
	if len(c.Keys) > 0 {
		where, remedy = envPrefix+"KEYS", "set the right keys"
	}
	keys, err := c.givenKeys()
	if err == nil && inUse != "" {
		_, err = keys.Find(ctx, inUse)
	}
	missing := nf.KindOf(err) == nf.NotFound
	switch {
	case err == nil:
		return keys, nil
	case inUse != "" && missing:
		return nil, wrongKeys(fmt.Errorf("the store is encrypted with key %s, which %s does not have: %s", inUse, where, remedy))
	case inUse != "":
		return nil, wrongKeys(fmt.Errorf("the store is encrypted with key %s, which %s does not have (%w): %s", inUse, where, err, remedy))
	case missing && !db.sole:
		return nil, fmt.Errorf("%w: create it with `k8splugin keys init %s`, and give the same file to every replica", err, c.keyFile())
	case !missing:
		return nil, err
	}
	return c.newKeys(ctx, log)
}

// keyInUse returns the id of a key that the store is encrypted with, or "" if
// nothing is encrypted.
func keyInUse(ctx context.Context, kv store.KV) (string, error) {
	id, err := seal.KeyInUse(ctx, kv)
	if err != nil || id != "" {
		return id, err
	}
	rec, err := schema.Read(ctx, kv)
	return rec.SealedBy, nf.UnlessGone(err)
}

func wrongKeys(cause error) error {
	return &nf.Error{Kind: nf.Unreachable, Op: "open", Subject: "the store", Reason: "key", Err: cause}
}

// givenKeys returns the keys that the configuration names, or nf.NotFound.
func (c Config) givenKeys() (seal.Keys, error) {
	if len(c.Keys) > 0 {
		return seal.Parse(c.Keys)
	}
	if c.Store == "memory" && c.KeyFile == "" {
		return seal.Generate()
	}
	return seal.Follow(c.keyFile(), nil)
}

// newKeys creates the key file of a new store, before the first record is written. A
// start that is interrupted in between uses the same file when it is repeated.
func (c Config) newKeys(ctx context.Context, log *slog.Logger) (seal.Keys, error) {
	ring, err := seal.Generate()
	if err != nil {
		return nil, err
	}
	file := c.keyFile()
	if err := ring.Save(file); err != nil && nf.KindOf(err) != nf.Exists {
		return nil, err
	}
	log.WarnContext(ctx, "generated a new store encryption key: back up this file, because the store cannot be read without it", "file", file)
	return seal.Follow(file, nil)
}

// keyFile is where the keys are: beside the data and not among them, so that a
// copy of the data is no copy of the keys.
func (c Config) keyFile() string {
	if c.KeyFile != "" {
		return c.KeyFile
	}
	return strings.TrimRight(c.Data, "/") + ".keys"
}

// healthy asks the store, and the keys when they are in a file.
func (v *vault) healthy(ctx context.Context) error {
	if file, ok := v.keys.(*seal.File); ok {
		if err := file.Healthy(ctx); err != nil {
			return err
		}
	}
	return v.db.healthy(ctx)
}

// KeyStatus implements native.Vault.
func (v *vault) KeyStatus(ctx context.Context) (nf.KeyStatus, error) {
	s, err := v.Status(ctx)
	if err != nil {
		return nf.KeyStatus{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.records = s.Records
	return nf.KeyStatus{Primary: s.Primary, Records: s.Records}, nil
}

// sealed returns how many records each key seals, as they were counted last:
// counting reads them all.
func (v *vault) sealed() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.records)
}

// Backup implements native.Vault.
func (v *vault) Backup(ctx context.Context, recipient string, w io.Writer) error {
	recipients, err := backup.Recipients(recipient)
	if err != nil {
		return fmt.Errorf("cannot take a backup: %w", err)
	}
	_, err = backup.Write(ctx, v.backup(), w, recipients...)
	return err
}

// backup says what a backup of the vault is.
func (v *vault) backup() backup.Config {
	return backup.Config{KV: v.Store, Raw: v.db.KV, Skip: leases(), Version: schema.Version(migrations(v.Store))}
}

var _ store.KV = (*vault)(nil)
