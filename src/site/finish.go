package site

import (
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// decide writes how the operation ends; from then on that stays so.
func (r *run) decide(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if err := r.diary.flush(ctx); err != nil {
		return err
	}
	return r.write(ctx, func(op *nf.SiteOperation) {
		op.Outcome = nf.Succeeded
		if cause == nil {
			return
		}
		step := ""
		if n := len(op.Steps); n > 0 && op.Steps[n-1].Finished.IsZero() {
			last := &op.Steps[n-1]
			last.Finished, last.Failed, step = r.s.now(), true, last.Name
		}
		if errors.Is(cause, errCancelled) {
			op.Outcome = nf.OperationCancelled
			op.Failure = &nf.Failure{Kind: nf.Cancelled, Step: step, Message: errCancelled.Error()}
			return
		}
		op.Outcome = nf.OperationFailed
		op.Failure = nf.FailureOf(step, cause)
		op.Failure.Message = clip(r.veil.text(op.Failure.Message))
		for i := range op.Failure.Violations {
			op.Failure.Violations[i].Message = clip(r.veil.text(op.Failure.Violations[i].Message))
		}
	})
}

// settle tells the site what became of its operation, and ends that. Every part
// may be done again.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	gone := r.op.Verb == nf.SiteRemove && r.op.Outcome == nf.Succeeded
	in, err := r.s.sites.Get(ctx, r.op.Site)
	switch {
	case nf.UnlessGone(err) != nil:
		return err
	case err == nil && in.Busy == r.op.ID:
		keep := in.Material
		if gone {
			keep = ""
		}
		if err := r.s.shed(ctx, r.op.UID, keep); err != nil {
			return err
		}
		// The site comes first: whoever waits for the operation finds it free.
		if err := r.release(ctx, gone); err != nil {
			return err
		}
	}
	ended := false
	if err := r.write(ctx, func(op *nf.SiteOperation) {
		if ended = !op.State.Final(); ended {
			op.State, op.Finished = op.Outcome, r.s.now()
		}
	}); err != nil {
		return err
	}
	if ended {
		r.s.cfg.Finished(r.op)
		r.report(ctx)
	}
	return nf.UnlessGone(r.s.leases.Delete(ctx, r.op.ID))
}

// report logs how the operation has ended.
func (r *run) report(ctx context.Context) {
	about := []any{"operation", r.op.ID, "verb", r.op.Verb.Qualified(), "site", r.op.Site}
	if f := r.op.Failure; f != nil {
		r.s.cfg.Logger.WarnContext(ctx, "operation failed", append(about, "step", f.Step, "kind", f.Kind, "error", f.Message)...)
	}
	r.s.cfg.Logger.InfoContext(ctx, "operation ended", append(about, "state", r.op.State, "seconds", r.op.Finished.Sub(r.op.Accepted).Seconds())...)
}

// release takes the operation off its site.
func (r *run) release(ctx context.Context, gone bool) error {
	errOther := errors.New("it is another operation's")
	var err error
	if gone {
		err = r.s.sites.DeleteIf(ctx, r.op.Site, func(in nf.Site) error {
			if in.Busy != r.op.ID {
				return errOther
			}
			return nil
		})
	} else {
		_, err = r.s.sites.Update(ctx, r.op.Site, func(in *nf.Site) error {
			if in.Busy != r.op.ID {
				return errOther
			}
			in.Busy, in.State, in.Updated = "", nf.SiteFailed, r.s.now()
			if r.op.Outcome == nf.Succeeded {
				in.State = nf.SiteReady
				in.Hosts = settled(in.Hosts)
			}
			return nil
		})
	}
	if errors.Is(err, errOther) {
		return nil
	}
	return nf.UnlessGone(err)
}

// settled returns the hosts as they are after a success.
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
