package aaisync

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// job is a subject to write.
type job struct {
	Subject

	verify bool
	asked  *request // nil: it was not asked for
}

// scan is what one reading of subjects and records has found.
type scan struct {
	jobs   []job
	next   time.Time // when another subject is due
	places map[aai.Place]bool
}

// work writes subjects when they are due, until the context ends.
func (k *Keeper) work(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { k.cfg.Source.Watch(ctx) })
	watching.Go(func() { k.searchOrphans(ctx) })
	defer watching.Wait()
	k.takeTouched() // all subjects are read first
	defer k.ignoreTouched()
	isLoaded := false
	var full time.Time // when all subjects are read next
	for ctx.Err() == nil {
		now := k.cfg.Clock()
		touched := k.takeTouched()
		err := k.load(ctx, &isLoaded)
		switch {
		case err != nil:
			full = time.Time{}
		case now.Before(full):
			err = k.workOn(ctx, touched, now, &full)
		default:
			full, err = k.workOnAll(ctx, now)
		}
		if err != nil && ctx.Err() == nil {
			k.cfg.Logger.WarnContext(ctx, "failed to read what A&AI is to have; will retry", "error", err)
		}
		k.pause(ctx, full)
	}
}

// workOnAll reads all subjects, and writes those that are due. It returns when to read
// them next.
func (k *Keeper) workOnAll(ctx context.Context, now time.Time) (time.Time, error) {
	s, err := k.scan(ctx, now)
	if err == nil {
		k.writeAll(ctx, s.jobs)
		err = k.removeStrays(ctx, s, now)
	}
	next := now.Add(k.cfg.Scan)
	if !s.next.IsZero() && s.next.Before(next) {
		next = s.next
	}
	return next, err
}

// workOn writes those of some subjects that are due, and those that other replicas ask
// for. It moves full forward if one of them is due earlier.
func (k *Keeper) workOn(ctx context.Context, touched map[string]bool, now time.Time, full *time.Time) error {
	asked, err := k.asked(ctx)
	if err != nil {
		return err
	}
	for id := range asked {
		touched[id] = true
	}
	var s scan
	for id := range touched {
		subject, err := k.cfg.Source.Subject(ctx, id)
		if nf.KindOf(err) == nf.NotFound {
			subject, err = Subject{ID: id}, nil
		}
		if err != nil {
			return err
		}
		k.mu.Lock()
		m, known := k.marks[id]
		k.mu.Unlock()
		if known || subject.Version != "" {
			s.add(job{Subject: subject, asked: asked[id]}, m, now, k.cfg.Verify)
		}
	}
	k.writeAll(ctx, s.jobs)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range s.jobs { // those that have failed are due earlier
		if retry := k.marks[j.ID].retry; !retry.IsZero() && retry.Before(*full) {
			*full = retry
		}
	}
	return nil
}

// takeTouched returns the subjects that may have changed.
func (k *Keeper) takeTouched() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.touched
	k.touched = make(map[string]bool)
	return out
}

func (k *Keeper) ignoreTouched() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.touched = nil
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

// pause waits until all subjects are to be read, one is touched, or another replica asks
// for one.
func (k *Keeper) pause(ctx context.Context, full time.Time) {
	until := max(full.Sub(k.cfg.Clock()), firstPause) // a failure must not occupy the store
	if k.cfg.Sole {
		delay.For(ctx, until, k.wakeCh)
		return
	}
	for ctx.Err() == nil && until > 0 {
		if delay.For(ctx, min(until, requestPause), k.wakeCh) {
			return
		}
		until -= requestPause
		asked, err := k.asked(ctx)
		if err != nil || len(asked) > 0 {
			return
		}
	}
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
	counts := map[nf.ListingState]int{nf.ListingClean: 0, nf.ListingDirty: 0, nf.ListingWaiting: 0, nf.ListingParked: 0}
	for subject, err := range k.cfg.Source.Subjects(ctx) {
		if err != nil {
			return s, err
		}
		s.places[subject.Place] = true
		m := marks[subject.ID]
		delete(marks, subject.ID)
		counts[m.of(subject)]++
		s.add(job{Subject: subject, asked: asked[subject.ID]}, m, now, k.cfg.Verify)
	}
	for id, m := range marks {
		removed := Subject{ID: id}
		counts[m.of(removed)]++
		s.add(job{Subject: removed, asked: asked[id]}, m, now, k.cfg.Verify)
	}
	k.mu.Lock()
	if k.cfg.Instances != nil {
		counts[nf.ListingOrphaned] = k.left
	}
	k.counts = counts
	k.mu.Unlock()
	return s, k.forget(ctx, asked, s.jobs)
}

// forget deletes requests for a comparison of subjects that have gone.
func (k *Keeper) forget(ctx context.Context, asked map[string]*request, jobs []job) error {
	for _, j := range jobs {
		delete(asked, j.ID)
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

// add adds the job of a subject if it is due, or remembers when it is. A subject that
// is being changed is written when it no longer is.
func (s *scan) add(j job, m mark, now time.Time, every time.Duration) {
	due, verify := m.due(j.Subject, now, every)
	if j.verify = verify || j.asked != nil; !j.Busy && (due || j.verify) {
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
		k.cfg.Logger.WarnContext(ctx, "failed to store the state of A&AI; will retry", "subject", j.ID, "error", err)
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
	subject, docs, failure := k.cfg.Source.Documents(ctx, j.ID)
	isGone := nf.KindOf(failure) == nf.NotFound
	if isGone {
		subject, failure = Subject{ID: j.ID}, nil
	}
	read, err := k.intend(ctx, j.ID, docs)
	if err != nil {
		return err
	}
	report := aai.Report{Written: read.Written}
	if failure == nil {
		report, failure = k.cfg.Target.Write(ctx, docs, read.Written, j.verify)
	} else {
		subject = j.Subject
	}
	if err := ctx.Err(); err != nil {
		return err // the record names all objects that A&AI may have
	}
	now := k.cfg.Clock()
	if errors.Is(failure, aai.ErrDenied) {
		k.deny(now.Add(deniedPause))
	}
	if isGone && failure == nil && len(report.Written) == 0 {
		if err := nf.IgnoreNotFound(k.records.Delete(ctx, j.ID)); err != nil {
			return err
		}
		k.setMark(j.ID, nil)
		return k.answer(ctx, j)
	}
	after, err := k.records.Update(ctx, j.ID, func(r *record) error {
		if j.verify {
			r.Verified = now
		}
		if j.asked != nil {
			r.Asked = j.asked.At
		}
		r.conclude(subject, report, failure, now)
		return nil
	})
	if err != nil {
		return err
	}
	m := after.mark()
	k.setMark(j.ID, &m)
	k.report(ctx, after)
	return k.answer(ctx, j)
}

// answer deletes the request for a comparison, unless there is a newer one.
func (k *Keeper) answer(ctx context.Context, j job) error {
	if j.asked == nil {
		return nil
	}
	return k.requests.DeleteWhere(ctx, j.ID, func(r request) bool { return r.At.Equal(j.asked.At) })
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
