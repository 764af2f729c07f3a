package network

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Use adds a holder to a network that may be used. It returns nf.NotFound if the
// network does not exist, and nf.Conflict if it has failed; then the holder has no hold,
// except that which it had on a failed network. It returns nf.Busy, with the operation,
// while the network is being created or deleted: the holder must then use it again, or
// release it. It is idempotent.
func (s *Networks) Use(ctx context.Context, id string, holder nf.Holder) (nf.Network, error) {
	had, err := s.holds.Has(ctx, id, holder)
	if err != nil {
		return nf.Network{}, err
	}
	n, err := s.use(ctx, id, holder)
	if kind := nf.KindOf(err); err != nil && (kind == nf.NotFound || kind == nf.Conflict && !had) {
		err = errors.Join(err, s.holds.Drop(ctx, id, holder))
	}
	return n, err
}

func (s *Networks) use(ctx context.Context, id string, holder nf.Holder) (nf.Network, error) {
	if err := s.holds.Add(ctx, id, holder); err != nil {
		return nf.Network{}, err
	}
	n, err := s.networks.Get(ctx, id)
	switch {
	case err != nil:
		return n, err
	case n.State == nf.NetworkActive || n.State == nf.NetworkChanging:
		return n, nil
	case n.State == nf.NetworkFailed || n.Operation == "": // or its operation was given up
		return n, nf.E(nf.Conflict, "use", "network "+id, nf.Errorf("it has failed: %s", n.Failure))
	}
	return n, lockOf(&n).Free("use")
}

// Leave ends a hold on a network. The last holder begins the removal of the network,
// unless the network is kept. It returns nf.Busy, with the operation, if another
// operation of the network runs: the holder must then leave again. It is idempotent,
// and returns nil if the network does not exist.
func (s *Networks) Leave(ctx context.Context, id string, holder nf.Holder) error {
	if err := s.holds.Drop(ctx, id, holder); err != nil {
		return err
	}
	return s.collect(ctx, id)
}

// collect begins the removal of a network that has no holder and is not kept.
func (s *Networks) collect(ctx context.Context, id string) error {
	for attempt := 0; ; attempt++ {
		n, err := s.networks.Get(ctx, id)
		if err != nil || n.Keep {
			return nf.IgnoreNotFound(err)
		}
		used, err := s.holds.Used(ctx, id)
		if err != nil || used || n.State == nf.NetworkDeleting && n.Operation != "" {
			return err
		}
		if _, err = s.remove(ctx, n, nf.NetworkReleaseRequest{}); nf.KindOf(err) != nf.Conflict || err == nil {
			return nf.IgnoreNotFound(err)
		}
		if err := store.Pause(ctx, attempt); err != nil { // another operation came first
			return err
		}
	}
}

// Release ends a hold for a client, and begins the removal of the network if no
// holder is left, even if it is kept. It returns the operation, whose id is empty if
// there are other holders. It returns nf.Conflict for a request with IfUnused, with a
// violation for each other holder; then nothing has changed.
func (s *Networks) Release(ctx context.Context, id string, req nf.NetworkReleaseRequest) (nf.Operation, error) {
	n, err := s.networks.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound && err != nil { // the request may be a repetition
		return s.accept(ctx, id, req.Key, func() (operation.Request, error) { return operation.Request{}, err })
	}
	if err != nil {
		return nf.Operation{}, err
	}
	holder := Named(req.Holder)
	if req.IfUnused {
		if err := s.unused(ctx, n, holder); err != nil {
			return nf.Operation{}, err
		}
	}
	if err := s.holds.Drop(ctx, id, holder); err != nil {
		return nf.Operation{}, err
	}
	used, err := s.holds.Used(ctx, id)
	if err != nil || used {
		return nf.Operation{}, err
	}
	if n, err = s.networks.Get(ctx, id); err != nil {
		return s.removedUnless(ctx, id, req, nf.Operation{}, err)
	}
	op, err := s.remove(ctx, n, req)
	return s.removedUnless(ctx, id, req, op, err)
}

// removedUnless returns the operation, unless the error says that another holder has
// removed the network. Then it returns the operation of a request that is repeated, or
// none.
func (s *Networks) removedUnless(ctx context.Context, id string, req nf.NetworkReleaseRequest, op nf.Operation, err error) (nf.Operation, error) {
	if nf.KindOf(err) != nf.NotFound || err == nil {
		return op, err
	}
	op, err = s.accept(ctx, id, req.Key, func() (operation.Request, error) { return operation.Request{}, err })
	return op, nf.IgnoreNotFound(err)
}

// mostHolders is the number of holders that a refusal names.
const mostHolders = 10

// unused returns nf.Conflict if a network has a holder besides the given one.
func (s *Networks) unused(ctx context.Context, n nf.Network, but nf.Holder) error {
	var v nf.Violations
	for holder, err := range s.Holders(ctx, n.ID) {
		switch {
		case err != nil:
			return err
		case holder == but:
			continue
		case len(v) == mostHolders:
			v = append(v, nf.Violation{Message: fmt.Sprintf("it has more than %d holders", mostHolders)})
		default:
			v = append(v, nf.Violation{}.Saying(nf.Textf("it is used by %s", holder.Subject.Mention())))
		}
		if len(v) > mostHolders {
			break
		}
	}
	if len(v) == 0 {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: "network " + n.ID, Reason: nf.ReasonHeld, Err: v}
}
