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
	"github.com/multicloud-k8s/k8splugin/src/store/cache"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/store/metered"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// secureStore is an opened store, with and without encryption.
type secureStore struct {
	kv        store.KV    // what the parts use
	encrypted *seal.Store // the encryption alone
	db        database
	keys      seal.Keys
	keyID     string // of the primary key when the store was opened

	mu      sync.Mutex
	records map[string]int // by key, at the last count
}

// leases returns the prefixes of lease records. They are rewritten every few
// seconds, and are useless in another store.
func leases() []string {
	return []string{"replicas/", "notifications/replicas/", "notifications/shards/", "handovers/replicas/", "handovers/shards/", "aai/replicas/", "aai/leader/", "aairegions/replicas/", "aairegions/leader/", "sdc/replicas/", "sdc/leader/", "vnfnotifications/replicas/", "vnfnotifications/shards/", "vnfnotifications/distribution/", "vnfalarms/watch/", "vnfperformance/watch/"}
}

// openSecureStore opens the configured store, decorates it unless decorate is nil, and
// migrates it to the current schema.
func openSecureStore(ctx context.Context, cfg Config, obs observability, decorate func(store.KV) store.KV) (*secureStore, error) {
	v, err := openOver(ctx, cfg, obs.log, func(kv store.KV) store.KV {
		if decorate != nil {
			kv = decorate(kv)
		}
		// Meter below the encryption, to measure the database only.
		return metered.New(kv, obs.metrics.StoreRequest)
	})
	if err == nil && v.db.sole {
		v.kv = cache.New(v.encrypted) // above the encryption: what is kept need not be decrypted again
	}
	return v, err
}

// openOver opens the configured store, puts a decorator between it and the
// encryption, and migrates it to the current schema.
func openOver(ctx context.Context, cfg Config, log *slog.Logger, decorate func(store.KV) store.KV) (*secureStore, error) {
	v, err := openRaw(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	v.db.KV = decorate(v.db.KV)
	v.encrypted = seal.New(v.db.KV, v.keys)
	kek, err := v.keys.Primary(ctx)
	if err == nil {
		err = schema.Open(ctx, schema.Config{Raw: v.db.KV, Sealed: v.encrypted, SealedBy: kek.ID(), Migrations: migrations(), Logger: log})
	}
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.kv, v.keyID = v.encrypted, kek.ID()
	return v, nil
}

// member returns the name of a part in a group of Kafka. It is empty if other processes
// may have the store open, because a name must be that of one client.
func (v *secureStore) member(part string) string {
	if !v.db.sole {
		return ""
	}
	return "k8splugin-" + v.keyID + "-" + part
}

// migrations lead from the stores of 0.1.0 to those of this release.
func migrations() []schema.Migration {
	nothing := func(context.Context) error { return nil }
	return []schema.Migration{
		// 0.1.0 cannot read either. This release reads both forms.
		{Name: "compress records, and let small plans be in the records of their blobs", Run: nothing},
	}
}

// openRaw opens the store and its keys without migration.
func openRaw(ctx context.Context, cfg Config, log *slog.Logger) (*secureStore, error) {
	db, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	keys, err := cfg.keys(ctx, db, log)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &secureStore{encrypted: seal.New(db.KV, keys), db: db, keys: keys}, nil
}

// keys returns the encryption keys of the store. If the store has records, the
// keys must include the one that encrypts them. A key is generated only for a
// new store that no other process can open.
func (c Config) keys(ctx context.Context, db database, log *slog.Logger) (seal.Keys, error) {
	inUse, err := seal.KeyInUse(ctx, db.KV)
	if err != nil {
		return nil, err
	}
	file, where, remedy := c.keyFile(), fmt.Sprintf("key file %q", c.keyFile()), "put the right file there"
	if len(c.Keys) > 0 {
		file, where, remedy = "FILE", envPrefix+"KEYS", "set the right keys"
	}
	if c.KMS != "" {
		remedy = "check the key management service, and then whether these are the right keys"
	}
	service, err := keyService(c.KMS)
	if err != nil {
		return nil, err
	}
	keys, err := c.givenKeys(ctx, service)
	if err == nil && inUse != "" {
		_, err = keys.Find(ctx, inUse)
	}
	missing := nf.KindOf(err) == nf.NotFound
	switch {
	case err == nil:
		return keys, nil
	case nf.ReasonOf(err) == nf.ReasonKMS || errors.Is(err, seal.ErrPlaintext) || errors.Is(err, seal.ErrEncrypted):
		return nil, adviseKMS(err, file, c.KMS)
	case inUse != "" && missing:
		return nil, wrongKeys(fmt.Errorf("the store is encrypted with key %s, which %s does not have: %s", inUse, where, remedy))
	case inUse != "":
		return nil, wrongKeys(fmt.Errorf("the store is encrypted with key %s, which %s does not have (%w): %s", inUse, where, err, remedy))
	case missing && !db.sole:
		return nil, fmt.Errorf("%w: create it with `k8splugin keys init %s`, and give the same file to every replica", err, c.keyFile())
	case !missing:
		return nil, err
	}
	return c.newKeys(ctx, service, log)
}

func wrongKeys(cause error) error {
	return &nf.Error{Kind: nf.Unreachable, Op: "open", Subject: "the store", Reason: nf.ReasonKey, Err: cause}
}

// givenKeys returns the configured keys, or nf.NotFound.
func (c Config) givenKeys(ctx context.Context, service seal.KeyService) (seal.Keys, error) {
	if len(c.Keys) > 0 {
		return seal.Parse(ctx, c.Keys, service)
	}
	if c.Store == "memory" && c.KeyFile == "" {
		return seal.Generate()
	}
	return seal.Follow(ctx, c.keyFile(), service, nil)
}

// newKeys creates the key file of a new store before the first record is
// written. After an interrupted start, the next start uses that file.
func (c Config) newKeys(ctx context.Context, service seal.KeyService, log *slog.Logger) (seal.Keys, error) {
	ring, err := seal.Generate()
	if err != nil {
		return nil, err
	}
	file := c.keyFile()
	if err := ring.Save(ctx, file, service); err != nil && nf.KindOf(err) != nf.Exists {
		return nil, err
	}
	log.WarnContext(ctx, "generated a new store encryption key: back up this file, because the store cannot be read without it", "file", file)
	return seal.Follow(ctx, file, service, nil)
}

// keyFile returns the path of the key file. By default it is next to the data
// folder, not in it, so that a copy of the data does not include the keys.
func (c Config) keyFile() string {
	if c.KeyFile != "" {
		return c.KeyFile
	}
	return strings.TrimRight(c.Data, "/") + ".keys"
}

// healthy checks the store, and the key file if there is one.
func (v *secureStore) healthy(ctx context.Context) error {
	if file, ok := v.keys.(*seal.File); ok {
		if err := file.Healthy(ctx); err != nil {
			return err
		}
	}
	return v.db.healthy(ctx)
}

// index adds an index to the store.
func (v *secureStore) index(log *slog.Logger) (*index.Store, error) {
	cfg := index.Config{KV: v.kv, Tables: indexes(), Logger: log}
	switch {
	case v.db.changes != nil:
		cfg.Changes, cfg.Open = v.db.changes, v.encrypted.Open
	case !v.db.sole:
		cfg.Tables = nil // writes of other replicas are unknown
	}
	s, err := index.New(cfg)
	if err == nil {
		v.kv = s
	}
	return s, err
}

// indexes returns the tables whose lists have filters, except those with few records.
func indexes() []index.Table {
	return []index.Table{
		index.Of[nf.Region]("regions/"), index.Of[nf.Package]("packages/"), index.Of[nf.Instance]("instances/"),
		index.Of[nf.Operation]("operations/"), index.Of[nf.AuditEntry]("audit/"), index.Of[nf.VNF]("vnfs/"), index.Of[nf.Occurrence]("occurrences/"),
	}
}

// Reencrypt implements access.StoreKeeper. It skips leases, because they are
// rewritten all the time.
func (v *secureStore) Reencrypt(ctx context.Context) (nf.KeyStatus, error) {
	if _, err := v.encrypted.Reseal(ctx, leases()...); err != nil {
		return nf.KeyStatus{}, err
	}
	return v.KeyStatus(ctx)
}

// KeyStatus implements access.StoreKeeper.
func (v *secureStore) KeyStatus(ctx context.Context) (nf.KeyStatus, error) {
	s, err := v.encrypted.Status(ctx)
	if err != nil {
		return nf.KeyStatus{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.records = s.Records
	return nf.KeyStatus{Primary: s.Primary, Records: s.Records}, nil
}

// sealed returns the number of records that each key encrypts, as of the last
// count. Counting would read all records.
func (v *secureStore) sealed() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.records)
}

// Backup implements access.StoreKeeper.
func (v *secureStore) Backup(ctx context.Context, recipient string, w io.Writer) error {
	recipients, err := backup.Recipients(recipient)
	if err != nil {
		return fmt.Errorf("cannot create a backup: %w", err)
	}
	_, err = backup.Write(ctx, v.backup(), w, recipients...)
	return err
}

// backup returns the backup configuration of the store.
func (v *secureStore) backup() backup.Config {
	return backup.Config{KV: v.encrypted, Raw: v.db.KV, Skip: leases(), Version: schema.Version(migrations())}
}

// Close closes the database.
func (v *secureStore) Close() error { return v.encrypted.Close() }
