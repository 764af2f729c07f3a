package sol003

import (
	"context"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// sweep is one search for stale records of VNFs.
type sweep struct {
	m *Manager

	named  map[string]string          // the occurrence that each VNF names
	needed map[string]map[string]bool // what each VNF holds
	live   map[string]bool            // occurrences with an attempt that has not ended
	placed map[string]bool            // regions that VNFs use
}

var _ operation.Sweep = (*sweep)(nil)

func newSweep(m *Manager) *sweep {
	return &sweep{m, map[string]string{}, map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// need records what a VNF holds.
func (w *sweep) need(v nf.VNF) {
	if w.needed[v.ID] == nil {
		w.needed[v.ID] = map[string]bool{}
	}
	for _, thing := range heldBy(v) {
		w.needed[v.ID][thing] = true
	}
}

// heldBy returns what a VNF holds: its packages, and the cloud of its stack.
func heldBy(v nf.VNF) []string {
	held := packagesOf(v)
	if in := v.Instantiated; in != nil && in.Stack != "" {
		held = append(held, in.Region)
	}
	return held
}

// place records the regions of a VNF.
func (w *sweep) place(v nf.VNF) {
	for _, c := range v.VIMs {
		w.placed[c.Region] = true
	}
	if v.Instantiated != nil {
		w.placed[v.Instantiated.Region] = true
	}
}

// Subjects implements operation.Sweep. A VNF whose operation was given up keeps the
// occurrence that it names: that can be retried.
func (w *sweep) Subjects(ctx context.Context, named operation.Named) error {
	return w.m.locks.Scan(ctx, named, func(v nf.VNF) {
		w.named[v.ID] = v.Occurrence
		w.need(v)
		w.place(v)
	}, w.giveUp)
}

// giveUp edits a VNF whose operation has ended or does not exist: the store has applied
// the lock late. The VNF no longer names an occurrence whose request was withdrawn.
func (w *sweep) giveUp(ctx context.Context, v *nf.VNF) error {
	if v.Occurrence == "" {
		return nil
	}
	_, err := w.m.occurrences.Get(ctx, v.Occurrence)
	if err != nil && nf.KindOf(err) == nf.NotFound {
		v.Occurrence, err = "", nil
	}
	return err
}

// Operation implements operation.Sweep.
func (w *sweep) Operation(op nf.Operation) {
	if !op.State.Final() {
		w.live[op.VNF.Occurrence] = true
	}
}

// Find implements operation.Sweep. It finds occurrences whose requests were not accepted,
// those of VNFs that were deleted before the retention, holds that no VNF needs, and regions
// that only requests for VNFs have described.
func (w *sweep) Find(ctx context.Context, found operation.StaleRecords) error {
	now := w.m.now()
	for r, err := range w.m.occurrences.All(ctx, "") {
		if err != nil {
			return err
		}
		occurrence, exists := w.named[r.VNF]
		if w.live[r.ID] || exists && occurrence == r.ID {
			w.need(r.Task.After)
			w.place(r.Task.After)
			continue
		}
		if exists && r.State.Final() || !exists && r.State.Final() && !expired(r, now, w.m.cfg.Retention) {
			continue
		}
		found["occurrence "+r.ID] = func(ctx context.Context) error {
			return w.m.occurrences.DeleteWhere(ctx, r.ID, func(now record) bool { return now.Changes == r.Changes && now.Claim == r.Claim })
		}
	}
	if err := w.findRegions(ctx, found); err != nil {
		return err
	}
	abandoned, _, err := store.AbandonedHolds(ctx, w.m.cfg.KV, nf.VNFSubject, func(h store.Hold) bool {
		return w.needed[h.Holder.Subject.ID][h.Thing]
	}, w.dropHold)
	maps.Copy(found, abandoned)
	return err
}

// findRegions finds the regions of requests for VNFs that no VNF uses. One that something
// else uses stays.
func (w *sweep) findRegions(ctx context.Context, found operation.StaleRecords) error {
	for r, err := range w.m.cfg.Regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return err
		}
		if r.Origin != nf.OriginVNF || w.placed[r.ID] {
			continue
		}
		used, err := isUsed(ctx, w.m.cfg.Regions, r.ID)
		if err != nil {
			return err
		}
		if used {
			continue
		}
		found["cloud region "+r.ID] = func(ctx context.Context) error {
			err := w.m.cfg.Regions.RemoveRegion(ctx, r.ID)
			if nf.KindOf(err) == nf.Conflict { // something else uses it
				err = nil
			}
			return nf.IgnoreNotFound(err)
		}
	}
	return nil
}

// isUsed reports whether something uses a region.
func isUsed(ctx context.Context, regions Regions, id string) (bool, error) {
	for _, err := range regions.Users(ctx, nf.Holding{Region: id}) {
		return err == nil, err
	}
	return false, nil
}

// dropHold drops a hold that its VNF does not need. It drops nothing if the VNF has come
// to use the thing in the meantime.
func (w *sweep) dropHold(ctx context.Context, h store.Hold, drop store.Op) error {
	id := h.Holder.Subject.ID
	v, read, err := w.m.vnfs.GetRevision(ctx, id)
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	if err != nil {
		read = store.Absent
	} else if slices.Contains(heldBy(v), h.Thing) || v.Occurrence != "" {
		return nil
	}
	same, err := w.m.vnfs.CheckOp(id, read)
	if err != nil {
		return err
	}
	_, err = store.Write(ctx, w.m.cfg.KV, []store.Op{same, drop})
	if kind := nf.KindOf(err); err != nil && (kind == nf.Exists || kind == nf.Conflict) {
		return nil
	}
	return err
}
