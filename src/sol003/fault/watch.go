package fault

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// Source provides VNFs, their instances, and how these are.
type Source interface {
	// Unhealthy returns the ids of the instances that were unhealthy when they were all
	// looked at last, without those whose health was unknown. It sends no request.
	Unhealthy() []string
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	// VNF returns a VNF, whose instance has the same id, or nf.NotFound.
	VNF(ctx context.Context, id string) (nf.VNF, error)
	// InstanceHealth returns the health of an instance. It sends no request.
	InstanceHealth(in nf.Instance) nf.InstanceHealth
	// Pods returns the pods of an instance as they are now.
	Pods(ctx context.Context, id string) ([]nf.Pod, error)
}

// Config configures a Watcher. KV, Source and NewID are required.
type Config struct {
	KV     store.KV
	Source Source
	NewID  func() string // returns a short unique id

	Every     time.Duration // interval between looks at the unhealthy instances; default 15 s
	Lasting   time.Duration // how long a fault is there before its alarm, and gone before that is cleared; default 1 min
	Retention time.Duration // of cleared alarms; default 30 days
	Clock     func() time.Time
	Logger    *slog.Logger
	Lease     time.Duration // see leader.Config, and so is Sole
	Sole      bool
}

const (
	prefix      = "vnfalarms/"
	podsTime    = 20 * time.Second // to read the pods of an instance
	expireEvery = time.Hour
)

// Watcher raises and clears alarms. It is safe for concurrent use.
type Watcher struct {
	cfg     Config
	alarms  store.Table[record]
	notices store.Table[nf.Notice]
	noticed delay.Signal
	group   *leader.Group
	counts  atomic.Pointer[[]nf.AlarmCount] // nil: another replica raises alarms
}

// New returns a watcher. It raises nothing before Run.
func New(cfg Config) (*Watcher, error) {
	if cfg.KV == nil || cfg.Source == nil || cfg.NewID == nil {
		return nil, errors.New("cannot create a watcher of faults: KV, Source and NewID are required")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	cfg.Every = cmp.Or(cfg.Every, 15*time.Second)
	cfg.Lasting = cmp.Or(cfg.Lasting, time.Minute)
	cfg.Retention = cmp.Or(cfg.Retention, 30*24*time.Hour)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	w := &Watcher{
		cfg: cfg, alarms: store.NewTable[record](cfg.KV, prefix+"alarms/", "alarm"),
		notices: store.NewTable[nf.Notice](cfg.KV, prefix+"notices/", "notice"), noticed: delay.NewSignal(),
	}
	var err error
	w.group, err = leader.New(leader.Config{
		KV: cfg.KV, Prefix: prefix + "watch/", Work: "watch for faults", NewID: cfg.NewID, Clock: cfg.Clock, Logger: cfg.Logger, Lease: cfg.Lease, Sole: cfg.Sole,
	})
	return w, err
}

// Run raises and clears alarms if this replica is chosen for it, until the context ends.
// It must be called only once.
func (w *Watcher) Run(ctx context.Context) error { return w.group.Run(ctx, w.watch) }

func (w *Watcher) now() time.Time { return w.cfg.Clock().UTC() }

func (w *Watcher) watch(ctx context.Context) {
	defer w.counts.Store(nil)
	at := &state{w: w}
	var expired time.Time
	for ctx.Err() == nil {
		err := at.look(ctx)
		if err == nil && w.now().Sub(expired) > expireEvery {
			expired, err = w.now(), w.expire(ctx)
			at = &state{w: w} // without the alarms that were deleted
		}
		if err != nil && ctx.Err() == nil {
			w.cfg.Logger.WarnContext(ctx, "failed to look for faults; will retry", "error", err)
			at = &state{w: w} // a write may have succeeded
		}
		delay.For(ctx, w.cfg.Every, nil)
	}
}

// state is what the leader knows of faults.
type state struct {
	w    *Watcher
	vnfs map[string]faults // by id; nil: not loaded
}

// faults are the faults of one VNF, by their keys.
type faults map[string]*fault

// fault is a fault that is there, or was there, or has had an alarm.
type fault struct {
	first, last time.Time // when it was found, as long as it lasts
	alarm       *record   // nil: none is raised
	former      record    // the last one that was raised; zero: none
}

// load loads the alarms.
func (s *state) load(ctx context.Context) error {
	if s.vnfs != nil {
		return nil
	}
	vnfs, now := map[string]faults{}, s.w.now()
	for r, err := range s.w.alarms.All(ctx, "") {
		if err != nil {
			return err
		}
		f := faultOf(vnfs, r.VNF, r.Key)
		if r.Cleared.IsZero() {
			f.alarm, f.first, f.last = &r, r.Observed, now
		}
		if !r.Raised.Before(f.former.Raised) {
			f.former = r
		}
	}
	s.vnfs = vnfs
	s.count()
	return nil
}

// present reports whether there is a fault, and not only a former one.
func (fs faults) present() bool {
	for _, f := range fs {
		if f.alarm != nil || !f.first.IsZero() {
			return true
		}
	}
	return false
}

func faultOf(vnfs map[string]faults, vnf, key string) *fault {
	if vnfs[vnf] == nil {
		vnfs[vnf] = faults{}
	}
	all := vnfs[vnf]
	if all[key] == nil {
		all[key] = &fault{}
	}
	return all[key]
}

// look compares the instances that are unhealthy, and those that were, with the alarms.
func (s *state) look(ctx context.Context) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	defer s.count()
	ids := s.w.cfg.Source.Unhealthy() // those that are well are not read
	for id, all := range s.vnfs {
		if all.present() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		in, err := s.w.cfg.Source.Instance(ctx, id)
		switch {
		case nf.KindOf(err) == nf.NotFound && s.vnfs[id] != nil:
			err = s.settle(ctx, nf.VNF{ID: id}, nil, 0) // the faults are gone with the instance
		case err == nil:
			err = s.instance(ctx, in)
		}
		if err := nf.IgnoreNotFound(err); err != nil {
			return err
		}
	}
	maps.DeleteFunc(s.vnfs, func(_ string, all faults) bool { return len(all) == 0 })
	return s.acknowledge(ctx)
}

// instance compares an instance with its alarms.
func (s *state) instance(ctx context.Context, in nf.Instance) error {
	health := s.w.cfg.Source.InstanceHealth(in)
	if in.State != nf.Ready || in.Operation != "" || health.State == nf.HealthUnknown {
		s.hold(in.ID)
		return nil
	}
	if health.State == nf.Healthy {
		if s.vnfs[in.ID] == nil {
			return nil
		}
		return s.settle(ctx, nf.VNF{ID: in.ID}, nil, s.w.cfg.Lasting)
	}
	v, err := s.w.cfg.Source.VNF(ctx, in.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return nil // the instance is not one of SOL003
	case err != nil:
		return err
	case v.Instantiated == nil || v.Occurrence != "":
		s.hold(in.ID)
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, podsTime)
	pods, err := s.w.cfg.Source.Pods(limited, in.ID)
	cancel()
	if err != nil {
		s.w.cfg.Logger.InfoContext(ctx, "failed to read the pods of an unhealthy VNF", "vnf", in.ID, "error", err)
		s.hold(in.ID)
		return nil
	}
	found := find(v, health, pods)
	for key := range found {
		faultOf(s.vnfs, in.ID, key)
	}
	return s.settle(ctx, v, found, s.w.cfg.Lasting)
}

// hold makes the faults of a VNF that have no alarm begin anew, and those that have one
// last: nothing is known of them.
func (s *state) hold(id string) {
	for _, f := range s.vnfs[id] {
		if f.alarm != nil {
			f.last = s.w.now()
		} else {
			f.first, f.last = time.Time{}, time.Time{}
		}
	}
}

// settle raises, changes and clears the alarms of a VNF. A fault that was not found counts
// as gone after the time.
func (s *state) settle(ctx context.Context, v nf.VNF, found map[string]nf.Alarm, gone time.Duration) error {
	all, now := s.vnfs[v.ID], s.w.now()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f := all[key]
		a, there := found[key]
		if there {
			f.last = now
			if f.first.IsZero() {
				f.first = now
			}
		}
		var err error
		switch {
		case there && f.alarm == nil && now.Sub(f.first) >= s.w.cfg.Lasting:
			a.Observed, a.Raised = f.first, now
			r := recordOf(v, key, a, f.former.ID)
			if err = s.w.change(ctx, nf.NoticeAlarm, r); err == nil {
				f.alarm, f.former = &r, r
			}
		case there && f.alarm != nil && differs(f.alarm.Alarm, a) && now.Sub(f.told()) >= s.w.cfg.Lasting:
			err = s.update(ctx, f, a)
		case !there && now.Sub(f.last) >= gone:
			if err = s.clear(ctx, f); err == nil && f.former.ID == "" {
				delete(all, key)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// told returns when the alarm of a fault was raised or changed last.
func (f *fault) told() time.Time {
	if f.alarm.Changed.IsZero() {
		return f.alarm.Raised
	}
	return f.alarm.Changed
}

// differs reports whether an alarm says something else than before that matters.
func differs(before, now nf.Alarm) bool {
	return before.Severity != now.Severity || !slices.Equal(before.VNFCs, now.VNFCs)
}

func (s *state) update(ctx context.Context, f *fault, a nf.Alarm) error {
	changed := *f.alarm
	a.ID, a.Observed, a.Raised, a.Changed = changed.ID, changed.Observed, changed.Raised, s.w.now()
	changed.Alarm = a
	if err := s.w.change(ctx, nf.NoticeAlarm, changed); err != nil {
		return err
	}
	f.alarm = &changed
	return nil
}

// clear clears the alarm of a fault that is gone, if it has one.
func (s *state) clear(ctx context.Context, f *fault) error {
	f.first, f.last = time.Time{}, time.Time{}
	if f.alarm == nil {
		return nil
	}
	cleared := *f.alarm
	cleared.Cleared, cleared.Changed, cleared.Severity = s.w.now(), s.w.now(), nf.AlarmCleared
	if err := s.w.change(ctx, nf.NoticeCleared, cleared); err != nil {
		return err
	}
	f.alarm, f.former = nil, cleared
	return nil
}
