package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Source provides the instances, the regions' states and the objects' statuses.
type Source interface {
	// Instances yields every instance. An error ends the sequence.
	Instances(ctx context.Context) iter.Seq2[nf.Instance, error]

	// Region returns the state of a region. It does not block.
	Region(id string) nf.RegionState

	// Canonical returns the region in which the objects of a region are watched: itself, or
	// one with the same access, which must be the same for all of these. It does not block.
	Canonical(region string) string

	// Census yields the status of each object of a kind in a region that belongs
	// to an instance, then a Mark that is Synced. Then it yields each status that
	// may have changed, until the loop stops or the context ends. An error ends
	// the sequence, and the caller starts a new one later.
	Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[Mark, error]
}

// Mark is the status of one object.
type Mark struct {
	Owner  string
	Key    string    // nf.Ref.Key of the object
	Status nf.Status // nf.Absent: the object was deleted, or no longer belongs to the owner
	Synced bool      // not an object: all existing objects have been yielded
}

// Config configures a watcher. Source is required.
type Config struct {
	Source  Source
	Every   time.Duration // interval between readings of the instances; default 30 s
	Kinds   int           // maximum kinds watched in one region; default 64
	Watches int           // maximum watches in all regions together; default 4096
	Logger  *slog.Logger  // default: discard
}

func (c *Config) complete() error {
	if c.Source == nil {
		return errors.New("cannot create a health watcher: Source is required")
	}
	c.Every = cmp.Or(c.Every, 30*time.Second)
	c.Kinds = cmp.Or(c.Kinds, 64)
	c.Watches = cmp.Or(c.Watches, 4096)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Watcher watches the health of instances. It is safe for concurrent use.
type Watcher struct {
	cfg  Config
	wake delay.Signal // holds a token if a kind that is not watched was asked for, or all kinds have been read

	mu        sync.Mutex
	kinds     map[place]*kind
	counts    []nf.InstanceCount
	unhealthy []string // ids of instances
}

// place is a kind of object in a canonical region, in any version.
type place struct{ region, group, kind string }

func placeOf(region string, ref nf.Ref) place { return place{region, ref.Group, ref.Kind} }

// New returns a watcher. It watches nothing before Run.
func New(cfg Config) (*Watcher, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, wake: delay.NewSignal(), kinds: map[place]*kind{}}, nil
}

// InstanceHealth returns the health of an instance from the statuses that are
// watched now. It sends no request to the region or the store.
func (w *Watcher) InstanceHealth(in nf.Instance) nf.InstanceHealth {
	out, watched := w.assess(in)
	if !watched {
		w.wake.Send()
	}
	return out
}

// assess returns the health of an instance, and whether all kinds of its objects are
// watched.
func (w *Watcher) assess(in nf.Instance) (out nf.InstanceHealth, watched bool) {
	if s := w.cfg.Source.Region(in.Region); s.Condition == nf.RegionUnreachable {
		return nf.InstanceHealth{State: nf.HealthUnknown, Message: fmt.Sprintf("cloud region %s is unreachable (%s)", in.Region, s.Reason)}, true
	}
	items := nf.Judged(in.Inventory)
	objects := make([]nf.Health, len(items))
	region := w.cfg.Source.Canonical(in.Region)
	var blind error
	watched = true
	for i, it := range items {
		h := nf.Health{Ref: it.Ref, Status: nf.Unknown}
		status, err := w.status(placeOf(region, it.Ref), object{in.ID, it.Key()})
		watched = watched && !errors.Is(err, errUnwatched)
		if err == nil {
			h.Status = status
		}
		blind = cmp.Or(blind, err)
		objects[i] = it.Judge(h)
	}
	out = nf.Assess(in.State, objects)
	if out.State == nf.HealthUnknown && blind != nil {
		out.Message += ": " + blind.Error()
	}
	return out, watched
}

var (
	errUnread    = errors.New("its kind has not been read yet")
	errUnwatched = fmt.Errorf("%w", errUnread) // nor is it watched
	errUnserved  = errors.New("the cloud region does not serve its kind")
	errTooMany   = errors.New("the instances have objects of more kinds than are watched")
)

// status returns the status of an object in a place, or an error that says why it is
// unknown.
func (w *Watcher) status(p place, o object) (nf.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[p]
	if k == nil {
		return nf.Unknown, errUnwatched
	}
	if k.err != nil {
		return nf.Unknown, k.err
	}
	return cmp.Or(k.seen[o], nf.Absent), nil
}

// InstanceCounts returns the number of instances by state, region and health,
// as last counted.
func (w *Watcher) InstanceCounts() []nf.InstanceCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// Unhealthy returns the ids of the instances that were nf.Unhealthy when they were counted
// last. Those whose health is unknown, for example in an unreachable region, are not among
// them.
func (w *Watcher) Unhealthy() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unhealthy)
}
