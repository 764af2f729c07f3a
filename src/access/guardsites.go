package access

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SiteKeeper builds sites and stores their records.
type SiteKeeper interface {
	SiteChanges
	SiteRecords
}

// SiteChanges starts operations on sites.
type SiteChanges interface {
	Create(ctx context.Context, req nf.SiteRequest) (nf.Operation, error)
	Change(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error)
	Remove(ctx context.Context, id string, req nf.SiteRemoveRequest) (nf.Operation, error)
}

// SiteRecords reads sites.
type SiteRecords interface {
	Site(ctx context.Context, id string) (nf.Site, error)
	Sites(ctx context.Context) ([]nf.Site, error)
}

// Sites gives access to a SiteKeeper with the permissions of the identity in
// the context. A site belongs to its region and to no project. Reading requires
// region:read there, and changing requires region:write.
type Sites struct {
	guard   *guard
	regions *Regions
	keeper  SiteKeeper
}

// NewSites returns the guarded sites of a keeper.
func NewSites(guarded *Guarded, keeper SiteKeeper) Sites {
	return Sites{guarded.guard, guarded.Regions, keeper}
}

func siteScope(region string) nf.Scope { return nf.Scope{Region: region} }

// writable returns the site if the identity may change it.
func (s Sites) writable(ctx context.Context, id string) (nf.Site, error) {
	in, err := s.Site(ctx, id)
	if err != nil {
		return in, err
	}
	return in, s.guard.may(ctx, nf.WriteRegion, siteScope(in.Region), id)
}

// CreateSite starts to build a site. It requires region:write, and also for the cloud
// of its machines.
func (s Sites) CreateSite(ctx context.Context, req nf.SiteRequest) (nf.Operation, error) {
	if err := s.guard.may(ctx, nf.WriteRegion, siteScope(req.Site.Region), req.Site.ID); err != nil {
		return nf.Operation{}, err
	}
	if m := req.Site.Machines; m != nil {
		if err := s.guard.may(ctx, nf.WriteRegion, siteScope(m.Cloud), req.Site.ID); err != nil {
			return nf.Operation{}, err
		}
	}
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Create(ctx, req) })
}

// ChangeSite starts a change of a site. It requires region:write.
func (s Sites) ChangeSite(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error) {
	if _, err := s.writable(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Change(ctx, id, req) })
}

// RemoveSite starts the removal of a site. It requires region:write, and with
// cascade instance:terminate for each VNF instance in its region.
func (s Sites) RemoveSite(ctx context.Context, id string, req nf.SiteRemoveRequest, cascade bool) (nf.Operation, error) {
	in, err := s.writable(ctx, id)
	if err != nil {
		return nf.Operation{}, err
	}
	if in.Registered && in.Busy == "" {
		if req.Instances, err = s.users(ctx, in, cascade); err != nil {
			return nf.Operation{}, err
		}
	}
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Remove(ctx, id, req) })
}

// users returns the instances that are deleted with a site. Without cascade it
// fails if there are any. With cascade it fails if the identity may not see or
// terminate all of them. Users of other kinds are not deleted: the keeper refuses
// to remove their region. The error names only instances that the identity may see.
func (s Sites) users(ctx context.Context, in nf.Site, cascade bool) ([]string, error) {
	of := nf.Holding{Region: in.Region}
	users, err := gathered(s.regions.holds.HoldersIn(ctx, of, nil))
	if err != nil || len(users) == 0 {
		return nil, err
	}
	shown, err := gathered(s.regions.Users(ctx, of))
	if err != nil {
		return nil, nf.IgnoreNotFound(err)
	}
	if hidden := len(users) - len(shown); !cascade || hidden > 0 {
		var v nf.Violations
		for _, user := range shown {
			v = append(v, nf.Violation{Message: "its region is used by " + user.Noun()})
		}
		if hidden > 0 {
			v = append(v, nf.Violation{Message: fmt.Sprintf("its region is used by %d VNF instances that you may not see", hidden)})
		}
		return nil, nf.E(nf.Conflict, "remove", "site "+in.ID, v)
	}
	var ids []string
	for _, user := range users {
		if user.Subject.Kind != nf.InstanceSubject {
			continue
		}
		ids = append(ids, user.Subject.ID)
		if err := s.guard.may(ctx, nf.RemoveInstance, user.Scope, in.ID, user.Subject.ID); err != nil {
			return nil, err
		}
	}
	nf.TrailOf(ctx).Ask(nf.WriteRegion, siteScope(in.Region), in.ID)
	return ids, nil
}

// gathered collects the items of a sequence, or returns its first error.
func gathered[T any](users iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for user, err := range users {
		if err != nil {
			return nil, err
		}
		out = append(out, user)
	}
	return out, nil
}

// Site returns a site. It requires region:read.
func (s Sites) Site(ctx context.Context, id string) (nf.Site, error) {
	in, err := s.keeper.Site(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		// Without an identity the error is nf.Unauthenticated, too.
		return nf.Site{}, errors.Join(s.guard.see(ctx, nf.ReadRegion, nf.Scope{}, nil), absent("site", id))
	}
	if err != nil {
		return nf.Site{}, err
	}
	if err := s.guard.see(ctx, nf.ReadRegion, siteScope(in.Region), absent("site", id)); err != nil {
		return nf.Site{}, err
	}
	return in, nil
}

// Sites returns the sites that the identity may read.
func (s Sites) Sites(ctx context.Context) ([]nf.Site, error) {
	visible, err := s.guard.visible(ctx, nf.ReadRegion)
	if err != nil {
		return nil, err
	}
	all, err := s.keeper.Sites(ctx)
	if err != nil {
		return nil, err
	}
	return keep(all, func(in nf.Site) nf.Scope { return siteScope(in.Region) }, visible), nil
}
