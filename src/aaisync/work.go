package aaisync

import (
	"context"
	"errors"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// job is a subject to write.
type job struct {
	id      string
	version string // when it was read
	verify  bool
	asked   *request // nil: it was not asked for
}

// scan is what one reading of all subjects and records has found.
type scan struct {
	jobs   []job
	next   time.Time // when another subject is due
	places map[aai.Place]bool
}

// work writes subjects when they are due, until the context ends.
func (k *Keeper) work(ctx context.Context) {
	isLoaded := false
	for ctx.Err() == nil {
		var s scan
		now := k.cfg.Clock()
		err := k.load(ctx, &isLoaded)
		if err == nil {
			s, err = k.scan(ctx, now)
		}
		if err == nil {
			k.writeAll(ctx, s.jobs)
			err = k.removeStrays(ctx, s, now)
		}
		if err != nil && ctx.Err() == nil {
			k.cfg.Logger.WarnContext(ctx, "failed to read what A&AI is to have; will retry", "error", err)
		}
		delay.For(ctx, k.pause(s), k.wakeCh)
	}
}

// load reads the records once: while this replica writes, no other one changes them.
func (k *Keeper) load(ctx context.Context, isLoaded *bool) error {
	if *isLoaded {
		return nil
	}
	marks := make(map[string]mark)
	for r, err := range k.records.All(ctx, "") {
		if err != nil {
			return err
		}
		marks[r.ID] = r.mark()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marks, *isLoaded = marks, true
	return nil
}

// setMark remembers the mark of a subject; nil: it has none.
func (k *Keeper) setMark(id string, m *mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m == nil {
		delete(k.marks, id)
		return
	}
	k.marks[id] = *m
}

// pause returns the time until the next reading.
func (k *Keeper) pause(s scan) time.Duration {
	pause := k.cfg.Scan
	if !s.next.IsZero() {
		pause = min(pause, s.next.Sub(k.cfg.Clock()))
	}
	return max(pause, firstPause) // a subject that changes all the time must not occupy the store
}

// scan compares all subjects with their marks.
func (k *Keeper) scan(ctx context.Context, now time.Time) (scan, error) {
	s := scan{places: map[aai.Place]bool{}}
	asked, err := k.asked(ctx)
	if err != nil {
		return s, err
	}
	k.mu.Lock()
	marks := maps.Clone(k.marks)
	k.mu.Unlock()
	counts := map[Condition]int{Clean: 0, Dirty: 0, Waiting: 0, Parked: 0}
	for subject, err := range k.cfg.Source.Subjects(ctx) {
		if err != nil {
			return s, err
		}
		s.places[subject.Place] = true
		m := marks[subject.ID]
		delete(marks, subject.ID)
		counts[m.of(subject.Version)]++
		s.add(job{id: subject.ID, version: subject.Version, asked: asked[subject.ID]}, m, now, k.cfg.Verify)
	}
	for id, m := range marks {
		counts[m.of(unknownVersion)]++
		s.add(job{id: id, version: unknownVersion, asked: asked[id]}, m, now, k.cfg.Verify)
	}
	k.mu.Lock()
	k.counts = counts
	k.mu.Unlock()
	return s, k.forget(ctx, asked, s.jobs)
}

// forget deletes requests for a comparison of subjects that have gone.
func (k *Keeper) forget(ctx context.Context, asked map[string]*request, jobs []job) error {
	for _, j := range jobs {
		delete(asked, j.id)
	}
	for id := range asked {
		if err := nf.IgnoreNotFound(k.requests.Delete(ctx, id)); err != nil {
			return err
		}
	}
	return nil
}

// asked returns the subjects of which a comparison was asked for.
func (k *Keeper) asked(ctx context.Context) (map[string]*request, error) {
	out := make(map[string]*request)
	for r, err := range k.requests.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		out[r.ID] = &r
	}
	return out, nil
}

// add adds the job of a subject if it is due, or remembers when it is.
func (s *scan) add(j job, m mark, now time.Time, every time.Duration) {
	due, verify := m.due(j.version, now, every)
	if j.verify = verify || j.asked != nil; due || j.verify {
		s.jobs = append(s.jobs, j)
		return
	}
	s.wait(m.retry)
}

// wait takes note of a time at which a subject is due.
func (s *scan) wait(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// writeAll writes subjects, some of them at once.
func (k *Keeper) writeAll(ctx context.Context, jobs []job) {
	var group errgroup.Group
	group.SetLimit(k.cfg.Parallel)
	for _, j := range jobs {
		group.Go(func() error {
			k.attempt(ctx, j)
			return nil
		})
	}
	_ = group.Wait() // no job returns an error
}

// attempt writes one subject, unless A&AI is not to be asked.
func (k *Keeper) attempt(ctx context.Context, j job) {
	if ctx.Err() != nil || k.isDenied() {
		return
	}
	if err := k.write(ctx, j); err != nil && ctx.Err() == nil {
		k.cfg.Logger.WarnContext(ctx, "failed to store the state of A&AI; will retry", "subject", j.id, "error", err)
	}
}

// isDenied reports whether A&AI has denied everything, and is not to be asked yet.
func (k *Keeper) isDenied() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg.Clock().Before(k.denied)
}

func (k *Keeper) deny(until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied = until
}

// write makes A&AI equal to one subject, and stores the result.
func (k *Keeper) write(ctx context.Context, j job) error {
	version, docs, failure := k.cfg.Source.Documents(ctx, j.id)
	isGone := nf.KindOf(failure) == nf.NotFound
	if isGone {
		version, failure = unknownVersion, nil
	}
	read, err := k.intend(ctx, j.id, docs)
	if err != nil {
		return err
	}
	report := aai.Report{Written: read.Written}
	if failure == nil {
		report, failure = k.cfg.Target.Write(ctx, docs, read.Written, j.verify)
	} else {
		version = j.version
	}
	if err := ctx.Err(); err != nil {
		return err // the record names all objects that A&AI may have
	}
	now := k.cfg.Clock()
	if errors.Is(failure, aai.ErrDenied) {
		k.deny(now.Add(deniedPause))
	}
	if isGone && failure == nil && len(report.Written) == 0 {
		if err := nf.IgnoreNotFound(k.records.Delete(ctx, j.id)); err != nil {
			return err
		}
		k.setMark(j.id, nil)
		return k.answer(ctx, j)
	}
	after, err := k.records.Update(ctx, j.id, func(r *record) error {
		if j.verify {
			r.Verified = now
		}
		r.conclude(version, report, failure, now)
		return nil
	})
	if err != nil {
		return err
	}
	m := after.mark()
	k.setMark(j.id, &m)
	k.report(ctx, after)
	return k.answer(ctx, j)
}

// answer deletes the request for a comparison, unless there is a newer one.
func (k *Keeper) answer(ctx context.Context, j job) error {
	if j.asked == nil {
		return nil
	}
	return k.requests.DeleteWhere(ctx, j.id, func(r request) bool { return r.At.Equal(j.asked.At) })
}

// report logs the first of several failures of a subject.
func (k *Keeper) report(ctx context.Context, r record) {
	switch {
	case r.Failures == 1 && len(r.Missing) > 0:
		k.cfg.Logger.InfoContext(ctx, "A&AI lacks an object of others; will retry", "subject", r.ID, "object", r.Missing[0], "objects", len(r.Missing))
	case r.Failures == 1:
		k.cfg.Logger.WarnContext(ctx, "failed to update A&AI; will retry", "subject", r.ID, "error", r.Reason)
	}
	for path, reason := range r.Parked {
		k.cfg.Logger.WarnContext(ctx, "A&AI rejects an object", "subject", r.ID, "object", path, "error", reason)
	}
}

// intend stores the objects of a subject that A&AI may have soon, and returns its
// record with those that A&AI may have already.
func (k *Keeper) intend(ctx context.Context, id string, docs []aai.Document) (record, error) {
	read, err := k.records.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		now := k.cfg.Clock()
		read = record{ID: id, Verified: now, Retry: now} // after a crash, it is due even if its subject is gone
		intended := read
		intended.Written = read.Written.Intend(docs)
		return read, k.records.Insert(ctx, id, intended)
	}
	if err != nil {
		return record{}, err
	}
	intended := read.Written.Intend(docs)
	if len(intended) == len(read.Written) {
		return read, nil
	}
	_, err = k.records.Update(ctx, id, func(r *record) error {
		r.Written = intended
		return nil
	})
	return read, err
}

// removeStrays deletes objects that no record names, once per interval. Nothing is
// written meanwhile.
func (k *Keeper) removeStrays(ctx context.Context, s scan, now time.Time) error {
	if k.strays.IsZero() {
		k.strays = now.Add(k.cfg.Verify) // a start does not wait for it
	}
	if now.Before(k.strays) || k.isDenied() {
		return nil
	}
	k.strays = now.Add(k.cfg.Verify)
	records, err := k.records.List(ctx, "") // those of the scan are older than what was written since
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, r := range records {
		for path := range r.Written {
			known[path] = true
		}
	}
	isKnown := func(path string) bool { return known[path] }
	strays := make(aai.Written)
	networks, err := k.cfg.Target.StrayNetworks(ctx, isKnown)
	errs := []error{err}
	maps.Copy(strays, networks)
	for place := range s.places {
		more, err := k.cfg.Target.Strays(ctx, place, isKnown)
		errs = append(errs, err)
		maps.Copy(strays, more)
	}
	if len(strays) > 0 {
		k.cfg.Logger.WarnContext(ctx, "A&AI has objects of this service that it does not know; deleting them", "objects", len(strays))
		_, err = k.cfg.Target.Write(ctx, nil, strays, false)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
