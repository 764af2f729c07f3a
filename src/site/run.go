package site

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// run is the work of one attempt at an operation on a site.
type run struct {
	s        *Sites
	attempt  *operation.Attempt
	site     nf.Site
	secrets  nf.SiteSecrets
	unusable error // the site's secrets do not exist
	redactor *redactor
	journal  *operation.Journal
}

var _ operation.Work = (*run)(nil)

// work returns the work of one attempt.
func (s *Sites) work(a *operation.Attempt) operation.Work { return &run{s: s, attempt: a} }

func (r *run) op() nf.Operation { return r.attempt.Op() }

// Bind implements operation.Work. It loads the site, unless all that remains to
// be done is to update it.
func (r *run) Bind(ctx context.Context) (locked bool, err error) {
	r.site, locked, err = r.s.locks.Bind(ctx, r.attempt)
	if err != nil || !locked || r.op().Succeeding || r.op().Failure != nil {
		return locked, err
	}
	r.secrets, r.unusable = r.s.loadSecrets(ctx, r.site)
	if err := nf.IgnoreNotFound(r.unusable); err != nil {
		return true, err
	}
	r.redactor = newRedactor(r.site, r.secrets)
	r.journal = r.attempt.Journal(r.redactor.text)
	return true, nil
}

// Steps implements operation.Work.
func (r *run) Steps(context.Context) ([]operation.Step, error) {
	if r.unusable != nil {
		return nil, r.unusable
	}
	if r.op().Verb == nf.SiteRemove {
		return r.removalSteps(), nil
	}
	return r.buildSteps(), nil
}

// Failure implements operation.Work.
func (r *run) Failure(_ context.Context, step string, err error) *nf.Failure {
	clip := func(text string) string { return operation.Clip(r.redactor.text(text)) }
	f := nf.FailureOf(step, err)
	said := f.Said().Map(clip)
	f.Message, f.Mentions = said.Message, said.Mentions
	for i, v := range f.Violations {
		f.Violations[i] = v.Saying(v.Said().Map(clip))
	}
	return f
}

// outcomeTimeout limits the last writes of an attempt.
const outcomeTimeout = 10 * time.Second

// Release implements operation.Work. It also deletes the secrets that the site
// no longer needs.
func (r *run) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	op := r.op()
	gone := op.Verb == nf.SiteRemove && op.Failure == nil
	// Order matters: these are not the secrets of a later operation.
	secrets, err := r.s.secrets.List(ctx, op.Site.UID+"/")
	if err != nil {
		return err
	}
	in, err := r.s.locks.Get(ctx, r.attempt)
	if err != nil {
		return nf.IgnoreNotFound(err)
	}
	for _, m := range secrets {
		if m.ID == in.SecretsRecord && !gone {
			continue
		}
		if err := nf.IgnoreNotFound(r.s.secrets.Delete(ctx, m.ID)); err != nil {
			return err
		}
	}
	if gone {
		r.s.locks.Delete(r.attempt)
		return nil
	}
	r.s.locks.Release(r.attempt, func(in *nf.Site) {
		in.State = nf.SiteFailed
		if op.Failure == nil {
			in.State = nf.SiteReady
			in.Hosts = settled(in.Hosts)
		}
	})
	return nil
}

// settled returns the hosts after a successful operation.
func settled(hosts []nf.SiteHost) []nf.SiteHost {
	out := make([]nf.SiteHost, 0, len(hosts))
	for _, h := range hosts {
		if h.State == nf.HostLeaving {
			continue
		}
		h.State = nf.HostPresent
		out = append(out, h)
	}
	return out
}

// record edits the site's record. It returns operation.ErrTaken if another
// operation or another claim holds the site.
func (r *run) record(ctx context.Context, edit func(*nf.Site)) error {
	in, err := r.s.locks.Edit(ctx, r.attempt, edit)
	if err == nil {
		r.site = in
	}
	return err
}

// step returns a step of the operation. Its events are stored before it ends.
func (r *run) step(phase nf.Phase, do func(ctx context.Context) error) operation.Step {
	return operation.Step{Step: nf.Step{StepID: nf.StepID{Phase: phase}}, Do: func(ctx context.Context) error {
		err := do(ctx)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
		defer cancel()
		if unstored := r.journal.Flush(last); unstored != nil || err != nil {
			return errors.Join(unstored, err)
		}
		r.attempt.Note(func(op *nf.Operation) { op.Steps[len(op.Steps)-1].Report("") })
		return nil
	}}
}

// say publishes a message of the service itself, about a host if one is given.
func (r *run) say(ctx context.Context, host, format string, args ...any) error {
	said := nf.Textf(format, args...)
	return r.journal.Publish(ctx, nf.LogEntry{Kind: nf.EventNote, Host: host, Message: said.Message, Mentions: said.Mentions})
}
