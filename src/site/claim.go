package site

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// lease is the claim of one replica on one operation: it lasts for as long as
// its beat moves.
type lease struct {
	Site      string `json:"site"`
	Operation string `json:"operation"`
	Replica   string `json:"replica,omitempty"` // empty: it was given back
	Token     string `json:"token"`             // of this claiming; the operation bears it too
	Beat      int64  `json:"beat"`
}

// sighting is when a lease was first seen to be what it still is, by this
// process's own clock: no other is trusted.
type sighting struct {
	lease lease
	since time.Time
}

var (
	errLost      = errors.New("this replica has lost the operation")
	errTaken     = errors.New("another replica has the operation")
	errCancelled = errors.New("somebody has cancelled it")
	errShutdown  = errors.New("the service is shutting down")
)

const beatShare = 5 // beats in the time of a lease

// take claims an operation that nobody alive runs, and returns the token of the
// claim; "" when somebody else has it.
func (s *Sites) take(ctx context.Context, site, op string, seen map[string]sighting) (token string, err error) {
	mine := lease{Site: site, Operation: op, Replica: s.replica, Token: s.cfg.NewID()}
	there, err := s.leases.Get(ctx, op)
	if nf.KindOf(err) == nf.NotFound {
		err = s.leases.Insert(ctx, op, mine)
		switch {
		case err == nil:
			return mine.Token, nil
		case nf.KindOf(err) == nf.Exists:
			return "", nil
		}
		return "", err
	}
	if err != nil || !s.abandoned(there, seen) {
		return "", err
	}
	_, err = s.leases.Update(ctx, op, func(l *lease) error {
		if *l != there {
			return errTaken
		}
		*l = mine
		return nil
	})
	switch {
	case err == nil:
		return mine.Token, nil
	case errors.Is(err, errTaken), nf.KindOf(err) == nf.NotFound:
		return "", nil
	}
	return "", err
}

// abandoned reports whether a lease is nobody's, or has stood still for its
// whole time.
func (s *Sites) abandoned(l lease, seen map[string]sighting) bool {
	// What this replica has and does not run, it has given up.
	if l.Replica == "" || l.Replica == s.replica || s.cfg.Sole {
		return true
	}
	before, known := seen[l.Operation]
	if !known || before.lease != l {
		seen[l.Operation] = sighting{lease: l, since: s.now()}
		return false
	}
	return s.now().Sub(before.since) >= s.cfg.Lease
}

// keep renews the claim on an operation, and looks whether somebody wants it to
// stop, until the context ends. It calls stop when that is so, when the claim is
// another's, and when it could not be renewed for so long that others may soon
// think that nobody has it.
func (s *Sites) keep(ctx context.Context, c claim, stop context.CancelCauseFunc) {
	limit := s.cfg.Lease * 2 / 3
	late := time.AfterFunc(limit, func() { stop(errLost) })
	defer late.Stop()
	for ctx.Err() == nil {
		outdated := s.changes()
		began := time.Now()
		cancelled, err := s.renew(ctx, c)
		switch {
		case errors.Is(err, errLost):
			stop(errLost)
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			s.cfg.Logger.WarnContext(ctx, "the claim on an operation could not be renewed", "operation", c.op, "error", err)
		case cancelled:
			stop(errCancelled) // and the claim is kept: there is a last word to say
			late.Reset(limit - time.Since(began))
		default:
			late.Reset(limit - time.Since(began))
		}
		rest(ctx, s.cfg.Lease/beatShare, outdated)
	}
}

// renew moves the beat, and reports whether somebody wants the operation to stop.
func (s *Sites) renew(ctx context.Context, c claim) (cancelled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/3)
	defer cancel()
	_, err = s.leases.Update(ctx, c.op, func(l *lease) error {
		if l.Token != c.token {
			return errLost
		}
		l.Beat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return false, errLost
	}
	if err != nil {
		return false, err
	}
	op, err := s.operations.Get(ctx, under(c.site, c.op))
	return op.Cancel, err
}

// giveBack lets others run the operation at once.
func (s *Sites) giveBack(ctx context.Context, c claim) error {
	_, err := s.leases.Update(ctx, c.op, func(l *lease) error {
		if l.Token != c.token {
			return errLost
		}
		l.Replica = ""
		return nil
	})
	if errors.Is(err, errLost) {
		return nil
	}
	return nf.UnlessGone(err)
}

// rest waits for a time, or until the context ends or something is written.
func rest(ctx context.Context, d time.Duration, called <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-called:
	}
}
