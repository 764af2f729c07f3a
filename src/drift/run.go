package drift

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstPause   = 2 * time.Second // before an instance that could not be compared is tried again; doubled after each failure
	longestPause = 5 * time.Minute
	longestBusy  = 30 * time.Second // while an operation is running on the instance
	idle         = time.Hour
)

// Run compares instances until the context ends. It is called once.
func (w *Watcher) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for range w.cfg.Parallel {
		running.Go(func() {
			for ctx.Err() == nil {
				job, wait := w.take()
				if job == nil {
					delay.For(ctx, wait, w.wake)
					continue
				}
				w.wake.Send() // there may be another one that is due
				w.compare(ctx, *job)
			}
		})
	}
	return nil
}

// job is an instance to compare.
type job struct {
	id   string
	keys []string // nil: all objects
}

// take returns the instance that has been due for the longest time, or how long none is.
func (w *Watcher) take() (*job, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, idle
	}
	first := w.queue[0]
	if wait := time.Until(first.due); wait > 0 {
		return nil, wait
	}
	j := &job{id: first.id}
	if !first.all {
		j.keys = slices.Sorted(maps.Keys(first.dirty))
	}
	first.running, first.all = true, false
	clear(first.dirty)
	w.plan(first)
	return j, 0
}

// compare compares an instance, and has it corrected.
func (w *Watcher) compare(ctx context.Context, j job) {
	in, drifts, err := w.cfg.Source.Drift(ctx, j.id, j.keys)
	if ctx.Err() != nil {
		return
	}
	refs := w.conclude(ctx, j, in, drifts, err)
	if len(refs) == 0 {
		return
	}
	op, started, err := w.cfg.Source.Correct(ctx, in, refs)
	switch kind := nf.KindOf(err); {
	case err == nil && started:
		w.cfg.Logger.InfoContext(ctx, "correcting drift of a VNF instance", "vnf_id", in.ID, "operation", op.ID, "objects", len(refs))
	case err != nil && kind != nf.Busy && kind != nf.Conflict && ctx.Err() == nil:
		w.cfg.Logger.WarnContext(ctx, "failed to correct drift of a VNF instance; will retry", "vnf_id", in.ID, "error", err)
	}
	var keys []string
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	w.again(j.id, keys)
}

// again has objects compared later.
func (w *Watcher) again(id string, keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.subjects[id]
	if s == nil {
		return
	}
	s.failures++ // until a comparison finds nothing to correct
	s.later(w, keys, time.Now().Add(delay.Doubled(firstPause, longestPause, s.failures-1)))
}

// later has objects compared at a time, or all of them if keys is nil, unless the
// instance is to be compared earlier.
func (s *subject) later(w *Watcher, keys []string, at time.Time) {
	if !s.all && len(s.dirty) == 0 || at.Before(s.due) {
		s.due = at
	}
	s.all = s.all || keys == nil
	for _, key := range keys {
		s.dirty[key] = true
	}
	w.plan(s)
	w.wake.Send()
}

// conclude records the result of a comparison, and returns the objects to correct now.
func (w *Watcher) conclude(ctx context.Context, j job, in nf.Instance, drifts []nf.Drift, err error) []nf.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.subjects[j.id]
	if s == nil {
		return nil
	}
	s.running = false
	w.plan(s)
	now := time.Now()
	if err != nil {
		s.fail(w, j, err, now)
		return nil
	}
	if j.keys != nil && s.compared != in.LastOperation {
		s.later(w, nil, now) // an operation has changed the instance
	}
	if j.keys == nil {
		s.compared, s.drifts = in.LastOperation, map[string]nf.Drift{}
	}
	before := maps.Clone(s.drifts)
	for _, key := range j.keys {
		delete(s.drifts, key)
	}
	for _, d := range drifts {
		s.drifts[d.Key()] = d
	}
	s.err = nil
	refs := s.correctable(w, in, now)
	s.become(now)
	w.report(ctx, in, before, s)
	if len(refs) == 0 {
		s.failures = 0
	}
	return refs
}

// fail records that an instance could not be compared.
func (s *subject) fail(w *Watcher, j job, err error, now time.Time) {
	longest := longestPause
	switch nf.KindOf(err) {
	case nf.NotFound:
		w.drop(s)
		return
	case nf.Busy:
		longest = longestBusy
	default:
		s.err = errors.New(cmp.Or(nf.ReasonOf(err), nf.KindOf(err).String()))
		if nf.KindOf(err) == nf.Conflict {
			s.err = err // such as the state of the instance
		}
		s.become(now)
	}
	s.failures++
	s.later(w, j.keys, now.Add(delay.Doubled(firstPause, longest, s.failures-1)))
}

// correctable returns the objects that are to be corrected now. Those that must wait are
// compared again later.
func (s *subject) correctable(w *Watcher, in nf.Instance, now time.Time) (refs []nf.Ref) {
	s.contested = false
	if in.Drift.Mode != nf.DriftCorrect {
		return nil
	}
	for key, d := range s.drifts {
		if d.Message != "" {
			continue
		}
		due, ok := nf.CorrectionOf(in.Corrections, d.Ref).Due()
		switch {
		case !ok:
			s.contested = true
		case due.After(now):
			s.later(w, []string{key}, due)
		default:
			refs = append(refs, d.Ref)
		}
	}
	slices.SortFunc(refs, nf.Ref.Compare)
	return refs
}

// become sets the state that follows from what is known.
func (s *subject) become(now time.Time) {
	state := nf.DriftNone
	switch {
	case s.err != nil:
		state = nf.DriftUnknown
	case s.contested:
		state = nf.DriftContested
	case len(s.drifts) > 0:
		state = nf.Drifted
	}
	if s.state != state {
		s.state, s.since = state, now
	}
}

// report logs objects that have drifted since the last comparison.
func (w *Watcher) report(ctx context.Context, in nf.Instance, before map[string]nf.Drift, s *subject) {
	for _, key := range slices.Sorted(maps.Keys(s.drifts)) {
		d := s.drifts[key]
		if old, ok := before[key]; ok && same(old, d) {
			continue
		}
		attrs := []any{"vnf_id", in.ID, "region", in.Region, "object", d.Ref.String(), "state", s.state}
		switch {
		case d.Missing:
			attrs = append(attrs, "change", "deleted")
		case d.Message != "":
			attrs = append(attrs, "error", d.Message)
		default:
			f := d.Fields[0]
			attrs = append(attrs, "field", f.Path, "fields", len(d.Fields), "manager", f.Manager, "at", f.At)
		}
		w.cfg.Logger.WarnContext(ctx, "object of a VNF instance has drifted", attrs...)
	}
}

// same reports whether a drift was reported before.
func same(a, b nf.Drift) bool {
	return a.Missing == b.Missing && (a.Message == "") == (b.Message == "") && slices.EqualFunc(a.Fields, b.Fields, func(x, y nf.DriftField) bool {
		return x.Path == y.Path && x.Manager == y.Manager
	})
}
