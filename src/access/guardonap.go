package access

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// bundleScope is the scope of ONAP's resource bundles: they belong to the
// default project and to no region.
func bundleScope() nf.Scope { return nf.Scope{Project: nf.DefaultProject} }

// ONAP checks the permissions for the requests of ONAP's API that it serves
// without the engine and the catalog.
type ONAP struct{ guard *guard }

// MayReadBundle returns nil if the identity may read ONAP's resource bundles,
// and nf.Forbidden or nf.Unauthenticated otherwise. It requires package:read. The
// names are those in the request, for the audit log.
func (o *ONAP) MayReadBundle(ctx context.Context, names ...string) error {
	return o.guard.may(ctx, nf.ReadPackage, bundleScope(), auditable(names)...)
}

// MayWriteBundle returns nil if the identity may change ONAP's resource bundles,
// and nf.Forbidden or nf.Unauthenticated otherwise. It requires package:write.
func (o *ONAP) MayWriteBundle(ctx context.Context, names ...string) error {
	return o.guard.may(ctx, nf.WritePackage, bundleScope(), auditable(names)...)
}

// MayCreateInstance returns nil if the identity may create an instance of ONAP's
// in a region, and nf.Forbidden or nf.Unauthenticated otherwise. It requires
// instance:instantiate. Such an instance belongs to the default project.
func (o *ONAP) MayCreateInstance(ctx context.Context, region string) error {
	return o.guard.may(ctx, nf.CreateInstance, nf.Scope{Project: nf.DefaultProject, Region: region})
}

// MayChangeInstance returns nil if the identity may change an instance, and
// nf.Forbidden or nf.Unauthenticated otherwise. It requires instance:change. Use
// it for changes of records that the engine does not have.
func (o *ONAP) MayChangeInstance(ctx context.Context, in nf.Instance) error {
	return o.guard.may(ctx, nf.ChangeInstance, instanceScope(in), in.ID)
}

// MayRemoveInstance returns nil if the identity may terminate an instance, and
// nf.Forbidden or nf.Unauthenticated otherwise. It requires instance:terminate.
func (o *ONAP) MayRemoveInstance(ctx context.Context, in nf.Instance) error {
	return o.guard.may(ctx, nf.RemoveInstance, instanceScope(in), in.ID)
}

// MayWriteRegion returns nil if the identity may register a region, and
// nf.Forbidden or nf.Unauthenticated otherwise. It requires region:write.
func (o *ONAP) MayWriteRegion(ctx context.Context, region string) error {
	return o.guard.may(ctx, nf.WriteRegion, regionScope(region), region)
}

// VisibleObjects returns a function that reports whether the identity may see an
// object of a region. The function takes the id of the instance that owns the
// object; "" means that no instance does. It reads that instance, once. An
// identity that may register the region sees all objects, because it has access
// to the region anyway. Another identity needs region:read, and sees the objects
// of the region's instances that it may read.
func (o *ONAP) VisibleObjects(ctx context.Context, region string) (func(owner string) (bool, error), error) {
	err := o.MayWriteRegion(ctx, region)
	if err == nil {
		return func(string) (bool, error) { return true, nil }, nil
	}
	if nf.KindOf(err) != nf.Forbidden {
		return nil, err
	}
	if err := o.guard.may(ctx, nf.ReadRegion, regionScope(region), region); err != nil {
		return nil, err
	}
	sees, err := o.guard.sees(ctx)
	if err != nil {
		return nil, err
	}
	return func(owner string) (bool, error) {
		if owner == "" {
			return false, nil
		}
		in, visible, err := sees(owner)
		return visible && in.Region == region, err
	}, nil
}

// auditable returns the names that are valid as subjects in the audit log.
func auditable(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return nf.CheckID("", name) != nil })
}
