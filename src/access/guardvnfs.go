package access

import (
	"context"
	"errors"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VNFKeeper is the ledger of SOL003.
type VNFKeeper interface {
	VNFRecords
	VNFChanges
	VNFModifications
	OccurrenceKeeper
	VNFResolver
}

// VNFRecords creates, reads and deletes VNFs.
type VNFRecords interface {
	Create(ctx context.Context, v nf.VNF) (nf.VNF, error)
	VNF(ctx context.Context, id string) (nf.VNF, error)
	VNFsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNF, error] // ordered by id
	Delete(ctx context.Context, id string) error
}

// VNFChanges starts occurrences that change what runs.
type VNFChanges interface {
	Instantiate(ctx context.Context, id string, req nf.InstantiateVNFRequest) (nf.Occurrence, error)
	Terminate(ctx context.Context, id string, req nf.TerminateVNFRequest) (nf.Occurrence, error)
	Scale(ctx context.Context, id string, req nf.ScaleVNFRequest) (nf.Occurrence, error)
	Heal(ctx context.Context, id string, req nf.HealVNFRequest) (nf.Occurrence, error)
}

// VNFModifications starts occurrences that change what a VNF is.
type VNFModifications interface {
	Modify(ctx context.Context, id string, req nf.ModifyVNFRequest) (nf.Occurrence, error)
	Connect(ctx context.Context, id string, req nf.ConnectVNFRequest) (nf.Occurrence, error)
	ChangePackage(ctx context.Context, id string, req nf.ChangeVNFPackageRequest) (nf.Occurrence, error)
}

// OccurrenceKeeper reads occurrences, and decides how they end.
type OccurrenceKeeper interface {
	OccurrenceRecords
	OccurrenceRecovery
}

// OccurrenceRecords reads occurrences.
type OccurrenceRecords interface {
	Occurrence(ctx context.Context, id string) (nf.Occurrence, error)
	OccurrencesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Occurrence, error] // ordered by id
}

// OccurrenceRecovery decides how occurrences end.
type OccurrenceRecovery interface {
	Retry(ctx context.Context, id string, key nf.RequestKey) error
	Rollback(ctx context.Context, id string, key nf.RequestKey) error
	Fail(ctx context.Context, id string) (nf.Occurrence, error)
	Cancel(ctx context.Context, id string, forceful bool) error
}

// VNFResolver finds what requests for VNFs name.
type VNFResolver interface {
	// PackageOf returns the package of a project with a VNF descriptor, or nf.Unsupported.
	PackageOf(ctx context.Context, project, vnfd string) (nf.Package, error)
	// RegionsOf returns the regions of connections, by their keys, or nf.NotFound.
	RegionsOf(ctx context.Context, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.Region, error)
	// NewRegions returns the regions that an instantiation makes. A VNF on hosts uses no VIM.
	NewRegions(ctx context.Context, id string, req nf.InstantiateVNFRequest) (made []string, hosts bool, err error)
}

// VNFs gives access to a VNFKeeper with the permissions of the identity in the context. A
// VNF belongs to its project and, while it is instantiated, to its region. Reading it and
// its occurrences requires instance:read there.
type VNFs struct {
	guard     *guard
	regions   *Regions
	packages  *Packages
	instances *Instances
	keeper    VNFKeeper
}

// NewVNFs returns the guarded VNFs of a keeper.
func NewVNFs(guarded *Guarded, keeper VNFKeeper) VNFs {
	return VNFs{guarded.guard, guarded.Regions, guarded.Packages, guarded.Instances, keeper}
}

var _ VNFRecords = VNFs{}

// Create implements VNFRecords. It requires instance:instantiate in the project, and
// package:read.
func (vs VNFs) Create(ctx context.Context, v nf.VNF) (nf.VNF, error) {
	inOwnProject(ctx, &v.Project)
	if err := vs.guard.own(ctx, &v.Request); err != nil {
		return nf.VNF{}, err
	}
	if v.Project != "" {
		if faults := nf.CheckID("project", v.Project); faults != nil {
			return nf.VNF{}, nf.E(nf.Invalid, "create", "VNF "+v.Name, faults)
		}
	}
	if err := vs.guard.may(ctx, nf.CreateInstance, v.Scope()); err != nil {
		return nf.VNF{}, err
	}
	if err := vs.packaged(ctx, v.Project, v.VNFD.ID); err != nil {
		return nf.VNF{}, err
	}
	v, err := vs.keeper.Create(ctx, v)
	if err == nil {
		nf.TrailOf(ctx).Ask(nf.CreateInstance, v.Scope(), v.ID)
	}
	return v, err
}

// packaged returns nf.Unsupported unless the identity may read the package of a project
// with a VNF descriptor.
func (vs VNFs) packaged(ctx context.Context, project, vnfd string) error {
	p, err := vs.keeper.PackageOf(ctx, project, vnfd)
	if err != nil {
		return err
	}
	return vs.guard.see(ctx, nf.ReadPackage, packageScope(p), nf.E(nf.Unsupported, "use", "the VNF descriptor "+vnfd, errors.New("no onboarded and enabled package of the project has it")))
}

// VNF implements VNFRecords. It requires instance:read.
func (vs VNFs) VNF(ctx context.Context, id string) (nf.VNF, error) {
	hidden := absent("VNF", id)
	v, err := vs.keeper.VNF(ctx, id)
	if err != nil && nf.KindOf(err) == nf.NotFound {
		_, unknown := vs.guard.asker(ctx)
		return nf.VNF{}, errors.Join(unknown, hidden)
	}
	if err == nil {
		err = vs.guard.see(ctx, nf.ReadInstance, v.Scope(), hidden)
	}
	if err != nil {
		return nf.VNF{}, err
	}
	return v, nil
}

// VNFsFrom implements VNFRecords.
func (vs VNFs) VNFsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNF, error] {
	visible, err := vs.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.VNF](err)
	}
	from.In = visible
	return list[nf.VNF]{vs.keeper.VNFsFrom(ctx, from), nf.VNF.Scope, visible}.shown(func(v nf.VNF) (nf.VNF, error) { return v, nil })
}

// Delete implements VNFRecords. It requires instance:terminate.
func (vs VNFs) Delete(ctx context.Context, id string) error {
	if _, err := vs.allowed(ctx, id, nf.RemoveInstance); err != nil {
		return err
	}
	return vs.guard.shown(ctx, vs.keeper.Delete(ctx, id))
}

// allowed returns a VNF if the identity may change it.
func (vs VNFs) allowed(ctx context.Context, id string, p nf.Permission) (nf.VNF, error) {
	v, err := vs.VNF(ctx, id)
	if err != nil {
		return v, err
	}
	return v, vs.guard.may(ctx, p, v.Scope(), id)
}

// start makes a request in the name of the identity.
func (vs VNFs) start(ctx context.Context, key *nf.RequestKey, request func() (nf.Occurrence, error)) (nf.Occurrence, error) {
	if err := vs.guard.own(ctx, key); err != nil {
		return nf.Occurrence{}, err
	}
	o, err := request()
	if err != nil {
		return nf.Occurrence{}, vs.guard.shown(ctx, err)
	}
	if o.ID == "" { // the request was only checked
		return o, nil
	}
	nf.TrailOf(ctx).Begin(o.ID)
	return vs.shown(ctx, o)
}

// shown returns an occurrence without the ids of hidden instances.
func (vs VNFs) shown(ctx context.Context, o nf.Occurrence) (nf.Occurrence, error) {
	err := vs.guard.mentions().failure(ctx, &o.Failure)
	return o, err
}

// NewVNFOperations returns the guarded attempts at occurrences of VNFs. Reading requires
// instance:read, and cancelling instance:change.
func NewVNFOperations(guarded *Guarded, keeper KindOperations) SubjectOperations {
	return SubjectOperations{guarded.guard, keeper, nf.ReadInstance, nf.ChangeInstance, func(s nf.Scope) nf.Scope { return s }}
}
