package onapimport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/migration"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures an Importer. All fields except Dry are required.
type Config struct {
	Content func(context.Context, onapstore.Content) ([]byte, error) // reads an archive of the plugin
	KV      store.KV
	Bundles *bundle.Bundles
	Regions Regions
	Engine  Engine
	Open    func(nf.Region) (Cluster, error)
	Dry     bool // operations are accepted but not waited for, because they do not run
}

// Regions stores registered regions.
type Regions interface {
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Enlist stores a region without connecting to it.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
}

// Engine adopts instances.
type Engine interface {
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// Adopt accepts the adoption of running objects as an instance.
	Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error)
	// Wait waits until an operation ends, and returns it.
	Wait(ctx context.Context, id string) (nf.Operation, error)
}

// Cluster is the API server of a region.
type Cluster interface {
	// Health returns the status of each ref in the given order: nf.Absent if the
	// owner has no such object, nf.Unknown if the object cannot be read.
	Health(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Health, error)
}

// Importer imports the data of an ONAP plugin into the store. Create one with
// New for each import.
type Importer struct {
	cfg     Config
	blobs   store.Blobs
	records *bundle.InstanceRecords
	report  *migration.Report

	// Items that were not imported, or that exist and differ, by key.
	bad map[string]bool
}

// New returns an Importer. It returns an error if a required field of cfg is
// missing.
func New(cfg Config) (*Importer, error) {
	if cfg.Content == nil || cfg.KV == nil || cfg.Bundles == nil || cfg.Regions == nil || cfg.Engine == nil || cfg.Open == nil {
		return nil, errors.New("cannot import: Content, KV, Bundles, Regions, Engine and Open are required")
	}
	return &Importer{
		cfg: cfg, blobs: store.NewBlobs(cfg.KV), records: cfg.Bundles.InstanceRecords(), report: migration.NewReport(cfg.Dry, kinds()...), bad: map[string]bool{},
	}, nil
}

// Run imports everything that an installation has, and returns the report. The
// error is one of the store or of the databases that Run reads; the report then
// has the items before it. Errors of single items are only in the report. Unless
// the import is dry, the engine must run.
func (im *Importer) Run(ctx context.Context, seen onapstore.Installation) (*migration.Report, error) {
	return im.report, im.run(ctx, seen)
}

func (im *Importer) run(ctx context.Context, seen onapstore.Installation) error {
	im.findings(seen)
	for _, d := range seen.Definitions {
		if err := im.add(im.definition(ctx, d)); err != nil {
			return err
		}
	}
	for _, p := range seen.Profiles {
		if err := im.add(im.profile(ctx, p)); err != nil {
			return err
		}
	}
	for _, t := range seen.Templates {
		if err := im.add(im.template(ctx, t)); err != nil {
			return err
		}
	}
	for _, c := range seen.Connections {
		if err := im.add(im.region(ctx, c)); err != nil {
			return err
		}
	}
	return im.instances(ctx, seen.Instances)
}

// findings reports irregularities of the records.
func (im *Importer) findings(seen onapstore.Installation) {
	for _, f := range seen.Findings {
		if f.Lost {
			im.report.Add(migration.Item{Kind: "record", Name: f.Place.String(), Result: migration.Failed, Reason: f.Message})
			continue
		}
		im.report.Warn("%s: %s", f.Place, f.Message)
	}
	if n := seen.Subscriptions; n > 0 {
		im.report.Warn("%d status subscriptions are not imported: their clients must create them again", n)
	}
	if n := seen.HealthChecks; n > 0 {
		im.report.Warn("the results of %d health checks are not imported", n)
	}
}

// add adds an item to the report. It returns only errors that end the import.
func (im *Importer) add(it migration.Item, err error) error {
	if err != nil {
		return err
	}
	im.report.Add(it)
	if it.Result != migration.Imported && it.Result != migration.Present {
		im.bad[it.Kind+" "+it.Name] = true
	}
	return nil
}

func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// kinds returns the kinds of items, in the order of import.
func kinds() []string {
	return []string{"record", "definition", "profile", "template", "region", "instance", "configuration"}
}
