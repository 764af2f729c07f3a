package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// composing is the minimum age of a package that Sweep deletes: a younger one
// may be about to be used by the request that composed it.
const composing = time.Hour

// Sweep deletes composed packages that no present definition, profile and
// template compose to. It keeps a package that is in use according to Packages
// or to used.
func (b *Bundles) Sweep(ctx context.Context, used func(id string) bool) error {
	wanted, err := b.wanted(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the composed packages: %w", err)
	}
	records, err := b.composed.List(ctx, "")
	if err != nil {
		return err
	}
	for _, record := range records {
		if wanted[record.ID] || b.cfg.Clock().Sub(record.Created) < composing || used(record.ID) {
			continue
		}
		err := nf.IgnoreNotFound(b.cfg.Packages.RemovePackage(ctx, record.ID))
		if nf.KindOf(err) == nf.Conflict {
			continue // an instance uses it
		}
		if err == nil {
			err = nf.IgnoreNotFound(b.composed.Delete(ctx, record.ID))
		}
		if err != nil {
			return fmt.Errorf("cannot remove the composed package %s: %w", record.ID, err)
		}
	}
	return nil
}

// wanted returns the ids of all packages that can be composed now.
func (b *Bundles) wanted(ctx context.Context) (map[string]bool, error) {
	wanted := map[string]bool{}
	for d, err := range b.definitions.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		profiles, err := b.Profiles(ctx, d.Name, d.Version)
		if err != nil {
			return nil, err
		}
		templates, err := b.Templates(ctx, d.Name, d.Version)
		if err != nil {
			return nil, err
		}
		for _, p := range profiles {
			wanted[layers{chart: d.Chart, content: d.Content, profile: p}.id()] = true
			for _, t := range templates {
				wanted[templateLayers(t, p).id()] = true
			}
		}
	}
	return wanted, nil
}
