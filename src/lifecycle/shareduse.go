package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// Networks gives access to the virtual networks of regions.
type Networks interface {
	Shared
	Creator
	Connector
}

// Creator creates resources that instances share.
type Creator interface {
	// Plan returns the resource that Ensure would hold: the present one, if it is equal
	// to the wanted one, or else the one that it would create. It returns nf.Exists with
	// the differences to another one, and every other error that can be known in
	// advance. It changes nothing.
	Plan(ctx context.Context, wanted nf.Shared) (nf.Shared, error)
	// Ensure adds a holder to a resource as Use does, and creates the resource if it
	// does not exist. It returns nf.Exists if the resource is another one, unless the
	// holder holds it already.
	Ensure(ctx context.Context, wanted nf.Shared, holder nf.Holder) error
}

// Shared gives access to the resources of one kind that instances share.
type Shared interface {
	// Get returns a resource, or nf.NotFound.
	Get(ctx context.Context, id string) (nf.Shared, error)
	// Use adds a holder to a resource. It returns nf.Busy, with the operation, while
	// the resource is being created or deleted: the holder must then use it again. It
	// returns nf.NotFound or nf.Conflict if the resource cannot be used; then the
	// holder has no hold that it did not have before. It is idempotent.
	Use(ctx context.Context, id string, holder nf.Holder) (nf.Shared, error)
	// Leave ends a hold. The last holder begins the removal of the resource. It returns
	// nf.Busy, with the operation, if another operation of the resource runs: the
	// holder must then leave again. It is idempotent.
	Leave(ctx context.Context, id string, holder nf.Holder) error
}

// Connector attaches workloads to networks.
type Connector interface {
	// Connect returns what the pods of a workload need to be attached to a network.
	// Replicas is the number of pods, or negative if it is unknown. It returns
	// nf.Invalid with violations whose fields are those of the attachment.
	Connect(n nf.Network, a nf.Attachment, replicas int) (nf.Connection, error)
}

// networkUser holds and releases networks for a run's instance.
type networkUser struct {
	run      *run
	networks Networks
}

// networksOf returns the ids of the networks that revisions of an instance attach to,
// sorted.
func networksOf(region string, revisions ...nf.Revision) []string {
	var ids []string
	for _, rev := range revisions {
		for _, a := range rev.Attachments() {
			ids = append(ids, nf.SharedID(region, a.Network))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// acquire holds the networks of a revision, and waits until they exist. It creates those
// that the revision defines.
func (n *networkUser) acquire(ctx context.Context, rev nf.Revision) error {
	op := n.run.op()
	defined := map[string]nf.Network{} // by id
	for _, a := range rev.Attachments() {
		if a.Create != nil {
			defined[nf.SharedID(op.Region, a.Network)] = networkOf(op.Region, op.Project, a)
		}
	}
	for _, id := range networksOf(op.Region, rev) {
		get := func() error { return n.hold(ctx, id, holderOf(op)) }
		if wanted, create := defined[id]; create {
			get = func() error { return n.ensure(ctx, wanted) }
		}
		if err := get(); err != nil {
			return err
		}
	}
	return nil
}

// networkOf returns the network that an attachment of an instance defines.
func networkOf(region, project string, a nf.Attachment) nf.Network {
	return nf.Network{Name: a.Network, Region: region, Project: project, Driver: a.Create.Driver, Spec: a.Create.Spec, Keep: a.Create.Keep}
}

// ensure creates a network, unless it exists, and holds it. If the operation that creates
// it fails, so does ensure.
func (n *networkUser) ensure(ctx context.Context, wanted nf.Network) error {
	return n.unlessBusy(ctx, func(waited nf.Operation) error {
		if failed := waited.Failure; waited.Verb == nf.SharedCreate && failed != nil {
			return nf.E(nf.Conflict, "create", "network "+waited.Subject.ID, nf.Errorf("its operation %s has failed: %s", waited.ID, failed.Said()))
		}
		return n.networks.Ensure(ctx, wanted, holderOf(n.run.op()))
	})
}

func (n *networkUser) hold(ctx context.Context, id string, holder nf.Holder) error {
	return n.unlessBusy(ctx, func(nf.Operation) error {
		_, err := n.networks.Use(ctx, id, holder)
		return err
	})
}

// release ends the holds on the networks of revisions, except those of one revision.
func (n *networkUser) release(ctx context.Context, revisions []nf.Revision, except nf.Revision) error {
	region := n.run.op().Region
	kept := networksOf(region, except)
	for _, id := range networksOf(region, revisions...) {
		if slices.Contains(kept, id) {
			continue
		}
		if err := n.leave(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (n *networkUser) leave(ctx context.Context, id string) error {
	return n.unlessBusy(ctx, func(nf.Operation) error { return n.networks.Leave(ctx, id, holderOf(n.run.op())) })
}

// unlessBusy makes a call. If an operation of the network runs, it waits until that
// has ended, leaves its place to others in the meantime, and makes the call again with
// that operation.
func (n *networkUser) unlessBusy(ctx context.Context, call func(waited nf.Operation) error) error {
	var waited nf.Operation
	for {
		if err := n.run.attempt.Held(ctx); err != nil {
			return err
		}
		err := call(waited)
		other := nf.OperationOf(err)
		switch kind := nf.KindOf(err); {
		case (kind == nf.Conflict || kind == nf.Exists) && err != nil:
			return err // about the network: it is no conflict of two writes
		case kind != nf.Busy || other == "":
			return operation.RecordError(err)
		}
		n.run.progress(0, 1, fmt.Sprintf("waiting for operation %s on a network", other))
		if waited, err = n.await(ctx, other); err != nil {
			return err
		}
	}
}

// await waits until an operation ends, and returns it.
func (n *networkUser) await(ctx context.Context, id string) (nf.Operation, error) {
	defer n.run.attempt.Yield()()
	for op, err := range n.run.records.ledger.Follow(ctx, id) {
		if err != nil {
			return nf.Operation{}, operation.RecordError(nf.IgnoreNotFound(err))
		}
		if op.State.Final() {
			return op, nil
		}
	}
	return nf.Operation{}, context.Cause(ctx)
}

// releaseAll ends all holds of the instance on networks. If its objects stay in place,
// a name holds the networks from now on, because pods remain attached.
func (n *networkUser) releaseAll(ctx context.Context, revisions []nf.Revision) error {
	op := n.run.op()
	for _, id := range networksOf(op.Region, revisions...) {
		if op.Instance.Orphan {
			name := nf.Holder{Subject: nf.Subject{Kind: nf.HolderSubject, ID: nf.OrphansOf + op.Subject.ID}}
			if err := n.hold(ctx, id, name); err != nil && nf.KindOf(err) != nf.NotFound && nf.KindOf(err) != nf.Conflict {
				return err
			}
		}
		if err := n.leave(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
