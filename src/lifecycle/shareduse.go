package lifecycle

import (
	"cmp"
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

// Volumes gives access to the volumes of regions.
type Volumes interface {
	Shared
	Binder
}

// Binder binds claims to volumes. A claim is the name of a PersistentVolumeClaim in a
// namespace of the volume's region.
type Binder interface {
	// Claim returns how a claim must be to bind a volume. It returns nf.Conflict if
	// another claim is bound to the volume, and nf.NotFound if the region does not have
	// the volume.
	Claim(ctx context.Context, v nf.Volume, namespace, claim string) (nf.VolumeClaim, error)
	// Bind reserves a volume for a claim. Its errors are those of Claim. It calls held
	// before a change, and returns its error. It is idempotent.
	Bind(ctx context.Context, held func(context.Context) error, v nf.Volume, namespace, claim string) error
	// Unbind ends the reservation of a volume for a claim that does not exist, and calls
	// held as Bind does. It is idempotent.
	Unbind(ctx context.Context, held func(context.Context) error, v nf.Volume, namespace, claim string) error
}

// sharedUser holds and releases networks and volumes for a run's instance.
type sharedUser struct {
	run      *run
	networks Networks
	volumes  Volumes
}

// use is the use of a network or a volume.
type use struct {
	kind nf.SubjectKind
	id   string
}

// table is the table of the resource in the store.
func (u use) table() string {
	if u.kind == nf.VolumeSubject {
		return nf.VolumeTable
	}
	return nf.NetworkTable
}

// usesOf returns the networks and the volumes that revisions of an instance use, sorted.
func usesOf(region string, revisions ...nf.Revision) []use {
	var out []use
	for _, rev := range revisions {
		for _, a := range rev.Attachments() {
			out = append(out, use{nf.NetworkSubject, nf.SharedID(region, a.Network)})
		}
		for _, v := range rev.VolumeUses() {
			out = append(out, use{nf.VolumeSubject, nf.SharedID(region, v.Volume)})
		}
	}
	slices.SortFunc(out, func(a, b use) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	return slices.Compact(out)
}

// of returns the resources of the kind of a use.
func (s *sharedUser) of(u use) Shared {
	if u.kind == nf.VolumeSubject {
		return s.volumes
	}
	return s.networks
}

// retain prevents the removal of the region, the packages, the networks and the volumes of a
// revision. A package that is planned need not exist: its plan is stored.
func (s *sharedUser) retain(ctx context.Context, rev nf.Revision, planned bool) error {
	op := s.run.op()
	for _, pkg := range packagesOf(rev) {
		if err := s.run.attempt.Held(ctx); err != nil {
			return err
		}
		err := s.run.records.holds.Hold(ctx, nf.Holding{Holder: holderOf(op), Region: op.Region, Package: pkg})
		if planned {
			err = nf.IgnoreNotFound(err)
		}
		if err != nil {
			return operation.RecordError(err)
		}
	}
	return s.acquire(ctx, rev)
}

// acquire holds the networks and the volumes of a revision, and waits until they exist.
// It creates the networks that the revision defines, and reserves the volumes for its
// claims.
func (s *sharedUser) acquire(ctx context.Context, rev nf.Revision) error {
	op := s.run.op()
	defined := map[use]nf.Network{}
	for _, a := range rev.Attachments() {
		if a.Create != nil {
			defined[use{nf.NetworkSubject, nf.SharedID(op.Region, a.Network)}] = networkOf(op.Region, op.Project, a)
		}
	}
	for _, u := range usesOf(op.Region, rev) {
		get := func() error { return s.hold(ctx, u, holderOf(op)) }
		if wanted, create := defined[u]; create {
			get = func() error { return s.ensure(ctx, u, wanted) }
		}
		if err := get(); err != nil {
			return err
		}
	}
	return s.bind(ctx, rev.VolumeUses())
}

// bind reserves volumes for claims.
func (s *sharedUser) bind(ctx context.Context, uses []nf.VolumeUse) error {
	op := s.run.op()
	for _, v := range uses {
		volume, err := s.volumes.Get(ctx, nf.SharedID(op.Region, v.Volume))
		if err != nil {
			return operation.RecordError(err)
		}
		if err := s.volumes.Bind(ctx, s.run.attempt.Held, volume, op.Instance.Namespace, v.Claim); err != nil {
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
func (s *sharedUser) ensure(ctx context.Context, u use, wanted nf.Network) error {
	return s.unlessBusy(ctx, u, func(waited nf.Operation) error {
		if failed := waited.Failure; waited.Verb == nf.SharedCreate && failed != nil {
			return nf.E(nf.Conflict, "create", "network "+waited.Subject.ID, nf.Errorf("its operation %s has failed: %s", waited.ID, failed.Said()))
		}
		return s.networks.Ensure(ctx, wanted, holderOf(s.run.op()))
	})
}

func (s *sharedUser) hold(ctx context.Context, u use, holder nf.Holder) error {
	return s.unlessBusy(ctx, u, func(nf.Operation) error {
		_, err := s.of(u).Use(ctx, u.id, holder)
		return err
	})
}

// release ends the holds on the networks and the volumes of revisions, except those of
// one revision.
func (s *sharedUser) release(ctx context.Context, revisions []nf.Revision, except nf.Revision) error {
	region := s.run.op().Region
	kept := usesOf(region, except)
	for _, u := range usesOf(region, revisions...) {
		if slices.Contains(kept, u) {
			continue
		}
		if err := s.leave(ctx, u, revisions); err != nil {
			return err
		}
	}
	return nil
}

// leave ends a hold, and the reservation of a volume for claims of the revisions.
func (s *sharedUser) leave(ctx context.Context, u use, revisions []nf.Revision) error {
	if u.kind == nf.VolumeSubject {
		if err := s.unbind(ctx, u, revisions); err != nil {
			return err
		}
	}
	return s.unlessBusy(ctx, u, func(nf.Operation) error { return s.of(u).Leave(ctx, u.id, holderOf(s.run.op())) })
}

func (s *sharedUser) unbind(ctx context.Context, u use, revisions []nf.Revision) error {
	op := s.run.op()
	volume, err := s.volumes.Get(ctx, u.id)
	if err != nil {
		return operation.RecordError(nf.IgnoreNotFound(err))
	}
	done := map[string]bool{}
	for _, rev := range revisions {
		for _, v := range rev.VolumeUses() {
			if nf.SharedID(op.Region, v.Volume) != u.id || done[v.Claim] {
				continue
			}
			done[v.Claim] = true
			if err := s.volumes.Unbind(ctx, s.run.attempt.Held, volume, op.Instance.Namespace, v.Claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessBusy makes a call. If an operation of the resource runs, it waits until that
// has ended, leaves its place to others in the meantime, and makes the call again with
// that operation.
func (s *sharedUser) unlessBusy(ctx context.Context, u use, call func(waited nf.Operation) error) error {
	var waited nf.Operation
	for {
		if err := s.run.attempt.Held(ctx); err != nil {
			return err
		}
		err := call(waited)
		other := nf.OperationOf(err)
		switch kind := nf.KindOf(err); {
		case kind == nf.Conflict || kind == nf.Exists:
			return err // about the resource: it is no conflict of two writes
		case kind == nf.Unreachable && nf.IsRegionReason(nf.ReasonOf(err)):
			return err // the driver has asked the region
		case kind != nf.Busy || other == "":
			return operation.RecordError(err)
		}
		s.run.progress(0, 1, fmt.Sprintf("waiting for operation %s on a %s", other, u.kind))
		if waited, err = s.run.attempt.Await(ctx, other); err != nil {
			return err
		}
	}
}

// releaseAll ends all holds of the instance on resources of a kind. If its objects stay
// in place, a name holds the resources from now on, because pods still use them.
func (s *sharedUser) releaseAll(ctx context.Context, kind nf.SubjectKind, revisions []nf.Revision) error {
	op := s.run.op()
	for _, u := range usesOf(op.Region, revisions...) {
		if u.kind != kind {
			continue
		}
		if op.Instance.Orphan {
			name := nf.Holder{Subject: nf.Subject{Kind: nf.HolderSubject, ID: nf.OrphansOf + op.Subject.ID}}
			if err := s.hold(ctx, u, name); err != nil && nf.KindOf(err) != nf.NotFound && nf.KindOf(err) != nf.Conflict {
				return err
			}
		}
		if err := s.leave(ctx, u, revisions); err != nil {
			return err
		}
	}
	return nil
}
