package access

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// registering returns the check of the regions that clusters of a request become.
func (is *Instances) registering(p nf.Permission) func(context.Context, string) error {
	return func(ctx context.Context, region string) error {
		return is.guard.may(ctx, p, regionScope(region), region)
	}
}

// mayDeregister checks that the identity may deregister the regions that clusters of an
// instance became and, with cascade, terminate the instances there.
func (is *Instances) mayDeregister(ctx context.Context, id string, cascade bool) error {
	in, err := is.instance(ctx, id)
	if err != nil {
		return err
	}
	for _, w := range in.Clusters() {
		if err := is.guard.may(ctx, nf.WriteRegion, regionScope(w.Region), id, w.Region); err != nil {
			return err
		}
		if cascade {
			if err := is.mayVacate(ctx, id, w.Region); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayVacate checks that the identity may terminate all instances in a region. The error
// does not name an instance that it may not see.
func (is *Instances) mayVacate(ctx context.Context, id, region string) error {
	for user, err := range is.regions.holds.HoldersIn(ctx, nf.Holding{Region: region}, nil) {
		if err != nil {
			return err
		}
		if user.Subject.Kind != nf.InstanceSubject {
			continue
		}
		sees, err := is.guard.could(ctx, nf.ReadInstance, user.Scope)
		if err != nil {
			return err
		}
		if !sees {
			return nf.E(nf.Conflict, "terminate", "VNF instance "+id, nf.Violations{{Message: "its cloud region " + region + " is used by VNF instances that you may not see"}})
		}
		if err := is.guard.may(ctx, nf.RemoveInstance, user.Scope, id, user.Subject.ID); err != nil {
			return err
		}
	}
	return nil
}
