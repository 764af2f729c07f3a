package site

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// run is one attempt of this replica at an operation.
type run struct {
	s      *Sites
	claim  claim
	op     nf.SiteOperation
	site   nf.Site
	secret nf.SiteMaterial
	veil   *veil

	mu    sync.Mutex // of what is written while a job runs
	diary *diary
}

// carry carries a claimed operation to its end, unless the context ends first or
// the claim is lost. It reports whether the end was reached.
func (s *Sites) carry(ctx context.Context, c claim) (ended bool) {
	work, stop := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeping, rest := context.WithCancel(context.WithoutCancel(ctx))
	keeper.Go(func() { s.keep(keeping, c, stop) })
	err := s.attempt(work, ctx, c)
	stop(nil)
	rest()
	keeper.Wait()
	if err == nil {
		return true
	}
	if !errors.Is(err, errShutdown) {
		s.cfg.Logger.WarnContext(ctx, "an operation of a site was left, and will be taken up again", "site", c.site, "operation", c.op, "error", err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := s.giveBack(last, c); err != nil {
		s.cfg.Logger.WarnContext(ctx, "the others will wait for an operation's lease to lapse", "operation", c.op, "error", err)
	}
	return false
}

// attempt runs an operation and says what became of it. An error means that
// this could not be said, or not yet.
func (s *Sites) attempt(work, life context.Context, c claim) error {
	r, err := s.begin(work, c)
	if err != nil {
		return err
	}
	work, end := s.cfg.Trace.SiteOperation(work, r.op)
	err = r.proceed(work, life)
	end(r.op, err)
	return err
}

// proceed carries on an operation that is this replica's.
func (r *run) proceed(work, life context.Context) error {
	if r.op.Outcome == "" {
		err := r.perform(work)
		_, unkept := errors.AsType[unkeptError](err)
		switch {
		case errors.Is(context.Cause(work), lease.ErrLost) || errors.Is(err, lease.ErrLost):
			return lease.ErrLost
		case err != nil && life.Err() != nil && !r.op.Cancel:
			return errShutdown
		case unkept && !r.op.Cancel:
			return err
		}
		if err := r.decide(work, err); err != nil {
			return err
		}
	}
	return r.settle(work)
}

// unkeptError is the error of a record that could not be written: it says
// nothing about the site, and everything is run again.
type unkeptError struct{ error }

func (e unkeptError) Unwrap() error { return e.error }

// begin makes the operation this replica's.
func (s *Sites) begin(ctx context.Context, c claim) (*run, error) {
	r := &run{s: s, claim: c}
	var err error
	r.op, err = s.operations.Update(ctx, under(c.site, c.op), func(op *nf.SiteOperation) error {
		op.Claim = c.token
		if op.Outcome != "" {
			return nil
		}
		now := s.now()
		op.Attempts++
		op.State = nf.Running
		if op.Started.IsZero() {
			op.Started = now
		}
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			last := &op.Steps[n-1]
			last.Finished, last.Failed, last.Message = now, true, "the process that ran it has ended; everything is run again"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.hold(r.op)
	s.announce()
	if r.op.Outcome != "" {
		return r, nil
	}
	if r.op.Attempts > 1 {
		s.cfg.Resumed(r.op)
		s.cfg.Logger.InfoContext(ctx, "operation resumes", "operation", c.op, "site", c.site, "attempt", r.op.Attempts)
	}
	if r.site, err = s.sites.Get(ctx, c.site); err != nil {
		return nil, err
	}
	present, err := s.materials.Get(ctx, r.site.Material)
	if err != nil {
		return nil, err
	}
	r.secret = present.SiteMaterial
	r.veil = veilOf(r.site, r.secret)
	r.diary, err = s.openDiary(ctx, c.op, r.veil)
	return r, err
}

// perform carries out the steps of the operation in its time.
func (r *run) perform(ctx context.Context) error {
	if r.op.Cancel {
		return errCancelled
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.op.Deadline.Sub(r.s.now()), context.DeadlineExceeded)
	defer cancel()
	steps := r.build
	if r.op.Verb == nf.SiteRemove {
		steps = r.remove
	}
	err := steps(ctx)
	if err == nil {
		return nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCancelled):
		r.op.Cancel = true
		return errCancelled
	case errors.Is(cause, context.DeadlineExceeded):
		return nf.E(nf.Timeout, string(r.op.Verb), "site "+r.op.Site, fmt.Errorf("it took longer than %s: %w", r.op.Deadline.Sub(r.op.Accepted), err))
	}
	return err
}

// step is one part of an operation. It is written before it begins and after it
// has ended.
func (r *run) step(ctx context.Context, name string, do func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.write(ctx, func(op *nf.SiteOperation) {
		op.Steps = append(op.Steps, nf.Step{Name: name, Started: r.s.now()})
	}); err != nil {
		return err
	}
	traced, end := r.s.cfg.Trace.Step(ctx, name)
	err := do(traced)
	end(cut(ctx, err))
	if err != nil {
		return err
	}
	if err := r.diary.flush(ctx); err != nil {
		return err
	}
	return r.write(ctx, func(op *nf.SiteOperation) {
		last := &op.Steps[len(op.Steps)-1]
		last.Finished, last.Message = r.s.now(), ""
	})
}

// cut returns a step's error as it is traced: what the end of the context has
// broken off has not failed by itself.
func cut(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return &nf.Error{Kind: nf.Timeout, Err: err}
	}
	return &nf.Error{Kind: nf.Cancelled, Err: err}
}

// note keeps an event of the current step. It is published with others, or when
// there are many.
func (r *run) note(ctx context.Context, e nf.SiteEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.diary.note(r.current(), e) {
		return nil
	}
	return r.publish(ctx)
}

// say publishes what the service itself has to say, about a host if one is named.
func (r *run) say(ctx context.Context, host, message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diary.note(r.current(), nf.SiteEvent{Kind: nf.EventNote, Host: host, Message: message})
	return r.publish(ctx)
}

// current names the step that was begun last.
func (r *run) current() string {
	if n := len(r.op.Steps); n > 0 {
		return r.op.Steps[n-1].Name
	}
	return ""
}

// publish writes the events that wait, and in the step what happens just now.
func (r *run) publish(ctx context.Context) error {
	e, ok := r.diary.last()
	if !ok {
		return nil
	}
	if err := r.diary.flush(ctx); err != nil {
		return err
	}
	return r.write(ctx, func(op *nf.SiteOperation) {
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			op.Steps[n-1].Message = clip(progress(e))
		}
	})
}

// publishing publishes now and again what waits, until it is stopped.
func (r *run) publishing(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			lease.Rest(ctx, flushAfter, nil)
			r.mu.Lock()
			_ = r.publish(ctx) // what cannot be written now waits
			r.mu.Unlock()
		}
	})
	return func() { cancel(); running.Wait() }
}

// progress says in a line what an event tells.
func progress(e nf.SiteEvent) string {
	text := e.Task
	if text == "" {
		text = e.Message
	}
	if e.Host != "" {
		text += " (" + e.Host + ")"
	}
	return text
}

// write changes the operation's record; lease.ErrLost when it is another's.
func (r *run) write(ctx context.Context, edit func(*nf.SiteOperation)) error {
	op, err := r.s.operations.Update(ctx, under(r.claim.site, r.claim.op), func(op *nf.SiteOperation) error {
		if op.Claim != r.claim.token {
			return lease.ErrLost
		}
		edit(op)
		return nil
	})
	if errors.Is(err, lease.ErrLost) {
		return err
	}
	if err != nil {
		return unkeptError{err}
	}
	r.op = op
	r.s.hold(op)
	r.s.announce()
	return nil
}
