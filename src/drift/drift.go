package drift

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Source compares and corrects the objects of instances.
type Source interface {
	// Drift returns an instance, and those of its objects that have drifted; of the
	// objects with the keys (nf.Ref.Key), or of all if keys is nil. It returns
	// nf.NotFound if the instance does not exist, and nf.Busy while an operation is
	// running on it.
	Drift(ctx context.Context, id string, keys []string) (nf.Instance, []nf.Drift, error)

	// Correct starts an operation that corrects objects of an instance, unless none of
	// them differs any longer. It returns nf.Busy or nf.Conflict if the instance has
	// changed since it was seen.
	Correct(ctx context.Context, seen nf.Instance, refs []nf.Ref) (op nf.Operation, started bool, err error)
}

// Config configures a watcher. Source is required.
type Config struct {
	Source   Source
	Parallel int           // maximum number of instances that are compared at once; default 4
	Settle   time.Duration // after a change, before the object is compared; default 1 s
	Logger   *slog.Logger  // default: discard
}

func (c *Config) complete() error {
	if c.Source == nil {
		return errors.New("cannot create a drift watcher: Source is required")
	}
	c.Parallel = cmp.Or(c.Parallel, 4)
	c.Settle = cmp.Or(c.Settle, time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Watcher watches the drift of instances. It is safe for concurrent use.
type Watcher struct {
	cfg  Config
	wake delay.Signal // holds a token if there is an instance to compare

	mu       sync.Mutex
	subjects map[string]*subject // by instance; those that ask for it
	queue    queue
}

// New returns a watcher. It compares nothing before Run.
func New(cfg Config) (*Watcher, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, wake: delay.NewSignal(), subjects: map[string]*subject{}}, nil
}

// subject is what is known of one instance.
type subject struct {
	id     string
	region string
	policy nf.DriftPolicy
	last   string            // its last operation, as last followed
	read   time.Time         // when the instance that was followed was updated
	keys   []string          // of its objects
	stamps map[string]uint64 // of each object that a watch has reported, by key; 0: it does not exist

	dirty    map[string]bool // keys of objects to compare
	all      bool            // compare all objects
	due      time.Time       // when to compare
	running  bool            // it is being compared
	place    int             // in the queue, or unqueued
	failures int             // to compare it, in sequence

	compared  string // the last operation when all objects were compared
	err       error  // why the drift is unknown
	drifts    map[string]nf.Drift
	contested bool
	state     nf.DriftState
	since     time.Time
}

// Follows reports whether a watcher compares an instance with its region.
func Follows(in nf.Instance) bool { return in.Drift.Active() && in.State != nf.Terminating }

// Follow sets the instances that exist, at least those that Follows accepts. It is called
// whenever they have been read.
func (w *Watcher) Follow(all []nf.Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[string]bool{}
	for _, in := range all {
		if Follows(in) {
			wanted[in.ID] = true
			w.follow(in)
		}
	}
	for id, s := range w.subjects {
		if !wanted[id] {
			w.drop(s)
		}
	}
}

// follow takes note of an instance that asks for it.
func (w *Watcher) follow(in nf.Instance) *subject {
	now := time.Now()
	s := w.subjects[in.ID]
	if s == nil {
		s = &subject{id: in.ID, place: unqueued, stamps: map[string]uint64{}, dirty: map[string]bool{}, drifts: map[string]nf.Drift{}, state: nf.DriftUnknown, since: now}
		w.subjects[in.ID] = s
	}
	if in.Updated.Before(s.read) {
		return s // it was read before another one
	}
	if s.last != in.LastOperation || s.policy.Mode != in.Drift.Mode || !slices.Equal(s.policy.Ignore, in.Drift.Ignore) {
		s.later(w, nil, now)
	}
	s.region, s.policy, s.last, s.read, s.keys = in.Region, in.Drift, in.LastOperation, in.Updated, nil
	for _, it := range nf.Judged(in.Inventory) {
		s.keys = append(s.keys, it.Key())
	}
	return s
}

// Mark is what a watch reports of one object.
type Mark struct {
	Owner  string
	Key    string    // nf.Ref.Key of the object
	Status nf.Status // nf.Absent: the object was deleted, or no longer belongs to the owner
	Stamp  uint64    // another number whenever more than the status may have changed
	Synced bool      // not an object: all existing objects have been reported
}

// Census follows the marks of one watch of a kind, from its start.
type Census struct {
	watcher *Watcher
	shows   func(region string) bool
	prefix  string          // of the keys of the kind
	seen    map[string]bool // owners and keys, until the first Mark that is Synced
}

// Census returns the follower of a watch that starts, which shows the objects of some
// regions.
func (w *Watcher) Census(shows func(region string) bool, kind nf.Ref) *Census {
	prefix, _, _ := strings.Cut(nf.Ref{Group: kind.Group, Kind: kind.Kind}.Key(), "/")
	return &Census{watcher: w, shows: shows, prefix: prefix + "/", seen: map[string]bool{}}
}

// See takes note of a mark.
func (c *Census) See(m Mark) {
	w := c.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Synced {
		c.synced()
		return
	}
	s := w.subjects[m.Owner]
	if s == nil || !c.shows(s.region) {
		return
	}
	if m.Status == nf.Absent {
		m.Stamp = 0
	} else if c.seen != nil {
		c.seen[m.Owner+" "+m.Key] = true
	}
	if old, known := s.stamps[m.Key]; !known || old != m.Stamp {
		s.stamps[m.Key] = m.Stamp
		w.touch(s, m.Key)
	}
}

// synced has the objects compared that do not exist: they may have been deleted while
// nothing was watched.
func (c *Census) synced() {
	for id, s := range c.watcher.subjects {
		if !c.shows(s.region) {
			continue
		}
		for _, key := range s.keys {
			if old, known := s.stamps[key]; strings.HasPrefix(key, c.prefix) && !c.seen[id+" "+key] && (!known || old != 0) {
				s.stamps[key] = 0
				c.watcher.touch(s, key)
			}
		}
	}
	c.seen = nil
}

// touch has an object compared soon.
func (w *Watcher) touch(s *subject, key string) {
	s.later(w, []string{key}, time.Now().Add(w.cfg.Settle))
}

// InstanceDrift returns the drift of an instance as last compared. Its state is empty if
// the instance does not ask for it. If the instance has changed since it was followed, it
// is compared soon. InstanceDrift sends no request.
func (w *Watcher) InstanceDrift(in nf.Instance) nf.InstanceDrift {
	if !in.Drift.Active() {
		return nf.InstanceDrift{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.follow(in) // it may be newer than what was read last
	if s.compared != in.LastOperation && s.err == nil {
		return nf.InstanceDrift{State: nf.DriftUnknown, Message: "the objects have not been compared since the last operation"}
	}
	out := nf.InstanceDrift{State: s.state, Since: s.since, Objects: slices.Collect(maps.Values(s.drifts))}
	slices.SortFunc(out.Objects, func(a, b nf.Drift) int { return a.Compare(b.Ref) })
	if s.err != nil {
		out.Message = s.err.Error()
	}
	return out
}

// DriftCounts returns the number of instances by region, policy and state. If a region has
// instances with a policy, there is a number for every state, including 0.
func (w *Watcher) DriftCounts() []nf.DriftCount {
	w.mu.Lock()
	defer w.mu.Unlock()
	numbers := map[nf.DriftCount]int{}
	for _, s := range w.subjects {
		for _, state := range nf.DriftStates() {
			numbers[nf.DriftCount{Region: s.region, Mode: s.policy.Mode, State: state}] += 0
		}
		numbers[nf.DriftCount{Region: s.region, Mode: s.policy.Mode, State: s.state}]++
	}
	out := make([]nf.DriftCount, 0, len(numbers))
	for c, n := range numbers {
		c.Number = n
		out = append(out, c)
	}
	return out
}
