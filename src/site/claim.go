package site

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// claimRecord is the claim of one replica on one operation: it lasts for as long as
// its beat moves.
type claimRecord struct {
	Site      string `json:"site"`
	Operation string `json:"operation"`
	Replica   string `json:"replica,omitempty"` // empty: it was given back
	Token     string `json:"token"`             // of this claiming; the operation bears it too
	Beat      int64  `json:"beat"`
}

var (
	errTaken     = errors.New("another replica has the operation")
	errCancelled = errors.New("somebody has cancelled it")
	errShutdown  = errors.New("the service is shutting down")
)

// take claims an operation that nobody alive runs, and returns the token of the
// claim; "" when somebody else has it.
func (s *Sites) take(ctx context.Context, site, op string, seen *lease.Sightings[claimRecord]) (token string, err error) {
	mine := claimRecord{Site: site, Operation: op, Replica: s.replica, Token: s.cfg.NewID()}
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
	_, err = s.leases.Update(ctx, op, func(l *claimRecord) error {
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
func (s *Sites) abandoned(l claimRecord, seen *lease.Sightings[claimRecord]) bool {
	// What this replica has and does not run, it has given up.
	if l.Replica == "" || l.Replica == s.replica || s.cfg.Sole {
		return true
	}
	return seen.Lapsed(l.Operation, l)
}

// keep renews the claim on an operation, and looks whether somebody wants it to
// stop, until the context ends. It calls stop when that is so, and when the claim
// is lost.
func (s *Sites) keep(ctx context.Context, c claim, stop context.CancelCauseFunc) {
	var outdated <-chan struct{}
	lease.Keeper{
		Lasts: s.cfg.Lease,
		Renew: func(ctx context.Context) error {
			outdated = s.changes()
			cancelled, err := s.renew(ctx, c)
			if err == nil && cancelled {
				stop(errCancelled) // and the claim is kept: there is a last word to say
			}
			return err
		},
		Lose:    func() { stop(lease.ErrLost) },
		Renewed: func(time.Time) {},
		Failed: func(err error) {
			s.cfg.Logger.WarnContext(ctx, "the claim on an operation could not be renewed", "operation", c.op, "error", err)
		},
		Rest: func(ctx context.Context, d time.Duration) { lease.Rest(ctx, d, outdated) },
	}.Keep(ctx)
}

// renew moves the beat, and reports whether somebody wants the operation to stop.
func (s *Sites) renew(ctx context.Context, c claim) (cancelled bool, err error) {
	_, err = s.leases.Update(ctx, c.op, func(l *claimRecord) error {
		if l.Token != c.token {
			return lease.ErrLost
		}
		l.Beat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return false, lease.ErrLost
	}
	if err != nil {
		return false, err
	}
	op, err := s.operations.Get(ctx, under(c.site, c.op))
	return op.Cancel, err
}

// giveBack lets others run the operation at once.
func (s *Sites) giveBack(ctx context.Context, c claim) error {
	_, err := s.leases.Update(ctx, c.op, func(l *claimRecord) error {
		if l.Token != c.token {
			return lease.ErrLost
		}
		l.Replica = ""
		return nil
	})
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	return nf.UnlessGone(err)
}
