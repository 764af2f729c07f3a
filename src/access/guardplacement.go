package access

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// permitted returns the placement of a request, which considers only regions that the
// identity sees, and chooses one in which it has the permission.
func (is *Instances) permitted(req nf.InstantiateRequest, p nf.Permission) *nf.Placement {
	if req.Placement == nil {
		return nil
	}
	placement := *req.Placement
	placement.Permit = func(ctx context.Context, region string) (bool, nf.PlacementReason, error) {
		sees, err := is.guard.could(ctx, nf.ReadRegion, regionScope(region))
		if err != nil || !sees {
			return false, "", err
		}
		may, err := is.guard.could(ctx, p, nf.Scope{Project: nf.ProjectOf(req.Project), Region: region})
		if err != nil || !may {
			return true, nf.PlacementPermission, err
		}
		return true, "", nil
	}
	placement.Attach = func(ctx context.Context, n nf.Network) (bool, error) {
		return is.guard.could(ctx, nf.ReadNetwork, n.Scope())
	}
	placement.Mount = func(ctx context.Context, v nf.Volume) (bool, error) {
		return is.guard.could(ctx, nf.ReadVolume, v.Scope())
	}
	return &placement
}

// placeable is target for a request with a placement: the identity needs the permission
// in at least one region that it sees.
func (is *Instances) placeable(ctx context.Context, req nf.InstantiateRequest, p nf.Permission) error {
	absent := is.packages.usable(ctx, req.Package)
	if absent != nil && nf.KindOf(absent) != nf.NotFound {
		return absent
	}
	may, err := is.mayAnywhere(ctx, req)
	if err != nil {
		return err
	}
	if may && absent != nil {
		absent = is.packages.find(ctx, req.Package, req.Project, absent)
	}
	if may {
		nf.TrailOf(ctx).Ask(p, newScope(req), req.Package)
		return absent
	}
	return cmp.Or(is.guard.may(ctx, p, newScope(req), req.Package), absent)
}

// mayAnywhere reports whether the identity may use one of the regions.
func (is *Instances) mayAnywhere(ctx context.Context, req nf.InstantiateRequest) (bool, error) {
	for _, err := range is.permittedBy(ctx, req.Placement) {
		return err == nil, err
	}
	return false, nil
}

// permittedBy yields the regions that a placement of the identity permits. An error ends
// the sequence.
func (is *Instances) permittedBy(ctx context.Context, p *nf.Placement) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for region, err := range is.regions.keeper.RegionsFrom(ctx, nf.Cursor{}) {
			seen, refused := false, nf.PlacementReason("")
			if err == nil {
				seen, refused, err = p.Permit(ctx, region.ID)
			}
			if err != nil {
				yield("", err)
				return
			}
			if seen && refused != nf.PlacementPermission && !yield(region.ID, nil) {
				return
			}
		}
	}
}

// mayLookUp reports whether the templates of a dry run may look up Secrets: the identity
// may instantiate wherever the placement of the dry run may choose.
func (is *Instances) mayLookUp(ctx context.Context, req nf.InstantiateRequest) (bool, error) {
	if req.Placement == nil {
		return is.guard.could(ctx, nf.CreateInstance, newScope(req))
	}
	for region, err := range is.permittedBy(ctx, req.Placement) {
		if err != nil {
			return false, err
		}
		if named := req.Placement.Regions; len(named) > 0 && !slices.Contains(named, region) {
			continue
		}
		req.Region = region
		if may, err := is.guard.could(ctx, nf.CreateInstance, newScope(req)); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// placed removes the regions that the identity may not see from the candidates of an
// operation.
func (g *guard) placed(ctx context.Context, op *nf.Operation) error {
	if op.Instance.Placed == nil {
		return nil
	}
	visible, err := g.visible(ctx, nf.ReadRegion)
	if err != nil {
		return err
	}
	shown := *op.Instance.Placed
	shown.Candidates = slices.DeleteFunc(slices.Clone(shown.Candidates), func(c nf.Candidate) bool { return !visible(regionScope(c.Region)) })
	if len(shown.Candidates) < len(op.Instance.Placed.Candidates) {
		shown.Omitted = 0 // their number would tell of them
	}
	op.Instance.Placed = &shown
	return nil
}
