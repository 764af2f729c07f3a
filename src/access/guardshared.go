package access

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// NetworkKeeper creates networks and stores their records.
type NetworkKeeper interface {
	NetworkChanges
	NetworkRecords
}

// NetworkChanges start operations on networks.
type NetworkChanges interface {
	Create(ctx context.Context, req nf.SharedRequest) (nf.Operation, error)
	Change(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error)
	Release(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error)
}

// NetworkRecords reads networks.
type NetworkRecords interface {
	Get(ctx context.Context, id string) (nf.Network, error)
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error] // ordered by id
	Holders(ctx context.Context, id string) iter.Seq2[nf.Holder, error]
}

// Networks gives access to networks with the permissions of the identity in the
// context. Reading requires network:read in the project and the region of the network,
// and changing requires network:write.
type Networks struct {
	guard   *guard
	regions *Regions
	keeper  NetworkKeeper
}

// NewNetworks returns the guarded networks of a keeper.
func NewNetworks(guarded *Guarded, keeper NetworkKeeper) Networks {
	return Networks{guarded.guard, guarded.Regions, keeper}
}

// NewNetworkOperations returns the guarded operations on networks. Reading requires
// network:read, and cancelling network:write.
func NewNetworkOperations(guarded *Guarded, keeper KindOperations) SubjectOperations {
	return SubjectOperations{guarded.guard, keeper, nf.ReadNetwork, nf.WriteNetwork, func(s nf.Scope) nf.Scope { return s }}
}

// CreateNetwork starts to create a network, or holds one that is equal. It requires
// network:write in the project of the request, and network:read to hold one that
// exists. Without a holder, the name of the identity holds it.
func (ns Networks) CreateNetwork(ctx context.Context, req nf.SharedRequest) (nf.Operation, error) {
	wanted := req.Resource
	id := nf.SharedID(wanted.Region, wanted.Name)
	err := ns.regions.usable(ctx, wanted.Region)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return nf.Operation{}, err
	}
	if err := cmp.Or(ns.guard.may(ctx, nf.WriteNetwork, wanted.Scope(), id), err); err != nil {
		return nf.Operation{}, err
	}
	if there, err := ns.keeper.Get(ctx, id); err == nil {
		if err := ns.guard.see(ctx, nf.ReadNetwork, there.Scope(), nf.E(nf.Exists, "create", "network "+id, nil)); err != nil {
			return nf.Operation{}, err
		}
	}
	if req.Holder, err = ns.holder(ctx, req.Holder); err != nil {
		return nf.Operation{}, err
	}
	return ns.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return ns.keeper.Create(ctx, req) })
}

// holder returns the name of a holder; by default, the name of the identity.
func (ns Networks) holder(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	id, err := ns.guard.asker(ctx)
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

// ChangeNetwork starts a change of a network. It requires network:write.
func (ns Networks) ChangeNetwork(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error) {
	if err := ns.writable(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	return ns.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return ns.keeper.Change(ctx, id, req) })
}

// ReleaseNetwork ends a hold on a network, by default that of the identity's name. The
// last one starts the removal of the network. It requires network:write.
func (ns Networks) ReleaseNetwork(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error) {
	err := ns.writable(ctx, id)
	if err == nil {
		req.Holder, err = ns.holder(ctx, req.Holder)
	}
	if err != nil {
		return nf.Operation{}, err
	}
	return ns.guard.start(ctx, &req.Key, func() (nf.Operation, error) { return ns.keeper.Release(ctx, id, req) })
}

// writable returns an error unless the identity may change the network.
func (ns Networks) writable(ctx context.Context, id string) error {
	n, err := ns.Network(ctx, id)
	if err != nil {
		return err
	}
	return ns.guard.may(ctx, nf.WriteNetwork, n.Scope(), id)
}

// Network returns a network. It requires network:read.
func (ns Networks) Network(ctx context.Context, id string) (nf.Network, error) {
	n, err := ns.keeper.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound && err != nil {
		// Without an identity the error is nf.Unauthenticated, too.
		return nf.Network{}, errors.Join(ns.guard.see(ctx, nf.ReadNetwork, nf.Scope{}, nil), absent("network", id))
	}
	if err != nil {
		return nf.Network{}, err
	}
	if err := ns.guard.see(ctx, nf.ReadNetwork, n.Scope(), absent("network", id)); err != nil {
		return nf.Network{}, err
	}
	return n, ns.guard.mentions().filter(ctx, &n.Failure.Mentions)
}

// NetworksFrom yields the networks that the identity may read, after the cursor and in
// the order of their ids.
func (ns Networks) NetworksFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error] {
	visible, err := ns.guard.mayRead(ctx, nf.ReadNetwork)
	if err != nil {
		return failed[nf.Network](err)
	}
	if visible != nil {
		from.In = visible
	}
	m := ns.guard.mentions()
	return list[nf.Network]{ns.keeper.From(ctx, from), nf.Network.Scope, visible}.shown(func(n nf.Network) (nf.Network, error) {
		return n, m.filter(ctx, &n.Failure.Mentions)
	})
}

// NetworkUsers returns the number of holders of a network, and those that the identity
// may see. It requires network:read.
func (ns Networks) NetworkUsers(ctx context.Context, id string) (count int, users []nf.Subject, err error) {
	if _, err := ns.Network(ctx, id); err != nil {
		return 0, nil, err
	}
	visible, err := ns.guard.visible(ctx, nf.ReadInstance)
	if err != nil {
		return 0, nil, err
	}
	for holder, err := range ns.keeper.Holders(ctx, id) {
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
