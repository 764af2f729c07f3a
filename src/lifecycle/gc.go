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

// collector finds the stale records of instances, and deletes what goes with
// expired operations.
type collector struct {
	kv      store.KV
	records *records
}

// expire deletes the plan of an expired operation, unless a revision needs it.
func (c *collector) expire(ctx context.Context, op nf.Operation) error {
	rev, err := c.records.revisions.Get(ctx, revisionKey(op.Subject.ID, op.Instance.Revision))
	if nf.KindOf(err) == nf.NotFound || err == nil && rev.Operation != op.ID {
		err = c.records.dropPlan(ctx, op.Instance.Target)
	}
	return err
}

// sweep is one search for stale records.
type sweep struct {
	c *collector

	known   map[string]bool // instances that exist or are being created
	entered map[string]bool // namespaces that an operation may be about to acquire or release
	needed  map[string]bool // operations whose plans are needed
	undone  map[string]bool // operations whose revisions were deleted
}

var _ operation.Sweep = (*sweep)(nil)

func (c *collector) sweep() operation.Sweep {
	return &sweep{c, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// Subjects implements operation.Sweep.
func (s *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return s.c.records.locks.Scan(ctx, named, func(in nf.Instance) {
		s.known[in.ID] = true
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
		s.known[op.Subject.ID] = true
		s.entered[namespaceKey(op.Region, op.Instance.Namespace)] = true
	}
}

// Find implements operation.Sweep.
func (s *sweep) Find(ctx context.Context, found operation.StaleRecords) error {
	return errors.Join(s.c.addNames(ctx, found, s.known), s.c.addNamespaces(ctx, found, s.known, s.entered), s.c.addHolds(ctx, found, s.known),
		s.c.addRevisions(ctx, found, s.known, s.needed, s.undone), s.c.addBlobs(ctx, found, s.needed))
}

// addNames finds the names of instances that do not exist: the replica crashed
// before their requests were accepted.
func (c *collector) addNames(ctx context.Context, found operation.StaleRecords, known map[string]bool) error {
	for n, err := range c.records.names.All(ctx, "") {
		if err != nil {
			return err
		}
		if known[n.Instance] {
			continue
		}
		found["name "+n.key()+" of "+n.Instance] = func(ctx context.Context) error {
			return c.records.releaseName(ctx, nf.Instance{ID: n.Instance, Name: n.Name, Region: n.Region, Namespace: n.Namespace})
		}
	}
	return nil
}

// addNamespaces finds namespace uses that have no user, or a removal by an instance
// that does not exist.
func (c *collector) addNamespaces(ctx context.Context, found operation.StaleRecords, known, entered map[string]bool) error {
	abandoned, err := c.records.namespaces.Abandoned(ctx, nf.InstanceSubject, known, entered)
	maps.Copy(found, abandoned)
	return err
}

// addRevisions finds revisions of instances that do not exist, and those that a
// stalled replica has written after their operation was undone. It marks the
// plans of all other revisions as needed.
func (c *collector) addRevisions(ctx context.Context, found operation.StaleRecords, known, needed, undone map[string]bool) error {
	for rev, err := range c.records.revisions.All(ctx, "") {
		if err != nil {
			return err
		}
		if known[rev.Instance] && !undone[rev.Operation] {
			needed[rev.Operation] = true
			continue
		}
		found[fmt.Sprintf("revision %d of %s", rev.Number, rev.Instance)] = func(ctx context.Context) error {
			return c.records.dropRevision(ctx, rev)
		}
	}
	return nil
}

// addHolds finds the holds of instances that do not exist.
func (c *collector) addHolds(ctx context.Context, found operation.StaleRecords, known map[string]bool) error {
	abandoned, err := store.AbandonedHolds(ctx, c.kv, nf.InstanceSubject, known)
	maps.Copy(found, abandoned)
	return err
}

// addBlobs finds plans that are held for operations that do not exist, and
// unfinished uploads. The name of an upload changes as long as it is in progress,
// so that no two scans find it.
func (c *collector) addBlobs(ctx context.Context, found operation.StaleRecords, needed map[string]bool) error {
	for use, err := range c.records.blobs.Uses(ctx) {
		if err != nil {
			return err
		}
		op, isPlan := strings.CutPrefix(use.User, planUser(""))
		if isPlan && !needed[op] {
			found["plan of operation "+op] = func(ctx context.Context) error { return c.records.blobs.Release(ctx, use.User, use.Digest) }
		}
	}
	uploads, err := c.records.blobs.Unfinished(ctx)
	for id, chunks := range uploads {
		found[fmt.Sprintf("upload %s after %d chunks", id, chunks)] = func(ctx context.Context) error { return c.records.blobs.Finish(ctx, id) }
	}
	return err
}
