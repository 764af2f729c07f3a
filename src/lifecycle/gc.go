package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// collector finds the stale records of instances, and deletes what goes with
// expired operations.
type collector struct {
	records *records
	clock   func() time.Time
}

// expire deletes the plan of an expired operation. An instance's last operation
// is needed as long as the instance exists.
func (c *collector) expire(ctx context.Context, op nf.Operation) (needed bool, err error) {
	if needed, err = c.records.Names(ctx, op); needed || err != nil {
		return needed, err
	}
	rev, err := c.records.revisions.Get(ctx, revisionKey(op.Subject.ID, op.Instance.Revision))
	if nf.KindOf(err) == nf.NotFound || err == nil && rev.Operation != op.ID {
		err = c.records.dropPlan(ctx, op.Instance.Target) // no revision needs it
	}
	return false, err
}

// find implements operation.Collector.
func (c *collector) find(ctx context.Context, found operation.StaleRecords) error {
	known := map[string]bool{}
	var locked []nf.Instance
	entered := map[string]bool{} // namespaces that an operation may be about to acquire or release
	for in, err := range c.records.instances.All(ctx, "") {
		if err != nil {
			return err
		}
		known[in.ID] = true
		for _, namespace := range in.Entered {
			entered[namespaceKey(in.Region, namespace)] = in.Operation != "" || entered[namespaceKey(in.Region, namespace)]
		}
		if in.Operation != "" {
			locked = append(locked, in)
		}
	}
	// Order matters: an operation is recorded before its instance names it.
	live := map[string]bool{}   // operations that have not ended
	needed := map[string]bool{} // operations whose plans are needed
	undone := map[string]bool{} // operations whose revisions were deleted
	err := c.records.ledger.Scan(ctx, nf.InstanceSubject, found, func(op nf.Operation) {
		needed[op.ID] = true
		undone[op.ID] = op.State.Final() && op.Undoing && op.UndoFailure == nil
		if !op.State.Final() {
			live[op.ID], known[op.Subject.ID] = true, true
			entered[namespaceKey(op.Region, op.Instance.Namespace)] = true
		}
	})
	if err != nil {
		return err
	}
	for _, in := range locked {
		if !live[in.Operation] {
			c.addLock(found, in)
		}
	}
	return errors.Join(c.addNames(ctx, found, known), c.addNamespaceUsers(ctx, found, known, entered), c.addHolds(ctx, found, known),
		c.addRevisions(ctx, found, known, needed, undone), c.addBlobs(ctx, found, needed))
}

// addLock adds an instance that is locked by an operation that has ended or does
// not exist. This happens if the store applies the lock late, after the request
// was withdrawn.
func (c *collector) addLock(found operation.StaleRecords, in nf.Instance) {
	found["lock of VNF instance "+in.ID+" by "+in.Operation] = func(ctx context.Context) error {
		_, err := c.records.instances.Update(ctx, in.ID, func(now *nf.Instance) error {
			if now.Operation != in.Operation {
				return nil
			}
			now.Become(nf.Broken, "operation "+now.Operation+" was given up")
			now.Operation, now.Claim, now.Updated = "", "", c.clock().UTC()
			return nil
		})
		return nf.IgnoreNotFound(err)
	}
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

// addNamespaceUsers finds namespace uses by instances that do not exist.
func (c *collector) addNamespaceUsers(ctx context.Context, found operation.StaleRecords, known, entered map[string]bool) error {
	abandoned, err := c.records.namespaces.Abandoned(ctx, known, entered)
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

// addHolds finds holds on regions and packages by instances that do not exist.
func (c *collector) addHolds(ctx context.Context, found operation.StaleRecords, known map[string]bool) error {
	for h, err := range c.records.holds.Holdings(ctx) {
		if err != nil {
			return err
		}
		if known[h.Instance] {
			continue
		}
		found[fmt.Sprintf("hold of %s on %s%s", h.Instance, h.Region, h.Package)] = func(ctx context.Context) error {
			return c.records.holds.Release(ctx, h)
		}
	}
	return nil
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
