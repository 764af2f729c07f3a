package access

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SharedKeeper creates the resources of one kind that instances share, and stores their
// records.
type SharedKeeper interface {
	SharedChanges
	SharedRecords
}

// SharedChanges start operations on shared resources.
type SharedChanges interface {
	Create(ctx context.Context, req nf.SharedRequest) (nf.Operation, error)
	Change(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error)
	PreviewChange(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.SharedPreview, error)
	Release(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error)
}

// SharedRecords reads shared resources.
type SharedRecords interface {
	Get(ctx context.Context, id string) (nf.Shared, error)
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Shared, error] // ordered by id
	Holders(ctx context.Context, id string) iter.Seq2[nf.Holder, error]
}

// Shared gives access to the shared resources of one kind with the permissions of the
// identity in the context. Reading requires network:read or volume:read in the project
// and the region of the resource, and changing requires network:write or volume:write.
type Shared struct {
	guard   *guard
	regions *Regions
	keeper  SharedKeeper
	kind    sharedKind
}

// sharedKind is a kind of shared resources, with its permissions.
type sharedKind struct {
	noun        string
	read, write nf.Permission
}

func networkKind() sharedKind { return sharedKind{"network", nf.ReadNetwork, nf.WriteNetwork} }
func volumeKind() sharedKind  { return sharedKind{"volume", nf.ReadVolume, nf.WriteVolume} }

// NewNetworks returns the guarded networks of a keeper.
func NewNetworks(guarded *Guarded, keeper SharedKeeper) Shared {
	return Shared{guarded.guard, guarded.Regions, keeper, networkKind()}
}

// NewVolumes returns the guarded volumes of a keeper.
func NewVolumes(guarded *Guarded, keeper SharedKeeper) Shared {
	return Shared{guarded.guard, guarded.Regions, keeper, volumeKind()}
}

// NewSharedOperations returns the guarded operations on the resources. Reading requires
// the permission to read them, and cancelling that to change them.
func NewSharedOperations(s Shared, keeper KindOperations) SubjectOperations {
	return SubjectOperations{s.guard, keeper, s.kind.read, s.kind.write, func(s nf.Scope) nf.Scope { return s }}
}

// Create starts to create a resource, or holds one that is equal. It requires the
// permission to change in the project of the request, and that to read to hold one that
// exists. Without a holder, the name of the identity holds it.
func (s Shared) Create(ctx context.Context, req nf.SharedRequest) (nf.Operation, error) {
	wanted := req.Resource
	id := nf.SharedID(wanted.Region, wanted.Name)
	err := s.regions.usable(ctx, wanted.Region)
	if nf.KindOf(err) == nf.NotFound && s.guard.allows(ctx, s.kind.write, wanted.Scope()) {
		err = s.regions.find(ctx, wanted.Region, err)
	}
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return nf.Operation{}, err
	}
	if err := cmp.Or(s.guard.may(ctx, s.kind.write, wanted.Scope(), id), err); err != nil {
		return nf.Operation{}, err
	}
	if there, err := s.keeper.Get(ctx, id); err == nil {
		if err := s.guard.see(ctx, s.kind.read, there.Scope(), nf.E(nf.Exists, "create", s.kind.noun+" "+id, nil)); err != nil {
			return nf.Operation{}, err
		}
	}
	if req.Holder, err = s.holder(ctx, req.Holder); err != nil {
		return nf.Operation{}, err
	}
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Create(ctx, req) })
}

// holder returns the name of a holder; by default, the name of the identity.
func (s Shared) holder(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	id, err := s.guard.asker(ctx)
	if err != nil {
		return "", err
	}
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && (r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, id.Name), "._-")
	if name == "" {
		name = "anonymous"
	}
	return name, nil
}

// Change starts a change of a resource. It requires the permission to change, and for a
// restart that to change each instance.
func (s Shared) Change(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error) {
	if err := s.writable(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	req.MayRestart = s.mayRestart
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Change(ctx, id, req) })
}

// mayRestart returns an error unless the identity may restart the workloads of an instance.
// If the identity may not see the instance, the error does not name it.
func (s Shared) mayRestart(ctx context.Context, holder nf.Holder) error {
	hidden := nf.E(nf.Forbidden, "restart", "VNF instances", errors.New("the "+s.kind.noun+" has users that you may not see"))
	return cmp.Or(s.guard.see(ctx, nf.ReadInstance, holder.Scope, hidden), s.guard.may(ctx, nf.ChangeInstance, holder.Scope, holder.Subject.ID))
}

// PreviewChange returns what a change of a resource would do, with the users that the
// identity may see. It requires the permission to read and, for a restart, to change
// each instance.
func (s Shared) PreviewChange(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.SharedPreview, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nf.SharedPreview{}, err
	}
	visible, err := s.guard.visible(ctx, nf.ReadInstance)
	if err != nil {
		return nf.SharedPreview{}, err
	}
	req.MayRestart = s.mayRestart
	p, err := s.keeper.PreviewChange(ctx, id, req)
	if err != nil {
		return nf.SharedPreview{}, s.guard.shown(ctx, err)
	}
	all := len(p.Users)
	p.Users = slices.DeleteFunc(p.Users, func(u nf.SharedUser) bool { return !visible(u.Scope) })
	p.Hidden = all - len(p.Users)
	return p, nil
}

// Release ends a hold on a resource, by default that of the identity's name. The last
// one starts the removal of the resource. It requires the permission to change.
func (s Shared) Release(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error) {
	err := s.writable(ctx, id)
	if err == nil {
		req.Holder, err = s.holder(ctx, req.Holder)
	}
	if err != nil {
		return nf.Operation{}, err
	}
	return s.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return s.keeper.Release(ctx, id, req) })
}

// writable returns an error unless the identity may change the resource.
func (s Shared) writable(ctx context.Context, id string) error {
	there, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	return s.guard.may(ctx, s.kind.write, there.Scope(), id)
}

// Get returns a resource. It requires the permission to read.
func (s Shared) Get(ctx context.Context, id string) (nf.Shared, error) {
	there, err := s.keeper.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound && err != nil {
		// Without an identity the error is nf.Unauthenticated, too.
		return nf.Shared{}, errors.Join(s.guard.see(ctx, s.kind.read, nf.Scope{}, nil), absent(s.kind.noun, id))
	}
	if err != nil {
		return nf.Shared{}, err
	}
	if err := s.guard.see(ctx, s.kind.read, there.Scope(), absent(s.kind.noun, id)); err != nil {
		return nf.Shared{}, err
	}
	return there, s.guard.mentions().filter(ctx, &there.Failure.Mentions)
}

// From yields the resources that the identity may read, after the cursor and in the
// order of their ids.
func (s Shared) From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Shared, error] {
	visible, err := s.guard.mayRead(ctx, s.kind.read)
	if err != nil {
		return failed[nf.Shared](err)
	}
	if visible != nil {
		from.In = visible
	}
	m := s.guard.mentions()
	return list[nf.Shared]{s.keeper.From(ctx, from), nf.Shared.Scope, visible}.shown(func(there nf.Shared) (nf.Shared, error) {
		return there, m.filter(ctx, &there.Failure.Mentions)
	})
}

// Users returns the number of holders of a resource, and those that the identity may
// see. It requires the permission to read.
func (s Shared) Users(ctx context.Context, id string) (count int, users []nf.Subject, err error) {
	if _, err := s.Get(ctx, id); err != nil {
		return 0, nil, err
	}
	visible, err := s.guard.visible(ctx, nf.ReadInstance)
	if err != nil {
		return 0, nil, err
	}
	for holder, err := range s.keeper.Holders(ctx, id) {
		if err != nil {
			return 0, nil, err
		}
		count++
		if holder.Subject.Kind != nf.InstanceSubject || visible(holder.Scope) {
			users = append(users, holder.Subject)
		}
	}
	return count, users, nil
}
