package access

import (
	"cmp"
	"context"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Instances gives access to VNF instances with the permissions of the identity
// in the context.
type Instances struct {
	guard      *guard
	regions    *Regions
	packages   *Packages
	operations *Operations
	engine     InstanceEngine
	scoped     ScopedRecords
}

var _ InstanceEngine = (*Instances)(nil)

// Instantiate implements Changes. It requires instance:instantiate in the
// project and region, region:read and package:read.
func (is *Instances) Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	inOwnProject(ctx, &req.Project)
	req.MayAttach, req.MayUse, req.MayRegister = is.attaching(nf.WriteNetwork), is.using(), is.registering(nf.WriteRegion)
	req.Placement = is.permitted(req, nf.CreateInstance)
	return is.operations.begin(ctx, &req.Options, is.target(ctx, req, nf.CreateInstance), func() (nf.Operation, error) {
		return is.engine.Instantiate(ctx, req)
	})
}

// PreviewInstantiate implements Previews. It requires instance:read in the
// project and region, region:read and package:read.
func (is *Instances) PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	inOwnProject(ctx, &req.Project)
	req.Placement = is.permitted(req, nf.ReadInstance)
	err := is.target(ctx, req, nf.ReadInstance)
	if err != nil {
		return nf.Preview{}, err
	}
	if req.Secrets, err = is.mayLookUp(ctx, req); err != nil {
		return nf.Preview{}, err
	}
	req.MayAttach, req.MayUse, req.MayRegister = is.attaching(nf.ReadNetwork), is.using(), is.registering(nf.ReadRegion)
	preview, err := is.engine.PreviewInstantiate(ctx, req)
	return is.guard.previewed(ctx, preview, err)
}

// previewed returns the preview, or the error, without the ids of hidden
// instances.
func (g *guard) previewed(ctx context.Context, p nf.Preview, err error) (nf.Preview, error) {
	if err != nil {
		return nf.Preview{}, g.shown(ctx, err)
	}
	p.Changes, err = filtered(ctx, g.mentions(), p.Changes, ofChange)
	return p, err
}

func newScope(req nf.InstantiateRequest) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(req.Project), Region: req.Region}
}

// target checks that the identity may read the region and the package that a
// request names, and that it has the permission. Without the permission, it does
// not learn whether they exist.
func (is *Instances) target(ctx context.Context, req nf.InstantiateRequest, p nf.Permission) error {
	if req.Namespace == "" {
		req.Namespace = "default"
	}
	if err := req.Validate(); err != nil {
		return err
	}
	if req.Placement != nil {
		return is.placeable(ctx, req, p)
	}
	err := is.regions.usable(ctx, req.Region)
	if nf.KindOf(err) == nf.NotFound && is.guard.allows(ctx, p, newScope(req)) {
		err = is.regions.find(ctx, req.Region, err)
	}
	if err == nil {
		err = is.packages.usable(ctx, req.Package)
		if nf.KindOf(err) == nf.NotFound && is.guard.allows(ctx, p, newScope(req)) {
			err = is.packages.find(ctx, req.Package, req.Project, err)
		}
	}
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return err
	}
	return cmp.Or(is.guard.may(ctx, p, newScope(req), req.Region, req.Package), err)
}

// Upgrade implements Changes. It requires instance:change, and package:read for
// a package that the instance does not already use.
func (is *Instances) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	denied := is.allowed(ctx, id, nf.ChangeInstance)
	if denied != nil {
		req.Edit = onlyAgain
	}
	return is.operations.begin(ctx, &req.Options, denied, func() (nf.Operation, error) {
		return is.engine.Upgrade(ctx, id, is.withUses(ctx, req, nf.WriteNetwork, nf.WriteRegion))
	})
}

// PreviewUpgrade implements Previews. It requires instance:read, and
// package:read as Upgrade does.
func (is *Instances) PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error) {
	in, err := is.instance(ctx, id)
	if err != nil {
		return nf.Preview{}, err
	}
	if req.Secrets, err = is.guard.could(ctx, nf.ChangeInstance, instanceScope(in)); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewUpgrade(ctx, id, is.withUses(ctx, req, nf.ReadNetwork, nf.ReadRegion))
	return is.guard.previewed(ctx, preview, err)
}

// attaching returns the check of the networks that a request attaches workloads to. The
// identity must see a network that exists, and must have the permission to create one.
func (is *Instances) attaching(creates nf.Permission) func(context.Context, nf.Network, bool) error {
	return func(ctx context.Context, n nf.Network, create bool) error {
		if create {
			return is.guard.may(ctx, creates, n.Scope(), nf.SharedID(n.Region, n.Name))
		}
		return is.guard.see(ctx, nf.ReadNetwork, n.Scope(), absent("network", n.ID))
	}
}

// using returns the check of the volumes that claims of a request bind: the identity must
// see them.
func (is *Instances) using() func(context.Context, nf.Volume) error {
	return func(ctx context.Context, v nf.Volume) error {
		return is.guard.see(ctx, nf.ReadVolume, v.Scope(), absent("volume", v.ID))
	}
}

// withUses makes an upgrade check that the identity may read a new package, new
// networks and new volumes, and has the permission for those that it creates.
func (is *Instances) withUses(ctx context.Context, req nf.UpgradeRequest, creates, registers nf.Permission) nf.UpgradeRequest {
	edit := req.Edit
	req.MayAttach, req.MayUse, req.MayRegister = is.attaching(creates), is.using(), is.registering(registers)
	req.Edit = func(s *nf.Spec) error {
		before := *s
		if err := edit(s); err != nil {
			return err
		}
		if s.Package != before.Package && s.Validate() == nil { // otherwise the engine reports it
			return is.packages.usable(ctx, s.Package)
		}
		return nil
	}
	return req
}

// Rollback implements Changes. It requires instance:change.
func (is *Instances) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return is.operations.begin(ctx, &req.Options, is.allowed(ctx, id, nf.ChangeInstance), func() (nf.Operation, error) {
		return is.engine.Rollback(ctx, id, req)
	})
}

// PreviewRollback implements Previews. It requires instance:read.
func (is *Instances) PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewRollback(ctx, id, req)
	return is.guard.previewed(ctx, preview, err)
}

// Terminate implements Changes. It requires instance:terminate; and region:write for each
// region that a cluster of the instance became, unless the clusters stay; and with cascade,
// instance:terminate for each instance there.
func (is *Instances) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	denied := is.allowed(ctx, id, nf.RemoveInstance)
	if denied == nil && !req.Orphan {
		denied = is.mayDeregister(ctx, id, req.Cascade)
	}
	return is.operations.begin(ctx, &req.Options, denied, func() (nf.Operation, error) {
		return is.engine.Terminate(ctx, id, req)
	})
}

// PreviewTerminate implements Previews. It requires instance:read.
func (is *Instances) PreviewTerminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Preview, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewTerminate(ctx, id, req)
	return is.guard.previewed(ctx, preview, err)
}

// MayTerminate returns the error that Terminate returns for an identity that may
// not terminate the instance.
func (is *Instances) MayTerminate(ctx context.Context, id string) error {
	return is.allowed(ctx, id, nf.RemoveInstance)
}

// allowed checks that the identity may change an instance.
func (is *Instances) allowed(ctx context.Context, id string, p nf.Permission) error {
	in, err := is.instance(ctx, id)
	if err != nil {
		return err
	}
	return is.guard.may(ctx, p, instanceScope(in), id)
}

// Configure implements Configurer. It requires instance:change, and package:read
// for each package that is not yet among the instance's amendments.
func (is *Instances) Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	denied := is.allowed(ctx, id, nf.ChangeInstance)
	if denied != nil {
		req.Edit = onlyAgain
	}
	return is.operations.begin(ctx, &req.Options, denied, func() (nf.Operation, error) {
		return is.engine.Configure(ctx, id, is.withAmendments(ctx, req))
	})
}

// PreviewConfigure implements ConfigurerPreviews. It requires instance:read, and package:read as
// Configure does.
func (is *Instances) PreviewConfigure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Preview, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewConfigure(ctx, id, is.withAmendments(ctx, req))
	return is.guard.previewed(ctx, preview, err)
}

// withAmendments makes a configuration check that the identity may read the new
// packages.
func (is *Instances) withAmendments(ctx context.Context, req nf.ConfigureRequest) nf.ConfigureRequest {
	edit := req.Edit
	req.Edit = func(s *nf.Spec) error {
		had := map[string]bool{}
		for _, a := range s.Amendments {
			had[a.Package] = true
		}
		if err := edit(s); err != nil {
			return err
		}
		for _, a := range s.Amendments {
			if had[a.Package] {
				continue
			}
			if err := is.packages.usable(ctx, a.Package); err != nil {
				return err
			}
		}
		return nil
	}
	return req
}

// Adopt implements Configurer. It requires the permissions that Instantiate does.
func (is *Instances) Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error) {
	inOwnProject(ctx, &req.Project)
	req.MayAttach, req.MayUse, req.MayRegister = is.attaching(nf.WriteNetwork), is.using(), is.registering(nf.WriteRegion)
	return is.operations.begin(ctx, &req.Options, is.target(ctx, req.InstantiateRequest, nf.CreateInstance), func() (nf.Operation, error) {
		return is.engine.Adopt(ctx, req)
	})
}

// PreviewAdopt implements ConfigurerPreviews. It requires the permissions that Adopt does,
// because it reads the record of the release, which is a Secret.
func (is *Instances) PreviewAdopt(ctx context.Context, req nf.AdoptRequest) (nf.Preview, error) {
	inOwnProject(ctx, &req.Project)
	if err := is.target(ctx, req.InstantiateRequest, nf.CreateInstance); err != nil {
		return nf.Preview{}, err
	}
	req.MayAttach, req.MayUse, req.MayRegister = is.attaching(nf.ReadNetwork), is.using(), is.registering(nf.ReadRegion)
	preview, err := is.engine.PreviewAdopt(ctx, req)
	return is.guard.previewed(ctx, preview, err)
}

// PreviewTest implements ConfigurerPreviews. It requires instance:read.
func (is *Instances) PreviewTest(ctx context.Context, id string, req nf.TestRequest) (nf.Preview, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewTest(ctx, id, req)
	return is.guard.previewed(ctx, preview, err)
}

// Test implements Configurer. It requires instance:change.
func (is *Instances) Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	return is.operations.begin(ctx, &req.Options, is.allowed(ctx, id, nf.ChangeInstance), func() (nf.Operation, error) {
		return is.engine.Test(ctx, id, req)
	})
}

// Act implements Configurer. It requires instance:change.
func (is *Instances) Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	return is.operations.begin(ctx, &req.Options, is.allowed(ctx, id, nf.ChangeInstance), func() (nf.Operation, error) {
		return is.engine.Act(ctx, id, req)
	})
}

// PreviewAct implements ConfigurerPreviews. It requires instance:read.
func (is *Instances) PreviewAct(ctx context.Context, id string, req nf.ActRequest) (nf.Preview, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Preview{}, err
	}
	preview, err := is.engine.PreviewAct(ctx, id, req)
	return is.guard.previewed(ctx, preview, err)
}

// Instance implements InstanceRecords. It requires instance:read, as all its
// methods do.
func (is *Instances) Instance(ctx context.Context, id string) (nf.Instance, error) {
	in, err := is.instance(ctx, id)
	if err != nil {
		return nf.Instance{}, err
	}
	return in, is.guard.mentions().filter(ctx, &in.Mentions)
}

func (is *Instances) instance(ctx context.Context, id string) (nf.Instance, error) {
	gone := absent("VNF instance", id)
	in, err := is.engine.Instance(ctx, id)
	if err == nil {
		err = is.guard.see(ctx, nf.ReadInstance, instanceScope(in), gone)
	}
	if err != nil {
		return nf.Instance{}, orAbsent(err, gone)
	}
	return in, nil
}

// Instances returns all instances, ordered by id.
func (is *Instances) Instances(ctx context.Context) ([]nf.Instance, error) {
	return gathered(is.InstancesFrom(ctx, "", nf.Cursor{}))
}

// InstancesFrom yields the instances of a region, or of all if it is empty, after the
// cursor and ordered by id.
func (is *Instances) InstancesFrom(ctx context.Context, region string, from nf.Cursor) iter.Seq2[nf.Instance, error] {
	visible, err := is.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.Instance](err)
	}
	from.In = visible
	m := is.guard.mentions()
	return list[nf.Instance]{is.scoped.InstancesIn(ctx, region, from), instanceScope, visible}.shown(func(in nf.Instance) (nf.Instance, error) {
		err := m.filter(ctx, &in.Mentions)
		return in, err
	})
}

// Revisions implements InstanceRecords.
func (is *Instances) Revisions(ctx context.Context, id string) ([]nf.Revision, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nil, err
	}
	return is.engine.Revisions(ctx, id)
}

// Revision implements InstanceRecords.
func (is *Instances) Revision(ctx context.Context, id string, number int) (nf.Revision, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nf.Revision{}, err
	}
	return is.engine.Revision(ctx, id, number)
}

// Health implements InstanceRecords.
func (is *Instances) Health(ctx context.Context, id string) ([]nf.Health, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nil, err
	}
	return is.engine.Health(ctx, id)
}

// Pods implements InstanceRecords.
func (is *Instances) Pods(ctx context.Context, id string) ([]nf.Pod, error) {
	if _, err := is.instance(ctx, id); err != nil {
		return nil, err
	}
	return is.engine.Pods(ctx, id)
}
