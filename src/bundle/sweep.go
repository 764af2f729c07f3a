package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// composing is how old a package is left alone at: whoever composed it may be
// about to use it.
const composing = time.Hour

// Sweep removes the composed packages that no definition, profile and template
// compose to any more. One that is used stays, whether Packages knows of the use
// or used does.
func (b *Bundles) Sweep(ctx context.Context, used func(id string) bool) error {
	wanted, err := b.wanted(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell which packages are composed: %w", err)
	}
	records, err := b.composed.List(ctx, "")
	if err != nil {
		return err
	}
	for _, record := range records {
		if wanted[record.ID] || b.cfg.Clock().Sub(record.Created) < composing || used(record.ID) {
			continue
		}
		err := nf.UnlessGone(b.cfg.Packages.RemovePackage(ctx, record.ID))
		if nf.KindOf(err) == nf.Conflict {
			continue // an instance uses it
		}
		if err == nil {
			err = nf.UnlessGone(b.composed.Delete(ctx, record.ID))
		}
		if err != nil {
			return fmt.Errorf("cannot remove the composed package %s: %w", record.ID, err)
		}
	}
	return nil
}

// wanted returns the ids of all that could be composed now.
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
