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
	for _, w := range in.Workloads {
		if err := is.guard.may(ctx, nf.WriteRegion, regionScope(w.Region), id, w.Region); err != nil {
			return err
		}
		if !cascade {
			continue
		}
		for user, err := range is.regions.holds.HoldersIn(ctx, nf.Holding{Region: w.Region}, nil) {
			if err != nil {
				return err
			}
			if user.Subject.Kind != nf.InstanceSubject {
				continue
			}
			if err := is.MayTerminate(ctx, user.Subject.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
