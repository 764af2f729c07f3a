package health

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	soonest      = 2 * time.Second       // least time between two readings of the instances
	share        = 50                    // reading works for at most 1/share of the time
	stretch      = 10 * time.Millisecond // of work, after which a reading pauses
	rest         = 4                     // times the work before it that a pause takes
	firstPause   = time.Second           // before a failed watch is restarted; doubled after each failure
	longestPause = time.Minute
)

// Run watches until the context ends. It is called once.
func (w *Watcher) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	blind := false
	for first := true; ctx.Err() == nil; first = false {
		r, worked, err := w.read(ctx, first)
		if err == nil {
			w.arrange(ctx, r, &running)
			w.publish(r)
		} else if !blind && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "failed to read VNF instances; their health stays as last seen", "error", err)
		}
		blind = err != nil
		least := max(soonest, share*worked)
		if first {
			least = soonest // the first counts have every instance as unknown
		}
		delay.For(ctx, least, nil)
		delay.For(ctx, w.cfg.Every-least, w.wake)
	}
	return nil
}

// reading is what a reading of all instances tells.
type reading struct {
	wanted    map[place]nf.Ref         // the kinds of their objects
	sharers   map[string]int           // regions with instances, by the region that is watched for them
	numbers   map[nf.InstanceCount]int // by state, region and health
	unhealthy []string                 // ids
}

// read reads the instances, one after another: all at once can take 100 MiB. Unless it is
// the first reading, until which nothing is known, it pauses after each stretch of work, so
// that requests do not wait until all instances are read. It returns how long it worked.
//
// If a region has instances of a state, there is a number for every health, including 0.
// Otherwise the numbers of two replicas could not be compared.
func (w *Watcher) read(ctx context.Context, first bool) (r reading, worked time.Duration, err error) {
	r = reading{wanted: map[place]nf.Ref{}, sharers: map[string]int{}, numbers: map[nf.InstanceCount]int{}}
	watched := map[string]string{} // by region: the region that is watched for it, which may change meanwhile
	began := time.Now()
	for in, err := range w.cfg.Source.Instances(ctx) {
		if err != nil {
			return r, worked + time.Since(began), err
		}
		if d := time.Since(began); d >= stretch && !first {
			worked += d
			delay.For(ctx, rest*min(d, 2*stretch), nil) // the rest of a longer stretch was waiting for the store
			began = time.Now()
		}
		region, seen := watched[in.Region]
		if !seen {
			region = w.cfg.Source.Canonical(in.Region)
			watched[in.Region] = region
			r.sharers[region]++
		}
		for _, it := range nf.Judged(in.Inventory) {
			r.wanted[placeOf(region, it.Ref)] = nf.Ref{Group: it.Group, Version: it.Version, Kind: it.Kind}
		}
		for _, health := range nf.HealthStates() {
			r.numbers[nf.InstanceCount{Region: in.Region, State: in.State, Health: health}] += 0
		}
		is, _ := w.assess(in)
		if is.State == nf.Unhealthy {
			r.unhealthy = append(r.unhealthy, in.ID)
		}
		r.numbers[nf.InstanceCount{Region: in.Region, State: in.State, Health: is.State}]++
	}
	return r, worked + time.Since(began), nil
}

// publish makes the counts of a reading the present ones.
func (w *Watcher) publish(r reading) {
	counts := make([]nf.InstanceCount, 0, len(r.numbers))
	for c, n := range r.numbers {
		c.Number = n
		counts = append(counts, c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.unhealthy = counts, r.unhealthy
}

// kind is the state of the watch of one kind in a region. The watcher's lock
// guards it.
type kind struct {
	stop context.CancelFunc
	err  error                // why the statuses are unknown; nil: they are known
	seen map[object]nf.Status // of each object that exists
}

// object is one object of an instance. Nested maps would take four times the
// memory.
type object struct{ owner, key string }

// arrange watches the kinds that instances have in their regions, and stops all
// other watches. Regions that share watches may have as many kinds as all of them
// could without sharing.
func (w *Watcher) arrange(ctx context.Context, r reading, running *sync.WaitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, k := range w.kinds {
		if _, ok := r.wanted[p]; !ok {
			k.stop()
			delete(w.kinds, p)
		}
	}
	watched := map[string]int{} // by region
	total := 0
	for p, k := range w.kinds {
		if !errors.Is(k.err, errTooMany) {
			watched[p.region]++
			total++
		} else {
			delete(w.kinds, p) // there may be capacity now
		}
	}
	for _, p := range ordered(r.wanted) {
		if w.kinds[p] != nil {
			continue
		}
		if watched[p.region] >= w.cfg.Kinds*r.sharers[p.region] || total == w.cfg.Watches {
			w.kinds[p] = &kind{stop: func() {}, err: errTooMany}
			continue
		}
		watched[p.region]++
		total++
		ctx, stop := context.WithCancel(ctx)
		k := &kind{stop: stop, err: errUnread}
		w.kinds[p] = k
		running.Go(func() { w.follow(ctx, p.region, r.wanted[p], k) })
	}
}

// ordered returns the places in a fixed order, so that those beyond a limit are
// the same each time.
func ordered(wanted map[place]nf.Ref) []place {
	out := make([]place, 0, len(wanted))
	for p := range wanted {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind))
	})
	return out
}

// follow keeps the statuses of a kind up to date until the context ends.
func (w *Watcher) follow(ctx context.Context, region string, ref nf.Ref, k *kind) {
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		err, synced := w.look(ctx, region, ref, k)
		if ctx.Err() != nil {
			return
		}
		// A census that fails soon after its list still counts as a failure, because
		// each list is expensive.
		if failures++; synced && time.Since(began) > longestPause {
			failures = 1
		}
		w.mu.Lock()
		w.note(k, brief(err), nil)
		w.mu.Unlock()
		if failures == 1 {
			w.cfg.Logger.InfoContext(ctx, "failed to watch the health of objects; will retry", "region", region, "kind", ref.Kind, "error", err)
		}
		pause := delay.Doubled(firstPause, longestPause, failures-1)
		delay.For(ctx, pause/2+rand.N(pause/2), nil)
	}
}

// brief returns a short error that says why a census ended. A list of instances
// repeats it for each of them. The region's own message may be long, and may
// not be shown to every caller.
func brief(err error) error {
	switch {
	case err == nil:
		return errUnread
	case nf.KindOf(err) == nf.Unsupported:
		return errUnserved
	}
	return errors.New(cmp.Or(nf.ReasonOf(err), nf.KindOf(err).String()))
}

// note takes note of the statuses of a kind, or of why they are unknown. When no kind remains
// unread, it has the instances counted again: the last counts have some of them as unknown.
// The caller holds the lock.
func (w *Watcher) note(k *kind, err error, seen map[object]nf.Status) {
	unread := errors.Is(k.err, errUnread)
	k.err, k.seen = err, seen
	if !unread {
		return
	}
	for _, other := range w.kinds {
		if errors.Is(other.err, errUnread) {
			return
		}
	}
	w.wake.Send()
}

// look records the statuses of one census, and returns how it ended. Earlier
// statuses stay valid until the census is synced.
func (w *Watcher) look(ctx context.Context, region string, ref nf.Ref, k *kind) (err error, synced bool) {
	seen := map[object]nf.Status{}
	for m, err := range w.cfg.Source.Census(ctx, region, ref) {
		if err != nil {
			return err, synced
		}
		w.mu.Lock()
		switch {
		case m.Synced:
			w.note(k, nil, seen)
			synced = true
		case m.Status == nf.Absent:
			delete(seen, object{m.Owner, m.Key})
		default:
			seen[object{m.Owner, m.Key}] = m.Status
		}
		w.mu.Unlock()
	}
	return nil, synced
}
