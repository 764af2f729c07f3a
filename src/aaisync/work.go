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
}

// scan is what one reading of all subjects and records has found.
type scan struct {
	jobs   []job
	next   time.Time // when another subject is due
	places map[aai.Place]bool
}

// work writes subjects when they are due, until the context ends.
func (k *Keeper) work(ctx context.Context) {
	for ctx.Err() == nil {
		now := k.cfg.Clock()
		s, err := k.scan(ctx, now)
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

// pause returns the time until the next reading.
func (k *Keeper) pause(s scan) time.Duration {
	pause := k.cfg.Scan
	if !s.next.IsZero() {
		pause = min(pause, s.next.Sub(k.cfg.Clock()))
	}
	return max(pause, firstPause) // a subject that changes all the time must not occupy the store
}

// scan reads all subjects and records.
func (k *Keeper) scan(ctx context.Context, now time.Time) (scan, error) {
	s := scan{places: map[aai.Place]bool{}}
	records, err := k.records.List(ctx, "")
	if err != nil {
		return s, err
	}
	byID := make(map[string]record, len(records))
	for _, r := range records {
		byID[r.ID] = r
	}
	counts := map[Condition]int{Clean: 0, Dirty: 0, Waiting: 0, Parked: 0}
	for subject, err := range k.cfg.Source.Subjects(ctx) {
		if err != nil {
			return s, err
		}
		s.places[subject.Place] = true
		r := byID[subject.ID]
		delete(byID, subject.ID)
		counts[r.state(subject.Version).Condition]++
		if due, verify := r.due(subject.Version, now, k.cfg.Verify); due {
			s.jobs = append(s.jobs, job{subject.ID, subject.Version, verify})
		} else {
			s.wait(r.Retry)
		}
	}
	for id, r := range byID {
		counts[r.state(unknownVersion).Condition]++
		if now.Before(r.Retry) {
			s.wait(r.Retry)
			continue
		}
		s.jobs = append(s.jobs, job{id: id})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts = counts
	return s, nil
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
		return nf.IgnoreNotFound(k.records.Delete(ctx, j.id))
	}
	after, err := k.records.Update(ctx, j.id, func(r *record) error {
		if j.verify && r.Asked == read.Asked {
			r.Verified = now // otherwise, another comparison was asked for meanwhile
		}
		r.conclude(version, report, failure, now)
		return nil
	})
	if err == nil {
		k.report(ctx, after)
	}
	return err
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
		read = record{ID: id, Verified: k.cfg.Clock()}
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
