package access

import (
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// InventoryKeeper knows what A&AI has of instances, networks and cloud regions.
type InventoryKeeper interface {
	Listings(ctx context.Context) iter.Seq2[nf.Listing, error]
	Listing(ctx context.Context, in nf.Instance) (nf.Listing, error)
	Relist(ctx context.Context, in nf.Instance) (nf.Listing, error)
}

// Inventory gives access to an InventoryKeeper with the permissions of the identity in
// the context. A listing belongs to its instance, network or cloud region; store:admin
// gives access to all, including those of deleted ones.
type Inventory struct {
	guard     *guard
	instances *Instances
	networks  Shared
	regions   *Regions
	keeper    InventoryKeeper
}

// NewInventory returns the guarded listings of a keeper.
func NewInventory(guarded *Guarded, networks Shared, keeper InventoryKeeper) Inventory {
	return Inventory{guarded.guard, guarded.Instances, networks, guarded.Regions, keeper}
}

// Listings yields the listings that the identity may see, in the keeper's order.
func (i Inventory) Listings(ctx context.Context) iter.Seq2[nf.Listing, error] {
	ctx, _ = nf.WithTrail(ctx) // what is hidden from a list is no denial
	return func(yield func(nf.Listing, error) bool) {
		sees, err := i.guard.sees(ctx)
		if err != nil {
			yield(nf.Listing{}, err)
			return
		}
		all := i.guard.may(ctx, nf.AdministerStore, nf.Scope{}) == nil
		for l, err := range i.keeper.Listings(ctx) {
			visible := all
			if err == nil && !all {
				visible, err = i.visible(ctx, l, sees)
			}
			if (err != nil || visible) && (!yield(l, err) || err != nil) {
				return
			}
		}
	}
}

func (i Inventory) visible(ctx context.Context, l nf.Listing, sees func(string) (bool, error)) (bool, error) {
	var err error
	switch l.Subject.Kind {
	case nf.InstanceSubject:
		return sees(l.Subject.ID)
	case nf.RegionSubject:
		_, err = i.regions.Region(ctx, l.Subject.ID)
	default:
		_, err = i.networks.Get(ctx, l.Subject.ID)
	}
	return err == nil, nf.IgnoreNotFound(err)
}

// Listing returns the listing of an instance that the identity may see.
func (i Inventory) Listing(ctx context.Context, instance string) (nf.Listing, error) {
	in, err := i.instances.Instance(ctx, instance)
	if err != nil {
		return nf.Listing{}, err
	}
	return i.keeper.Listing(ctx, in)
}

// Relist has an instance compared with A&AI. It requires instance:change.
func (i Inventory) Relist(ctx context.Context, instance string) (nf.Listing, error) {
	in, err := i.instances.Instance(ctx, instance)
	if err != nil {
		return nf.Listing{}, err
	}
	if err := i.guard.may(ctx, nf.ChangeInstance, instanceScope(in), in.ID); err != nil {
		return nf.Listing{}, err
	}
	return i.keeper.Relist(ctx, in)
}
