package access

import (
	"context"
	"fmt"
	"iter"
	"maps"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Regions gives access to regions with the permissions of the identity in the
// context.
type Regions struct {
	guard    *guard
	packages *Packages
	keeper   RegionKeeper
	holds    HoldKeeper
	imports  RegionImports
}

var _ RegionKeeper = (*Regions)(nil)

// Register implements RegionRecords. It requires region:write.
func (rs *Regions) Register(ctx context.Context, r nf.Region) (nf.Region, error) {
	if err := rs.guard.may(ctx, nf.WriteRegion, regionScope(r.ID), r.ID); err != nil {
		return nf.Region{}, err
	}
	if err := rs.guard.own(ctx, &r.Request); err != nil {
		return nf.Region{}, err
	}
	made, err := rs.keeper.Register(ctx, r)
	return made, rs.guard.shown(ctx, err)
}

// Enlist implements RegionKeeper. It requires region:write.
func (rs *Regions) Enlist(ctx context.Context, r nf.Region) (nf.Region, error) {
	if err := rs.guard.may(ctx, nf.WriteRegion, regionScope(r.ID), r.ID); err != nil {
		return nf.Region{}, err
	}
	made, err := rs.keeper.Enlist(ctx, r)
	return made, rs.guard.shown(ctx, err)
}

// Region implements RegionRecords. It requires region:read. A region belongs to
// no project, so a grant for any project suffices.
func (rs *Regions) Region(ctx context.Context, id string) (nf.Region, error) {
	r, err := rs.region(ctx, id)
	if err != nil {
		return nf.Region{}, rs.guard.shown(ctx, err)
	}
	return r, rs.narrow(ctx, &r)
}

// narrow removes the tenants whose instances the identity may not see from a
// region, unless the identity may write the region.
func (rs *Regions) narrow(ctx context.Context, r *nf.Region) error {
	id, err := rs.guard.asker(ctx)
	if err != nil || len(r.Tenants) == 0 || rs.guard.authorizer.Allow(ctx, id, nf.WriteRegion, regionScope(r.ID)) == nil {
		return err
	}
	visible := rs.guard.authorizer.Visible(ctx, id, nf.ReadInstance)
	r.Tenants = maps.Clone(r.Tenants)
	maps.DeleteFunc(r.Tenants, func(project string, _ nf.Tenant) bool {
		return project != nf.AnyProject && !visible(nf.Scope{Project: project, Region: r.ID})
	})
	return nil
}

func (rs *Regions) region(ctx context.Context, id string) (nf.Region, error) {
	gone := absent("cloud region", id)
	if err := rs.guard.see(ctx, nf.ReadRegion, regionScope(id), gone); err != nil {
		return nf.Region{}, err
	}
	r, err := rs.keeper.Region(ctx, id)
	return r, orAbsent(err, gone)
}

// usable checks that the identity may read the region that a request names.
func (rs *Regions) usable(ctx context.Context, id string) error {
	said := missing("cloud_region_id", id)
	if err := rs.guard.see(ctx, nf.ReadRegion, regionScope(id), said); err != nil {
		return err
	}
	_, err := rs.keeper.Region(ctx, id)
	return orAbsent(err, said)
}

// RegionsFrom implements RegionRecords.
func (rs *Regions) RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error] {
	visible, err := rs.guard.mayRead(ctx, nf.ReadRegion)
	if err != nil {
		return failed[nf.Region](err)
	}
	from.In = visible
	scope := func(r nf.Region) nf.Scope { return regionScope(r.ID) }
	return list[nf.Region]{rs.keeper.RegionsFrom(ctx, from), scope, visible}.shown(func(r nf.Region) (nf.Region, error) {
		err := rs.narrow(ctx, &r)
		return r, err
	})
}

// MayReadAll returns nil if the identity has region:read for every registered region,
// and nf.Forbidden otherwise.
func (rs *Regions) MayReadAll(ctx context.Context) error {
	id, err := rs.guard.asker(ctx)
	if err != nil {
		return err
	}
	visible := rs.guard.authorizer.Visible(ctx, id, nf.ReadRegion)
	nf.TrailOf(ctx).Ask(nf.ReadRegion, nf.Scope{})
	hidden := func(s nf.Scope) bool { return !visible(s) }
	for r, err := range rs.keeper.RegionsFrom(ctx, nf.Cursor{In: hidden}) { // with an index, no visible region is read
		if err != nil {
			return err
		}
		if hidden(regionScope(r.ID)) {
			return nf.E(nf.Forbidden, "authorize", id.String(), fmt.Errorf("missing permission %s for all cloud regions", nf.ReadRegion))
		}
	}
	return nil
}

// UpdateRegion implements RegionRecords. It requires region:write.
func (rs *Regions) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	if err := rs.writable(ctx, id); err != nil {
		return nf.Region{}, err
	}
	r, err := rs.keeper.UpdateRegion(ctx, id, edit)
	return r, rs.guard.shown(ctx, orAbsent(err, absent("cloud region", id)))
}

// RemoveRegion implements RegionRecords. It requires region:write.
func (rs *Regions) RemoveRegion(ctx context.Context, id string) error {
	if err := rs.writable(ctx, id); err != nil {
		return err
	}
	return rs.guard.shown(ctx, orAbsent(rs.keeper.RemoveRegion(ctx, id), absent("cloud region", id)))
}

func (rs *Regions) writable(ctx context.Context, id string) error {
	if _, err := rs.region(ctx, id); err != nil {
		return err
	}
	return rs.guard.may(ctx, nf.WriteRegion, regionScope(id), id)
}

// RegionCapabilities implements RegionKeeper. It requires region:read.
func (rs *Regions) RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error) {
	if _, err := rs.region(ctx, id); err != nil {
		return nf.RegionCapabilities{}, err
	}
	read, err := rs.keeper.RegionCapabilities(ctx, id, fresh)
	return read, orAbsent(err, absent("cloud region", id))
}

// Users yields the holders of a region or a package. It requires region:read or
// package:read, and of the VNF instances yields only those that the caller may see.
// It reads nothing of the others.
func (rs *Regions) Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		visible, err := rs.visibleUsers(ctx, of)
		if err != nil {
			yield(nf.Subject{}, err)
			return
		}
		for holder, err := range rs.holds.HoldersIn(ctx, of, visible) {
			if !yield(holder.Subject, err) {
				return
			}
		}
	}
}

// visibleUsers returns a function that reports whether the identity may see the
// holders of the region or package that are of a kind and in a scope.
func (rs *Regions) visibleUsers(ctx context.Context, of nf.Holding) (func(nf.SubjectKind, nf.Scope) bool, error) {
	var err error
	if of.Region != "" {
		_, err = rs.region(ctx, of.Region)
	} else {
		_, err = rs.packages.pkg(ctx, of.Package)
	}
	if err != nil {
		return nil, err
	}
	visible, err := rs.guard.visible(ctx, nf.ReadInstance)
	return func(kind nf.SubjectKind, s nf.Scope) bool {
		return kind != nf.InstanceSubject && kind != nf.VNFSubject || visible(s)
	}, err
}
