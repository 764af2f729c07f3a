package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/onapstore"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// importer brings what an ONAP plugin has stored into the store.
type importer struct {
	*service

	from   *onapstore.Store
	blobs  store.Blobs
	ledger *bundle.Ledger
	dry    bool
	report *importReport

	// What was not brought over, or is there and different, by its key.
	bad map[string]bool
}

func newImporter(from *onapstore.Store, parts *service, db store.KV, dry bool) *importer {
	return &importer{
		service: parts, from: from, blobs: store.NewBlobs(db), ledger: parts.bundles.Ledger(), dry: dry,
		report: newImportReport(dry), bad: map[string]bool{},
	}
}

// run brings everything over. Its error is that of the store, or of the
// databases that are read; what is wrong with single things is in the report.
func (im *importer) run(ctx context.Context, seen onapstore.Installation) error {
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

// findings tells what was odd about the records.
func (im *importer) findings(seen onapstore.Installation) {
	for _, f := range seen.Findings {
		if f.Lost {
			im.report.add(importItem{Kind: "record", Name: f.Place.String(), Result: importFailed, Reason: f.Message})
			continue
		}
		im.report.warn("%s: %s", f.Place, f.Message)
	}
	if n := seen.Subscriptions; n > 0 {
		im.report.warn("%d status subscriptions are not brought over: their clients have to make them again", n)
	}
	if n := seen.HealthChecks; n > 0 {
		im.report.warn("the results of %d health checks are not brought over", n)
	}
}

// add tells of one thing, unless the store itself has failed.
func (im *importer) add(it importItem, err error) error {
	if err != nil {
		return err
	}
	im.report.add(it)
	if it.Result != imported && it.Result != importedThere {
		im.bad[it.Kind+" "+it.Name] = true
	}
	return nil
}

func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}
