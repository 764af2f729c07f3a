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
	keys, err := cfg.keys(ctx, db.sole, log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &vault{Store: seal.New(db.KV, keys), db: db, keys: keys}, nil
}

// keys returns the keys that seal the store. Only a store that nobody else can
// have open is given new ones.
func (c Config) keys(ctx context.Context, sole bool, log *slog.Logger) (seal.Keys, error) {
	if len(c.Keys) > 0 {
		return seal.Parse(c.Keys)
	}
	if c.Store == "memory" && c.KeyFile == "" {
		return seal.Generate()
	}
	file := c.keyFile()
	keys, err := seal.Follow(file, nil)
	if err == nil {
		return keys, nil
	}
	if nf.KindOf(err) != nf.NotFound || !sole {
		return nil, err
	}
	ring, err := seal.Generate()
	if err != nil {
		return nil, err
	}
	if err := ring.Save(file); err != nil && nf.KindOf(err) != nf.Exists {
		return nil, err
	}
	log.WarnContext(ctx, "a key was made that the store is sealed with: keep a copy of it elsewhere", "file", file)
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
