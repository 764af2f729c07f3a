package access

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ParentKeeper changes the parents of regions.
type ParentKeeper interface {
	// Reparent says that the Cluster of a region is in another region now.
	Reparent(ctx context.Context, id, to string) (nf.Region, error)
}

// Parents gives access to a ParentKeeper with the permissions of the identity in the
// context.
type Parents struct {
	regions *Regions
	keeper  ParentKeeper
}

// NewParents returns the guarded parents of a keeper.
func NewParents(guarded *Guarded, keeper ParentKeeper) Parents {
	return Parents{guarded.Regions, keeper}
}

// Reparent implements ParentKeeper. It requires region:write for both regions.
func (p Parents) Reparent(ctx context.Context, id, to string) (nf.Region, error) {
	if err := p.regions.writable(ctx, id); err != nil {
		return nf.Region{}, err
	}
	if err := p.regions.usable(ctx, to); err != nil {
		return nf.Region{}, err
	}
	if err := p.regions.guard.may(ctx, nf.WriteRegion, regionScope(to), id, to); err != nil {
		return nf.Region{}, err
	}
	r, err := p.keeper.Reparent(ctx, id, to)
	return r, p.regions.guard.shown(ctx, err)
}
