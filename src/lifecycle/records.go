package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// records are what the engine stores: instances and their operations, and what
// they reserve.
type records struct {
	instances  store.Table[nf.Instance]
	locks      operation.Locks[nf.Instance]
	revisions  store.Table[nf.Revision]
	ledger     *operation.Ledger
	names      store.Table[reservation]
	namespaces store.SharedTable[namespaceUse]
	blobs      store.Blobs
	holds      Holds
}

func newRecords(kv store.KV, h Holds, l *operation.Ledger) *records {
	instances := store.NewTable[nf.Instance](kv, "instances/", "VNF instance")
	return &records{
		instances:  instances,
		locks:      operation.Locks[nf.Instance]{Subjects: instances, Of: lockOf},
		revisions:  store.NewTable[nf.Revision](kv, "revisions/", "revision"),
		ledger:     l,
		names:      store.NewTable[reservation](kv, "instancenames/", "instance name"),
		namespaces: store.NewSharedTable(kv, "namespaceuse/", "namespace", func(o *namespaceUse) *string { return &o.Removing }),
		blobs:      store.NewBlobs(kv),
		holds:      h,
	}
}

// holderOf returns the operation's instance as the holder of regions and packages.
func holderOf(op nf.Operation) nf.Holder { return holder(op.Subject.ID, op.Project, op.Region) }

func holder(instance, project, region string) nf.Holder {
	return nf.Holder{Subject: subjectOf(instance), Scope: nf.Scope{Project: nf.ProjectOf(project), Region: region}}
}

// idFree returns nf.Exists if an instance has the id.
func (s *records) idFree(ctx context.Context, id string) error {
	_, err := s.instances.Get(ctx, id)
	if err == nil {
		return nf.E(nf.Exists, "instantiate", "VNF instance "+id, nil)
	}
	return nf.IgnoreNotFound(err)
}

// lockOf returns the lock of an instance.
func lockOf(in *nf.Instance) operation.Lock {
	return operation.Lock{Subject: subjectOf(in.ID), Operation: &in.Operation, Claim: &in.Claim, Last: &in.LastOperation, Updated: &in.Updated}
}

// inForce returns the part of an instance's record that describes its revision.
func inForce(in nf.Instance) nf.Revision {
	return nf.Revision{
		Package: in.Package, Inputs: in.Inputs, Sensitive: in.Sensitive, Labels: in.Labels, Description: in.Description,
		Release: in.Release, Namespaces: in.Namespaces, Amendments: in.Amendments, Annotations: in.Annotations, Hidden: in.Hidden, Networks: in.Networks,
		Attached: in.Attached, Volumes: in.Volumes, Bound: in.Bound, Drift: in.Drift, Claims: in.Claims,
		Workloads: in.Workloads, Registered: in.Registered, Compute: in.Compute, AAI: in.AAI,
	}
}

// describe copies a revision into the instance's record.
func describe(in *nf.Instance, rev nf.Revision) {
	in.Package, in.PackageDigest = rev.Package, rev.PackageDigest
	in.Inputs, in.Sensitive = rev.Inputs, rev.Sensitive
	in.Labels, in.Description = rev.Labels, rev.Description
	in.Release, in.Namespaces, in.Amendments, in.Annotations, in.Hidden = rev.Release, rev.Namespaces, rev.Amendments, rev.Annotations, rev.Hidden
	in.Networks, in.Attached, in.Volumes, in.Bound = rev.Networks, rev.Attached, rev.Volumes, rev.Bound
	in.Drift, in.Claims, in.AAI, in.Corrections = rev.Drift, rev.Claims, rev.AAI, nil
	in.Workloads, in.Registered, in.Compute = rev.Workloads, rev.Registered, rev.Compute
}

// revisionsOf returns the revisions of an instance that are kept, ascending.
func (s *records) revisionsOf(ctx context.Context, id string) ([]nf.Revision, error) {
	if _, err := s.instances.Get(ctx, id); err != nil {
		return nil, err
	}
	return s.revisions.List(ctx, id+"/")
}

// revision returns one revision of an instance. It returns nf.NotFound if the
// revision is not kept.
func (s *records) revision(ctx context.Context, id string, number int) (nf.Revision, error) {
	rev, err := s.revisions.Get(ctx, revisionKey(id, number))
	if nf.KindOf(err) == nf.NotFound {
		err = nf.E(nf.NotFound, "get", fmt.Sprintf("revision %d of VNF instance %s", number, id), nil)
	}
	return rev, err
}

// previousRevision returns the revision to roll back to: the one with the number
// or, for 0, the one before that in force.
func (s *records) previousRevision(ctx context.Context, in nf.Instance, number int) (nf.Revision, error) {
	if number != 0 {
		return s.revision(ctx, in.ID, number)
	}
	all, err := s.revisionsOf(ctx, in.ID)
	if err != nil {
		return nf.Revision{}, err
	}
	for _, rev := range slices.Backward(all) {
		if rev.Number < in.Revision {
			return rev, nil
		}
	}
	return nf.Revision{}, nf.E(nf.NotFound, "roll back", "VNF instance "+in.ID, fmt.Errorf("no revision before %d is kept", in.Revision))
}

// dropRevision deletes a revision and releases its plan.
func (s *records) dropRevision(ctx context.Context, rev nf.Revision) error {
	if err := s.dropPlan(ctx, rev); err != nil {
		return err
	}
	return s.deleteRevision(ctx, rev)
}

// idle returns an instance on which no operation runs, or nf.Busy.
func (s *records) idle(ctx context.Context, verb, id string) (nf.Instance, error) {
	in, err := s.instances.Get(ctx, id)
	if err == nil {
		err = lockOf(&in).Free(verb)
	}
	return in, err
}

// deleteRevision deletes the record of a revision, unless another operation has
// written it: a later instance may have the id.
func (s *records) deleteRevision(ctx context.Context, rev nf.Revision) error {
	return s.revisions.DeleteWhere(ctx, revisionKey(rev.Instance, rev.Number), sameRevision(rev))
}

// sameRevision reports whether a stored revision is one that was read, and not that of
// a later instance with the id.
func sameRevision(rev nf.Revision) func(now nf.Revision) bool {
	return func(now nf.Revision) bool { return now.Operation == rev.Operation }
}

// packagesOf returns the packages that a revision was rendered from.
func packagesOf(rev nf.Revision) []string {
	out := []string{rev.Package}
	for _, a := range rev.Amendments {
		out = append(out, a.Package)
	}
	return out
}

// revisionKey returns a key that sorts by number.
func revisionKey(instance string, revision int) string {
	return fmt.Sprintf("%s/%08d", instance, revision)
}
