package notify

import (
	"context"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// lastWord is how long noting that a letter has arrived may take.
const lastWord = 5 * time.Second

// deliver posts the first letter when it is due.
func (s *service) deliver(ctx context.Context, rec record) (time.Duration, error) {
	l := s.pending[0]
	if wait := l.Due.Sub(s.n.now()); wait > 0 {
		return wait, nil
	}
	status, err := s.post(ctx, rec.Subscription, l.Letter)
	if ctx.Err() != nil {
		return 0, ctx.Err() // nobody can be blamed for it
	}
	// What has arrived shall not come twice because the process ends now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	l.Attempts++
	l.LastStatus, l.LastError = status, ""
	if err != nil {
		l.LastStatus, l.LastError = http.StatusInternalServerError, clipped(err.Error())
	}
	if err := s.settle(ctx, l, err == nil && status >= 200 && status < 300); err != nil {
		return 0, err
	}
	_, err = s.n.subscriptions.Update(ctx, s.key, func(rec *record) error {
		if rec.UID == s.uid {
			rec.LastUpdate, rec.LastNotify, rec.LastStatus = l.Created, s.n.now(), l.LastStatus
		}
		return nil
	})
	return 0, nf.UnlessGone(err)
}

// settle notes what became of the first letter.
func (s *service) settle(ctx context.Context, l letter, arrived bool) error {
	log := s.n.cfg.Logger.With("subscription", s.key, "letter", l.ID, "attempts", l.Attempts, "status", l.LastStatus)
	switch {
	case arrived:
		if err := nf.UnlessGone(s.n.letters.Delete(ctx, l.ID)); err != nil {
			return err
		}
		s.n.cfg.Observe(Delivered)
	case l.Attempts >= attempts:
		if err := s.n.bury(ctx, l); err != nil {
			return err
		}
		s.n.cfg.Observe(GivenUp)
		log.ErrorContext(ctx, "a notification could not be delivered, and was given up", "error", l.LastError)
	default:
		l.Due = s.n.now().Add(backoff(l.Attempts, random))
		_, err := s.n.letters.Update(ctx, l.ID, func(kept *letter) error { *kept = l; return nil })
		if nf.KindOf(err) == nf.NotFound {
			return errAhead
		}
		if err != nil {
			return err
		}
		s.pending[0] = l
		s.n.cfg.Observe(Deferred)
		log.InfoContext(ctx, "a notification was not delivered yet", "error", l.LastError, "next", l.Due)
		return nil
	}
	s.pending = s.pending[1:]
	return nil
}

// post posts a letter, when there is a place for it.
func (s *service) post(ctx context.Context, sub Subscription, l Letter) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case s.n.posting <- struct{}{}:
	}
	defer func() { <-s.n.posting }()
	header, body, err := seal(sub, l, s.n.now())
	if err != nil {
		return 0, err
	}
	return s.n.cfg.Poster.Post(ctx, sub.Callback, header, body)
}
