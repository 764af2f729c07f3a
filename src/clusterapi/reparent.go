package clusterapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Reparent says that the Cluster of a region is in another region now, after a move of
// Cluster API's objects (clusterctl move), and reads its Secret there. It returns
// nf.NotFound if one of the regions does not exist, nf.Conflict if the region is not made
// of a Cluster, or if the new parent does not have this Cluster, and otherwise fails as
// Register does. From then on, no instance deregisters the region. It is idempotent.
func (r *Registrar) Reparent(ctx context.Context, id, to string) (nf.Region, error) {
	region, err := r.cfg.Regions.Region(ctx, id)
	if err != nil {
		return nf.Region{}, err
	}
	refused := func(format string, args ...any) (nf.Region, error) {
		return nf.Region{}, nf.E(nf.Conflict, "update", "cloud region "+id, nf.Violations{{Field: "parent.cloud_region_id", Message: fmt.Sprintf(format, args...)}})
	}
	if region.Parent == nil {
		return refused("the cloud region is not made of a Cluster")
	}
	former := *region.Parent
	p := former
	p.Region = to
	parent, err := r.cfg.Open(ctx, p.Region, p.Project)
	if err != nil {
		return nf.Region{}, err
	}
	object, err := cluster(ctx, parent, p)
	switch {
	case err != nil:
		return nf.Region{}, err
	case object == nil:
		return refused("cloud region %s has no Cluster %s/%s", to, p.Workload.Namespace, p.Workload.Cluster)
	}
	source, err := r.secret(ctx, p)
	if err != nil {
		return nf.Region{}, err
	}
	access, err := r.administrator(p, source)
	switch {
	case err != nil:
		return nf.Region{}, err
	case !bytes.Equal(access.CA, region.Access.CA):
		return refused("Cluster %s/%s of cloud region %s is another one: it has another certificate authority", p.Workload.Namespace, p.Workload.Cluster, to)
	}
	changed, err := r.cfg.Regions.UpdateRegion(ctx, id, func(g *nf.Region) error {
		if g.Parent == nil || !g.Parent.Is(former) {
			return nf.E(nf.Conflict, "update", "cloud region "+id, errors.New("its parent was changed by another request"))
		}
		now := *g.Parent
		now.Region = to
		g.Parent, g.Labels = &now, maps.Clone(g.Labels)
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		maps.Copy(g.Labels, now.Labels())
		return nil
	})
	if err != nil {
		return nf.Region{}, err
	}
	return r.refresh(ctx, changed, false)
}
