package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// expire deletes the plan of an expired operation, unless a revision needs it.
func (s *records) expire(ctx context.Context, op nf.Operation) error {
	rev, err := s.revisions.Get(ctx, revisionKey(op.Subject.ID, op.Instance.Revision))
	if nf.KindOf(err) == nf.NotFound || err == nil && rev.Operation != op.ID {
		err = s.dropPlan(ctx, op.Instance.Target)
	}
	return err
}

// sweep is one search for stale records of instances.
type sweep struct {
	kv      store.KV
	records *records

	known   map[string]bool    // instances that exist or are being created
	holders map[nf.Holder]bool // the same, with their scopes
	entered map[string]bool    // namespaces that an operation may be about to acquire or release
	needed  map[string]bool    // operations whose plans are needed
	undone  map[string]bool    // operations whose revisions were deleted

	uses     map[string]map[string]bool // shared resources, without their region, that revisions of an instance use, by instance
	changing map[string]bool            // instances that an operation changes
}

var _ operation.Sweep = (*sweep)(nil)

func newSweep(kv store.KV, stored *records) *sweep {
	return &sweep{kv, stored, map[string]bool{}, map[nf.Holder]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
}

// Subjects implements operation.Sweep.
func (s *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return s.records.locks.Scan(ctx, named, func(in nf.Instance) {
		s.know(in.ID, in.Project, in.Region)
		s.use(in.ID, inForce(in))
		s.changing[in.ID] = in.Operation != ""
		for _, namespace := range in.Entered {
			s.entered[namespaceKey(in.Region, namespace)] = in.Operation != "" || s.entered[namespaceKey(in.Region, namespace)]
		}
	}, func(_ context.Context, in *nf.Instance) error {
		in.Become(nf.Broken, "operation "+in.Operation+" was given up")
		return nil
	})
}

// Operation implements operation.Sweep.
func (s *sweep) Operation(op nf.Operation) {
	s.needed[op.ID] = true
	s.undone[op.ID] = op.State.Final() && op.Undoing && op.UndoFailure == nil
	if !op.State.Final() {
		s.know(op.Subject.ID, op.Project, op.Region)
		s.changing[op.Subject.ID] = true
		s.entered[namespaceKey(op.Region, op.Instance.Namespace)] = true
	}
}

// know records that an instance exists or is being created.
func (s *sweep) know(instance, project, region string) {
	s.known[instance], s.holders[holder(instance, project, region)] = true, true
}

// use records the shared resources of a revision of an instance.
func (s *sweep) use(instance string, rev nf.Revision) {
	for _, u := range usesOf("", rev) { // a revision does not name its region
		if s.uses[instance] == nil {
			s.uses[instance] = map[string]bool{}
		}
		s.uses[instance][u.table()+"/"+u.id] = true
	}
}

// needs reports whether the instance of a hold exists in the hold's scope, and uses the
// thing: a later instance may have the id, and a stalled process may have held a shared
// resource after its operation was undone.
func (s *sweep) needs(h store.Hold) bool {
	id := h.Holder.Subject.ID
	exists := s.holders[h.Holder] || h.Holder.Scope == (nf.Scope{}) && s.known[id]
	if !exists || h.Table != nf.NetworkTable && h.Table != nf.VolumeTable {
		return exists
	}
	name, _ := strings.CutPrefix(h.Thing, h.Holder.Scope.Region)
	return s.changing[id] || s.uses[id][h.Table+"/"+name]
}

// Find implements operation.Sweep.
func (s *sweep) Find(ctx context.Context, found operation.StaleRecords) error {
	return errors.Join(s.addNames(ctx, found), s.addRevisions(ctx, found), s.addHolds(ctx, found), s.addBlobs(ctx, found))
}

// addNames finds the names of instances that do not exist: the replica crashed
// before their requests were accepted.
func (s *sweep) addNames(ctx context.Context, found operation.StaleRecords) error {
	for n, err := range s.records.names.All(ctx, "") {
		if err != nil {
			return err
		}
		if s.known[n.Instance] {
			continue
		}
		found["name "+n.key()+" of "+n.Instance] = func(ctx context.Context) error {
			in := nf.Instance{ID: n.Instance, Name: n.Name, Region: n.Region, Namespace: n.Namespace}
			release, err := s.records.names.DeleteWhereOps(ctx, nameKey(in), heldBy(in))
			if err != nil {
				return err
			}
			return s.records.instances.WriteIfAbsent(ctx, n.Instance, release...)
		}
	}
	return nil
}

// dropHold drops a hold that its instance does not need.
func (s *sweep) dropHold(ctx context.Context, h store.Hold, drop store.Op) error {
	if id := h.Holder.Subject.ID; !s.known[id] {
		return s.records.instances.WriteIfAbsent(ctx, id, drop)
	}
	_, err := store.Write(ctx, s.kv, []store.Op{drop})
	return err
}

// addRevisions finds revisions of instances that do not exist, and those that a
// stalled replica has written after their operation was undone. It marks the
// plans of all other revisions as needed.
func (s *sweep) addRevisions(ctx context.Context, found operation.StaleRecords) error {
	for rev, err := range s.records.revisions.All(ctx, "") {
		if err != nil {
			return err
		}
		if s.known[rev.Instance] && !s.undone[rev.Operation] {
			s.needed[rev.Operation] = true
			s.use(rev.Instance, rev)
			continue
		}
		found[fmt.Sprintf("revision %d of %s", rev.Number, rev.Instance)] = func(ctx context.Context) error {
			return s.records.dropRevision(ctx, rev)
		}
	}
	return nil
}

// addHolds finds the holds of instances that do not exist, namespace uses without
// a user, and removals of namespaces by such instances.
func (s *sweep) addHolds(ctx context.Context, found operation.StaleRecords) error {
	abandoned, held, err := store.AbandonedHolds(ctx, s.kv, nf.InstanceSubject, s.needs, s.dropHold)
	if err != nil {
		return err
	}
	maps.Copy(found, abandoned)
	abandoned, err = s.records.namespaces.Abandoned(ctx, nf.InstanceSubject, held, s.known, s.entered)
	maps.Copy(found, abandoned)
	return err
}

// addBlobs finds plans that are held for operations that do not exist, and
// unfinished uploads. The name of an upload changes as long as it is in progress,
// so that no two scans find it.
func (s *sweep) addBlobs(ctx context.Context, found operation.StaleRecords) error {
	for use, err := range s.records.blobs.Uses(ctx) {
		if err != nil {
			return err
		}
		op, isPlan := strings.CutPrefix(use.User, planUser(""))
		if isPlan && !s.needed[op] {
			found["plan of operation "+op] = func(ctx context.Context) error { return s.records.blobs.Release(ctx, use.User, use.Digest) }
		}
	}
	uploads, err := s.records.blobs.Unfinished(ctx)
	for id, chunks := range uploads {
		found[fmt.Sprintf("upload %s after %d chunks", id, chunks)] = func(ctx context.Context) error { return s.records.blobs.Finish(ctx, id) }
	}
	return err
}
