package aaisync

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	orphanPause   = 5 * time.Minute // between the two searches that must find the same; SO deletes the objects right after their instance
	maxOrphans    = 1000            // instances that are reported
	maxOrphanPart = 500             // objects of each
	orphanReason  = "SO's adapter for CNFs has left objects of an instance that does not exist; the service does not delete them"
)

// orphan is what is stored of the objects that SO's adapter has left of an instance.
type orphan struct {
	ID      string    `json:"id"` // of the instance
	Since   time.Time `json:"since"`
	Objects []string  `json:"objects"`
}

// Orphans yields the listings of instances that do not exist, and of which A&AI has
// objects of SO's adapter, by id. They are as of the last search.
func (k *Keeper) Orphans(ctx context.Context) iter.Seq2[nf.Listing, error] {
	return func(yield func(nf.Listing, error) bool) {
		for o, err := range k.orphans.All(ctx, "") {
			l := nf.Listing{
				Subject: nf.Subject{Kind: nf.InstanceSubject, ID: o.ID}, State: nf.ListingOrphaned, Reason: orphanReason, Since: o.Since, Objects: o.Objects,
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// searchOrphans searches the objects that SO's adapter has left, once per interval, until
// the context ends. It does not change them: they may belong to another service.
func (k *Keeper) searchOrphans(ctx context.Context) {
	if k.cfg.Instances == nil {
		return
	}
	var before map[string][]string
	pause := min(orphanPause, k.cfg.Verify)
	for delay.For(ctx, pause, nil); ctx.Err() == nil; delay.For(ctx, pause, nil) {
		pause = k.cfg.Verify
		if k.isDenied() {
			continue
		}
		found, err := k.findOrphans(ctx)
		isSure := true
		if err == nil {
			isSure, err = k.recordOrphans(ctx, found, before)
		}
		switch {
		case err == nil:
			before = found
		case ctx.Err() == nil:
			k.cfg.Logger.WarnContext(ctx, "failed to search objects of SO's adapter in A&AI; will retry", "error", err)
		}
		if !isSure {
			pause = min(orphanPause, k.cfg.Verify)
		}
	}
}

// findOrphans returns the paths of the objects of SO's adapter in A&AI whose instance
// does not exist, by the id of the instance.
func (k *Keeper) findOrphans(ctx context.Context) (map[string][]string, error) {
	places, err := k.cfg.Instances.Places(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]string)
	for _, p := range places {
		found, err := k.cfg.Target.Adapted(ctx, p)
		if err != nil {
			return nil, err
		}
		for id, paths := range found {
			exists, err := k.cfg.Instances.Exists(ctx, id)
			if err != nil {
				return nil, err
			}
			if _, known := out[id]; !exists && len(nf.CheckID("", id)) == 0 && (known || len(out) < maxOrphans) {
				out[id] = append(out[id], paths...)
			}
		}
	}
	return out, nil
}

// recordOrphans stores what two searches have found, and reports whether that is all that
// the last one has found.
func (k *Keeper) recordOrphans(ctx context.Context, found, before map[string][]string) (isSure bool, _ error) {
	stored, err := k.orphans.List(ctx, "")
	if err != nil {
		return false, err
	}
	known := make(map[string]orphan, len(stored))
	for _, o := range stored {
		if known[o.ID] = o; found[o.ID] == nil {
			if err := nf.IgnoreNotFound(k.orphans.Delete(ctx, o.ID)); err != nil {
				return false, err
			}
		}
	}
	isSure, count := true, 0
	for _, id := range slices.Sorted(maps.Keys(found)) {
		o, isKnown := known[id]
		if !isKnown && before[id] == nil {
			isSure = false
			continue
		}
		count++
		paths := slices.Sorted(slices.Values(found[id]))
		if paths = paths[:min(len(paths), maxOrphanPart)]; slices.Equal(paths, o.Objects) {
			continue
		}
		if !isKnown {
			o = orphan{ID: id, Since: k.cfg.Clock().UTC()}
			k.cfg.Logger.WarnContext(ctx, "A&AI has objects of SO's adapter, but their instance does not exist", "instance", id, "objects", len(paths))
		}
		o.Objects = paths
		if err := k.orphans.Put(ctx, id, o); err != nil {
			return false, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = count
	return isSure, nil
}
