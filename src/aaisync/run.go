package aaisync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

const (
	leaderID   = "writer"
	joinPause  = time.Second
	leavePause = 5 * time.Second // limits the time to leave the group
)

var errTaken = errors.New("another replica has claimed it")

// leader records which replica writes.
type leader struct {
	Replica string `json:"replica"`
}

// Run writes, if this replica is the one that does, until the context ends. It must be
// called only once.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		member, err := k.join(ctx)
		if err == nil {
			err = (&membership{keeper: k, member: member}).serve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			k.cfg.Logger.WarnContext(ctx, "updates of A&AI paused", "error", err)
		}
		delay.For(ctx, joinPause, nil)
	}
	return nil
}

// join acquires a lease.
func (k *Keeper) join(ctx context.Context) (*lease.Member, error) {
	m, err := k.replicas.Join(ctx, k.cfg.NewID())
	if err == nil && k.cfg.Sole {
		err = m.Expel(ctx)
	}
	return m, err
}

// membership is this replica's participation in the group, from acquiring a lease to
// losing it.
type membership struct {
	keeper  *Keeper
	member  *lease.Member
	next    time.Time // when to look for the leader next
	stop    context.CancelFunc
	running sync.WaitGroup
}

// serve leads if it can, until the context ends or the lease is lost.
func (ms *membership) serve(ctx context.Context) error {
	k := ms.keeper
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lease.Renewer{
		Lasts: k.cfg.Lease, Sole: k.cfg.Sole, Renew: ms.member.Renew, Lose: func() { stop(lease.ErrLost) },
		Failed: func(err error) {
			k.cfg.Logger.WarnContext(ctx, "failed to renew the lease for updates of A&AI", "error", err)
		},
		Renewed: func(time.Time) {
			if err := ms.look(work); err != nil && work.Err() == nil {
				k.cfg.Logger.WarnContext(ctx, "failed to look for the replica that updates A&AI", "error", err)
			}
		},
		Sleep: func(ctx context.Context, d time.Duration) { delay.For(ctx, d, nil) },
	}.Run(work)
	ms.end()
	if err := context.Cause(work); errors.Is(err, lease.ErrLost) {
		return err
	}
	return ms.leave(ctx)
}

// look starts to write if this replica leads, and stops if it does not.
func (ms *membership) look(ctx context.Context) error {
	now := ms.keeper.cfg.Clock()
	if now.Before(ms.next) {
		return nil
	}
	ms.next = now.Add(ms.keeper.cfg.Lease / 2)
	limited, cancel := context.WithTimeout(ctx, ms.keeper.cfg.Lease/3)
	defer cancel()
	leads, err := ms.lead(limited)
	switch {
	case err != nil:
		return err
	case !leads:
		ms.end()
	case ms.stop == nil:
		work, stop := context.WithCancel(ctx)
		ms.stop = stop
		ms.running.Go(func() { ms.keeper.work(work) })
	}
	return nil
}

// lead reports whether this replica is the one that writes. It becomes that if no live
// replica is.
func (ms *membership) lead(ctx context.Context) (bool, error) {
	held, err := ms.keeper.leaders.Get(ctx, leaderID)
	if nf.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && held.Replica == ms.member.ID() {
		return true, nil
	}
	// Order matters: a replica joins before it leads. Reading the leader first ensures
	// that one that is missing from the survey is dead.
	alive, _, surveyErr := ms.member.Survey(ctx)
	if surveyErr != nil || alive[held.Replica] {
		return false, surveyErr
	}
	mine := leader{Replica: ms.member.ID()}
	if err != nil {
		err = ms.keeper.leaders.Insert(ctx, leaderID, mine)
	} else {
		_, err = ms.keeper.leaders.Update(ctx, leaderID, func(l *leader) error {
			if l.Replica != held.Replica {
				return errTaken
			}
			*l = mine
			return nil
		})
	}
	switch {
	case err == nil:
		return true, nil
	case nf.KindOf(err) == nf.Exists, nf.KindOf(err) == nf.NotFound, errors.Is(err, errTaken):
		return false, nil
	}
	return false, err
}

// end stops writing, and waits until it has stopped.
func (ms *membership) end() {
	if ms.stop != nil {
		ms.stop()
		ms.running.Wait()
		ms.stop = nil
	}
}

// leave releases the lead and the lease, so that other replicas need not wait until
// the lease expires.
func (ms *membership) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePause) // the context may have ended
	defer cancel()
	err := ms.keeper.leaders.DeleteWhere(ctx, leaderID, func(l leader) bool { return l.Replica == ms.member.ID() })
	if err := errors.Join(err, ms.member.Leave(ctx)); err != nil {
		return fmt.Errorf("cannot release the lease; other replicas wait until it expires: %w", err)
	}
	return nil
}
