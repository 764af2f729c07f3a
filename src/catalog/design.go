package catalog

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Designs returns the UUIDs of the services and resources of SDC that packages were
// fetched from, without those that are marked as deleted.
func (c *Catalog) Designs(ctx context.Context) ([]string, error) {
	var out []string
	for p, err := range c.PackagesFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return nil, err
		}
		if p.Design != "" && p.Withdrawn.IsZero() && !slices.Contains(out, p.Design) {
			out = append(out, p.Design)
		}
	}
	return out, nil
}

// Withdraw marks the packages that were fetched from a service or resource that SDC has
// deleted, and returns their number. They can be used as before.
func (c *Catalog) Withdraw(ctx context.Context, design string) (n int, err error) {
	for p, err := range c.PackagesFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return n, err
		}
		if p.Design != design || !p.Withdrawn.IsZero() {
			continue
		}
		_, err := c.packages.Update(ctx, p.ID, func(stored *nf.Package) error {
			if stored.Design == design { // not fetched again in the meantime
				stored.Withdrawn = c.cfg.Clock().UTC()
			}
			return nil
		})
		if nf.IgnoreNotFound(err) != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
