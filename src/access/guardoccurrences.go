package access

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var (
	_ VNFChanges       = VNFs{}
	_ VNFModifications = VNFs{}
	_ OccurrenceKeeper = VNFs{}
)

// Instantiate implements VNFChanges. It requires instance:instantiate in the project. Unless
// the request is only checked, it also requires it in the region of each VIM, and region:read
// there; and for networks, network:read, or network:write for those that it creates. A region
// that it makes requires region:write, and the region of a VNF on hosts instance:instantiate.
func (vs VNFs) Instantiate(ctx context.Context, id string, req nf.InstantiateVNFRequest) (nf.Occurrence, error) {
	v, err := vs.allowed(ctx, id, nf.CreateInstance)
	if err == nil && !req.Check {
		err = vs.entering(ctx, v, req)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Instantiate(ctx, id, req) })
}

// entering checks the permissions for where a request instantiates a VNF, and for the
// regions that it makes.
func (vs VNFs) entering(ctx context.Context, v nf.VNF, req nf.InstantiateVNFRequest) error {
	hosts, err := vs.making(ctx, v, req)
	if err != nil || hosts {
		return err
	}
	return vs.placed(ctx, v, nf.CreateInstance, connected{req.VIMs, req.Networks, true})
}

// connected is what a request connects a VNF to.
type connected struct {
	vims      map[string]nf.VIMConnectionRequest
	networks  []nf.Attachment
	byDefault bool // without VIMs, the default one is used
}

// placed checks the permission in the regions of a request.
func (vs VNFs) placed(ctx context.Context, v nf.VNF, p nf.Permission, to connected) error {
	if len(to.vims) == 0 && !to.byDefault {
		return nil
	}
	regions, err := vs.keeper.RegionsOf(ctx, to.vims)
	if err != nil {
		return err
	}
	for key, r := range regions {
		hidden := nf.E(nf.NotFound, "use", "the VIM of the connection "+key, nil)
		if err := vs.guard.see(ctx, nf.ReadRegion, regionScope(r.ID), hidden); err != nil {
			return err
		}
		scope := nf.Scope{Project: nf.ProjectOf(v.Project), Region: r.ID}
		if err := errors.Join(vs.guard.may(ctx, p, scope, v.ID, r.ID), vs.attaching(ctx, scope, v.ID, to.networks)); err != nil {
			return err
		}
	}
	return nil
}

// attaching checks that the identity may attach workloads to networks of the VNF's
// project, and create them.
func (vs VNFs) attaching(ctx context.Context, s nf.Scope, id string, networks []nf.Attachment) error {
	for _, a := range networks {
		p := nf.ReadNetwork
		if a.Create != nil {
			p = nf.WriteNetwork
		}
		if err := vs.guard.may(ctx, p, s, id); err != nil {
			return err
		}
	}
	return nil
}

// making checks that the identity may make the regions of a request. Hosts is true if the
// VNF uses no VIM.
func (vs VNFs) making(ctx context.Context, v nf.VNF, req nf.InstantiateVNFRequest) (hosts bool, err error) {
	made, hosts, err := vs.keeper.NewRegions(ctx, v.ID, req)
	if err != nil {
		return hosts, err
	}
	for _, region := range made {
		if err := vs.guard.may(ctx, nf.WriteRegion, regionScope(region), v.ID, region); err != nil {
			return hosts, err
		}
		if !hosts {
			continue
		}
		if err := vs.guard.may(ctx, nf.CreateInstance, nf.Scope{Project: nf.ProjectOf(v.Project), Region: region}, v.ID, region); err != nil {
			return hosts, err
		}
	}
	return hosts, nil
}

// Terminate implements VNFChanges. It requires instance:terminate; for the regions that the
// VNF has made, region:write; and to terminate what uses them, instance:terminate for each
// instance there.
func (vs VNFs) Terminate(ctx context.Context, id string, req nf.TerminateVNFRequest) (nf.Occurrence, error) {
	v, err := vs.allowed(ctx, id, nf.RemoveInstance)
	if err == nil {
		err = vs.removing(ctx, v, req.Extra[nf.CascadeParameter] == true)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Terminate(ctx, id, req) })
}

// removing checks that the identity may remove the regions that a VNF has made and, with
// cascade, terminate what uses them.
func (vs VNFs) removing(ctx context.Context, v nf.VNF, cascade bool) error {
	for _, key := range slices.Sorted(maps.Keys(v.VIMs)) {
		vim := v.VIMs[key]
		if !vim.Made {
			continue
		}
		if err := vs.guard.may(ctx, nf.WriteRegion, regionScope(vim.Region), v.ID, vim.Region); err != nil {
			return err
		}
		if !cascade {
			continue
		}
		if err := vs.instances.mayVacate(ctx, v.ID, vim.Region); err != nil {
			return err
		}
	}
	return nil
}

// Scale implements VNFChanges. It requires instance:change.
func (vs VNFs) Scale(ctx context.Context, id string, req nf.ScaleVNFRequest) (nf.Occurrence, error) {
	if _, err := vs.allowed(ctx, id, nf.ChangeInstance); err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Scale(ctx, id, req) })
}

// Heal implements VNFChanges. It requires instance:change.
func (vs VNFs) Heal(ctx context.Context, id string, req nf.HealVNFRequest) (nf.Occurrence, error) {
	if _, err := vs.allowed(ctx, id, nf.ChangeInstance); err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Heal(ctx, id, req) })
}

// Modify implements VNFModifications. It requires instance:change, also in the regions of
// new VIMs unless the request is only checked, and package:read for a new package.
func (vs VNFs) Modify(ctx context.Context, id string, req nf.ModifyVNFRequest) (nf.Occurrence, error) {
	v, err := vs.allowed(ctx, id, nf.ChangeInstance)
	if err == nil && !req.Check {
		err = vs.placed(ctx, v, nf.ChangeInstance, connected{vims: v.Connected(req.VIMs)})
	}
	if err == nil && req.VNFD != nil && *req.VNFD != v.VNFD.ID {
		err = vs.packaged(ctx, v.Project, *req.VNFD)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Modify(ctx, id, req) })
}

// Connect implements VNFModifications. It requires instance:change, and the permissions for
// networks that Instantiate requires.
func (vs VNFs) Connect(ctx context.Context, id string, req nf.ConnectVNFRequest) (nf.Occurrence, error) {
	v, err := vs.allowed(ctx, id, nf.ChangeInstance)
	if err == nil {
		err = vs.attaching(ctx, v.Scope(), id, req.Networks)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.Connect(ctx, id, req) })
}

// ChangePackage implements VNFModifications. It requires instance:change, also in the
// regions of new VIMs unless the request is only checked, and package:read for the new package.
func (vs VNFs) ChangePackage(ctx context.Context, id string, req nf.ChangeVNFPackageRequest) (nf.Occurrence, error) {
	v, err := vs.allowed(ctx, id, nf.ChangeInstance)
	if err == nil && !req.Check {
		err = vs.placed(ctx, v, nf.ChangeInstance, connected{vims: v.Connected(req.VIMs)})
	}
	if err == nil {
		err = vs.packaged(ctx, v.Project, req.VNFD)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.start(ctx, &req.Key, func() (nf.Occurrence, error) { return vs.keeper.ChangePackage(ctx, id, req) })
}

// Occurrence implements OccurrenceRecords. It requires instance:read.
func (vs VNFs) Occurrence(ctx context.Context, id string) (nf.Occurrence, error) {
	hidden := absent("occurrence", id)
	o, err := vs.keeper.Occurrence(ctx, id)
	if err != nil && nf.KindOf(err) == nf.NotFound {
		_, unknown := vs.guard.asker(ctx)
		return nf.Occurrence{}, errors.Join(unknown, hidden)
	}
	if err == nil {
		err = vs.guard.see(ctx, nf.ReadInstance, o.Scope(), hidden)
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	return vs.shown(ctx, o)
}

// OccurrencesFrom implements OccurrenceRecords.
func (vs VNFs) OccurrencesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Occurrence, error] {
	visible, err := vs.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.Occurrence](err)
	}
	from.In = visible
	return list[nf.Occurrence]{vs.keeper.OccurrencesFrom(ctx, from), nf.Occurrence.Scope, visible}.shown(func(o nf.Occurrence) (nf.Occurrence, error) {
		return vs.shown(ctx, o)
	})
}

// repairable checks that the identity may decide how an occurrence ends: that requires the
// permission that its request did.
func (vs VNFs) repairable(ctx context.Context, id string) error {
	o, err := vs.Occurrence(ctx, id)
	if err != nil {
		return err
	}
	p := nf.ChangeInstance
	switch o.Operation {
	case nf.OccurrenceInstantiate:
		p = nf.CreateInstance
	case nf.OccurrenceTerminate:
		p = nf.RemoveInstance
	default:
	}
	return vs.guard.may(ctx, p, o.Scope(), o.VNF, id)
}

// Retry implements OccurrenceRecovery. It requires the permission for the operation.
func (vs VNFs) Retry(ctx context.Context, id string, key nf.RequestKey) error {
	if err := vs.repairable(ctx, id); err != nil {
		return err
	}
	if err := vs.guard.own(ctx, &key); err != nil {
		return err
	}
	return vs.guard.shown(ctx, vs.keeper.Retry(ctx, id, key))
}

// Rollback implements OccurrenceRecovery. It requires the permission for the operation.
func (vs VNFs) Rollback(ctx context.Context, id string, key nf.RequestKey) error {
	if err := vs.repairable(ctx, id); err != nil {
		return err
	}
	if err := vs.guard.own(ctx, &key); err != nil {
		return err
	}
	return vs.guard.shown(ctx, vs.keeper.Rollback(ctx, id, key))
}

// Fail implements OccurrenceRecovery. It requires the permission for the operation.
func (vs VNFs) Fail(ctx context.Context, id string) (nf.Occurrence, error) {
	if err := vs.repairable(ctx, id); err != nil {
		return nf.Occurrence{}, err
	}
	o, err := vs.keeper.Fail(ctx, id)
	if err != nil {
		return nf.Occurrence{}, vs.guard.shown(ctx, err)
	}
	return vs.shown(ctx, o)
}

// Cancel implements OccurrenceRecovery. It requires the permission for the operation.
func (vs VNFs) Cancel(ctx context.Context, id string, forceful bool) error {
	if err := vs.repairable(ctx, id); err != nil {
		return err
	}
	return vs.guard.shown(ctx, vs.keeper.Cancel(ctx, id, forceful))
}
