package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ServiceKeeper creates network services, and stores their records.
type ServiceKeeper interface {
	ServiceChanges
	ServicePreviews
	ServiceRecords
}

// ServiceChanges start operations on network services.
type ServiceChanges interface {
	Create(ctx context.Context, req nf.ServiceRequest) (nf.Operation, error)
	Change(ctx context.Context, id string, req nf.ServiceChangeRequest) (nf.Operation, error)
	Terminate(ctx context.Context, id string, opts nf.Options) (nf.Operation, error)
	Undo(ctx context.Context, id string, opts nf.Options) (nf.Operation, error)
}

// ServicePreviews return what a change of a network service would do.
type ServicePreviews interface {
	PreviewCreate(ctx context.Context, req nf.ServiceRequest) ([]nf.MemberPreview, error)
	PreviewChange(ctx context.Context, id string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error)
	PreviewTerminate(ctx context.Context, id string, opts nf.Options) ([]nf.MemberPreview, error)
}

// ServiceRecords reads network services.
type ServiceRecords interface {
	Get(ctx context.Context, id string) (nf.NetworkService, error)
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.NetworkService, error] // ordered by id
}

// Services gives access to network services with the permissions of the identity in the
// context. Its permissions are those of its VNF instances, in its project and in the region
// of each member. In addition, each new member requires what its instance requires.
type Services struct {
	guard     *guard
	instances *Instances
	keeper    ServiceKeeper
}

// NewServices returns the guarded network services of a keeper.
func NewServices(guarded *Guarded, keeper ServiceKeeper) Services {
	return Services{guarded.guard, guarded.Instances, keeper}
}

// NewServiceOperations returns the guarded operations on network services. Reading
// requires instance:read where the service does, and cancelling instance:change.
func NewServiceOperations(guarded *Guarded, keeper KindOperations) SubjectOperations {
	return SubjectOperations{guarded.guard, keeper, nf.ReadInstance, nf.ChangeInstance, func(s nf.Scope) nf.Scope { return s }}
}

// Create starts to create a service. It requires instance:instantiate, and for each member
// what Instances.Instantiate does.
func (s Services) Create(ctx context.Context, req nf.ServiceRequest) (nf.Operation, error) {
	denied := s.target(ctx, &req.Service, nf.CreateInstance)
	s.using(&req.Options, nf.WriteNetwork, nf.WriteRegion)
	return s.instances.operations.begin(ctx, &req.Options, denied, func() (nf.Operation, error) { return s.keeper.Create(ctx, req) })
}

// PreviewCreate returns what Create would do. It requires instance:read, and for each
// member what Instances.PreviewInstantiate does.
func (s Services) PreviewCreate(ctx context.Context, req nf.ServiceRequest) ([]nf.MemberPreview, error) {
	err := s.target(ctx, &req.Service, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	if req.Secrets, err = s.mayLookUp(ctx, req.Service, req.Service.Content.Members); err != nil {
		return nil, err
	}
	s.using(&req.Options, nf.ReadNetwork, nf.ReadRegion)
	previews, err := s.keeper.PreviewCreate(ctx, req)
	return s.previewed(ctx, previews, err)
}

// target checks that the identity has the permission for a service, and may read what its
// members name.
func (s Services) target(ctx context.Context, in *nf.NetworkService, p nf.Permission) error {
	inOwnProject(ctx, &in.Project)
	if err := s.guard.may(ctx, p, in.Scope(), in.ID); err != nil {
		return err
	}
	if err := (nf.ServiceRequest{Service: *in}).Validate(); err != nil {
		return err
	}
	in.Content.Members = slices.Clone(in.Content.Members)
	for i := range in.Content.Members {
		if err := s.member(ctx, *in, &in.Content.Members[i], p); err != nil {
			return in.MemberError(nf.ServiceCreate, fmt.Sprintf("members[%d]", i), in.Content.Members[i], err)
		}
	}
	return nil
}

// member checks that the identity has the permission for a new member, and restricts its
// placement to the regions that it may use.
func (s Services) member(ctx context.Context, in nf.NetworkService, m *nf.ServiceMember, p nf.Permission) error {
	req := nf.InstantiateRequest{Spec: m.Spec, Region: m.Region, Placement: m.Placement, Project: nf.ProjectOf(in.Project), Namespace: m.Namespace, Name: m.Instance}
	req.Placement = s.instances.permitted(req, p)
	m.Placement = req.Placement
	return s.instances.target(ctx, req, p)
}

// using makes a request check the networks, the volumes and the regions that its members
// use and create.
func (s Services) using(opts *nf.Options, creates, registers nf.Permission) {
	opts.MayAttach, opts.MayUse, opts.MayRegister = s.instances.attaching(creates), s.instances.using(), s.instances.registering(registers)
}

// Change starts a change of a service. It requires instance:change, instance:instantiate to
// add members or to retry a failed operation, and instance:terminate to remove members.
func (s Services) Change(ctx context.Context, id string, req nf.ServiceChangeRequest) (nf.Operation, error) {
	there, denied := s.allowed(ctx, id, nf.ChangeInstance)
	if denied == nil && there.State == nf.ServiceFailed {
		denied = s.guard.mayAll(ctx, nf.CreateInstance, there.Scopes(), id)
	}
	if denied != nil {
		req.Edit = func(*nf.NetworkService) error { return errors.New("only a repeated request is accepted") }
	} else {
		req.Edit = s.edited(ctx, req.Edit, nf.CreateInstance, nf.RemoveInstance)
	}
	s.using(&req.Options, nf.WriteNetwork, nf.WriteRegion)
	return s.instances.operations.begin(ctx, &req.Options, denied, func() (nf.Operation, error) { return s.keeper.Change(ctx, id, req) })
}

// PreviewChange returns what Change would do. It requires instance:read.
func (s Services) PreviewChange(ctx context.Context, id string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error) {
	there, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	req.Edit = s.edited(ctx, req.Edit, nf.ReadInstance, nf.ReadInstance)
	if req.Secrets, err = s.mayLookUpAfter(ctx, there, req.Edit); err != nil {
		return nil, err
	}
	s.using(&req.Options, nf.ReadNetwork, nf.ReadRegion)
	previews, err := s.keeper.PreviewChange(ctx, id, req)
	return s.previewed(ctx, previews, err)
}

// mayLookUp reports whether the templates of a dry run may look up Secrets: the identity
// may instantiate the new members wherever they may be.
func (s Services) mayLookUp(ctx context.Context, in nf.NetworkService, added []nf.ServiceMember) (bool, error) {
	may, err := s.guard.could(ctx, nf.CreateInstance, in.Scope())
	for _, m := range added {
		if err != nil || !may {
			break
		}
		may, err = s.instances.mayLookUp(ctx, nf.InstantiateRequest{Project: nf.ProjectOf(in.Project), Region: m.Region, Placement: m.Placement})
	}
	return may, err
}

// mayLookUpAfter is mayLookUp for a change. The identity must also have the permission to
// change each member. If the edit fails, templates find none, and the keeper reports the error.
func (s Services) mayLookUpAfter(ctx context.Context, there nf.NetworkService, edit func(*nf.NetworkService) error) (bool, error) {
	for _, scope := range there.Scopes() {
		if may, err := s.guard.could(ctx, nf.ChangeInstance, scope); err != nil || !may {
			return false, err
		}
	}
	before := there.All()
	if edit(&there) != nil || len(there.Violations()) > 0 {
		return false, nil //nolint:nilerr // the keeper makes the same edit and reports what is wrong
	}
	added := nf.Besides(before, there.Content.Members)
	if len(added) == 0 {
		return true, nil
	}
	return s.mayLookUp(ctx, there, added)
}

// edited returns the edit with a check that the identity may add and remove the members,
// and may read the packages that the others did not use before.
func (s Services) edited(ctx context.Context, edit func(*nf.NetworkService) error, adds, removes nf.Permission) func(*nf.NetworkService) error {
	return func(in *nf.NetworkService) error {
		before := in.All()
		if err := edit(in); err != nil {
			return err
		}
		if len(in.Violations()) > 0 {
			return nil // the keeper reports them
		}
		in.Content.Members = slices.Clone(in.Content.Members)
		for i := range in.Content.Members {
			m := &in.Content.Members[i]
			at := slices.IndexFunc(before, func(b nf.ServiceMember) bool { return b.Name == m.Name })
			var err error
			switch {
			case at < 0:
				err = cmp.Or(s.guard.may(ctx, adds, in.Scope(), in.ID), s.member(ctx, *in, m, adds))
			case m.Spec.Package != before[at].Spec.Package && m.Spec.Validate() == nil:
				err = s.instances.packages.usable(ctx, m.Spec.Package)
			}
			if err != nil {
				return in.MemberError(nf.ServiceChange, fmt.Sprintf("members[%d]", i), *m, err)
			}
		}
		if gone := nf.Besides(in.Content.Members, before); len(gone) > 0 {
			return s.removable(ctx, *in, gone, removes)
		}
		return nil
	}
}

// removable checks that the identity may terminate members, and may deregister the regions
// that their clusters became.
func (s Services) removable(ctx context.Context, in nf.NetworkService, members []nf.ServiceMember, p nf.Permission) error {
	if err := s.guard.mayAll(ctx, p, nf.NetworkService{Project: in.Project, Surplus: members}.Scopes(), in.ID); err != nil || p == nf.ReadInstance {
		return err
	}
	for _, m := range members {
		if err := s.instances.mayDeregister(ctx, nf.MemberID(in.ID, m.Name), false); nf.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Terminate starts the termination of a service. It requires instance:terminate, and what
// Instances.Terminate does for each member.
func (s Services) Terminate(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	there, denied := s.allowed(ctx, id, nf.RemoveInstance)
	if denied == nil {
		denied = s.removable(ctx, there, there.All(), nf.RemoveInstance)
	}
	return s.instances.operations.begin(ctx, &opts, denied, func() (nf.Operation, error) { return s.keeper.Terminate(ctx, id, opts) })
}

// PreviewTerminate returns what Terminate would do. It requires instance:read.
func (s Services) PreviewTerminate(ctx context.Context, id string, opts nf.Options) ([]nf.MemberPreview, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	previews, err := s.keeper.PreviewTerminate(ctx, id, opts)
	return s.previewed(ctx, previews, err)
}

// Undo starts the undo of a failed operation. It requires instance:change,
// instance:instantiate and instance:terminate.
func (s Services) Undo(ctx context.Context, id string, opts nf.Options) (nf.Operation, error) {
	there, denied := s.allowed(ctx, id, nf.ChangeInstance)
	if denied == nil {
		denied = s.guard.mayAll(ctx, nf.CreateInstance, there.Scopes(), id)
	}
	if denied == nil {
		denied = s.removable(ctx, there, nf.Besides(there.Former.Members, there.All()), nf.RemoveInstance)
	}
	return s.instances.operations.begin(ctx, &opts, denied, func() (nf.Operation, error) { return s.keeper.Undo(ctx, id, opts) })
}

// allowed returns a service, if the identity may change it.
func (s Services) allowed(ctx context.Context, id string, p nf.Permission) (nf.NetworkService, error) {
	there, err := s.Get(ctx, id)
	if err != nil {
		return there, err
	}
	return there, s.guard.mayAll(ctx, p, there.Scopes(), id)
}

// previewed returns previews, or the error, without the ids of hidden instances.
func (s Services) previewed(ctx context.Context, previews []nf.MemberPreview, err error) ([]nf.MemberPreview, error) {
	if err != nil {
		return nil, s.guard.shown(ctx, err)
	}
	for i, p := range previews {
		if previews[i].Preview, err = s.guard.previewed(ctx, p.Preview, nil); err != nil {
			return nil, err
		}
	}
	return previews, nil
}

// Get returns a service. It requires instance:read.
func (s Services) Get(ctx context.Context, id string) (nf.NetworkService, error) {
	gone := absent("network service", id)
	there, err := s.keeper.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound && err != nil {
		// Without an identity the error is nf.Unauthenticated, too.
		return nf.NetworkService{}, errors.Join(s.guard.see(ctx, nf.ReadInstance, nf.Scope{}, nil), gone)
	}
	if err == nil {
		err = s.guard.seeAll(ctx, nf.ReadInstance, there.Scopes(), gone)
	}
	if err != nil {
		return nf.NetworkService{}, err
	}
	return there, s.guard.mentions().filter(ctx, &there.Failure.Mentions)
}

// From yields the services that the identity may read, after the cursor and in the order
// of their ids.
func (s Services) From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.NetworkService, error] {
	visible, err := s.guard.mayRead(ctx, nf.ReadInstance)
	if err != nil {
		return failed[nf.NetworkService](err)
	}
	if visible != nil {
		from.In = visible
	}
	m := s.guard.mentions()
	return list[nf.NetworkService]{items: within(s.keeper.From(ctx, from), nf.NetworkService.Scopes, visible)}.shown(func(there nf.NetworkService) (nf.NetworkService, error) {
		return there, m.filter(ctx, &there.Failure.Mentions)
	})
}
