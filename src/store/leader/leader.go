package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

const (
	leaderID   = "writer"
	joinPause  = time.Second
	leavePause = 5 * time.Second // limits the time to leave the group

	defaultLease = 10 * time.Second
)

var errTaken = errors.New("another replica has claimed it")

// Config configures a group. KV, Prefix, Work and NewID are required.
type Config struct {
	KV     store.KV
	Prefix string        // of the group's records, with a slash at the end: the leases in "replicas/", and the leader in "leader/"
	Work   string        // what the leader does, for people: "updates of A&AI"
	NewID  func() string // returns a short unique id

	Clock  func() time.Time // default time.Now
	Logger *slog.Logger     // default: discard
	Lease  time.Duration    // time without a heartbeat before a replica is considered dead; default 10 s
	Sole   bool             // no other process can open the store
}

func (c *Config) complete() error {
	if c.KV == nil || c.Prefix == "" || c.Work == "" || c.NewID == nil {
		return errors.New("cannot create a group with a leader: KV, Prefix, Work and NewID are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	return nil
}

// Group is the replicas of which one leads.
type Group struct {
	cfg      Config
	leaders  store.Table[record]
	replicas *lease.Group
}

// record names the replica that leads.
type record struct {
	Replica string `json:"replica"`
}

// New returns a group. It reads and writes nothing before Run.
func New(cfg Config) (*Group, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Group{
		cfg:      cfg,
		leaders:  store.NewTable[record](cfg.KV, cfg.Prefix+"leader/", "leader of the "+cfg.Work),
		replicas: lease.NewGroup(cfg.KV, cfg.Prefix+"replicas/", "replica for the "+cfg.Work, cfg.Lease, cfg.Clock),
	}, nil
}

// Run calls work whenever this replica begins to lead, until the context ends. The
// context of work ends when another replica may lead; Run waits until work returns. Run
// must be called only once.
func (g *Group) Run(ctx context.Context, work func(context.Context)) error {
	for ctx.Err() == nil {
		member, err := g.join(ctx)
		if err == nil {
			err = (&membership{group: g, member: member, work: work}).serve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			g.warn(ctx, "work of a leader paused", err)
		}
		delay.For(ctx, joinPause, nil)
	}
	return nil
}

func (g *Group) warn(ctx context.Context, message string, err error) {
	g.cfg.Logger.WarnContext(ctx, message, "work", g.cfg.Work, "error", err)
}

// join acquires a lease.
func (g *Group) join(ctx context.Context) (*lease.Member, error) {
	m, err := g.replicas.Join(ctx, g.cfg.NewID())
	if err == nil && g.cfg.Sole {
		err = m.Expel(ctx)
	}
	return m, err
}

// membership is this replica's participation in the group, from acquiring a lease to
// losing it.
type membership struct {
	group   *Group
	member  *lease.Member
	work    func(context.Context)
	next    time.Time // when to look for the leader next
	stop    context.CancelFunc
	running sync.WaitGroup
}

// serve leads if it can, until the context ends or the lease is lost.
func (ms *membership) serve(ctx context.Context) error {
	cfg := ms.group.cfg
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lease.Renewer{
		Lasts: cfg.Lease, Sole: cfg.Sole, Renew: ms.member.Renew, Lose: func() { stop(lease.ErrLost) },
		Failed: func(err error) { ms.group.warn(ctx, "failed to renew the lease of a group with a leader", err) },
		Renewed: func(time.Time) {
			if err := ms.look(work); err != nil && work.Err() == nil {
				ms.group.warn(ctx, "failed to look for the replica that leads", err)
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

// look starts the work if this replica leads, and stops it if it does not.
func (ms *membership) look(ctx context.Context) error {
	cfg := ms.group.cfg
	now := cfg.Clock()
	if now.Before(ms.next) {
		return nil
	}
	ms.next = now.Add(cfg.Lease / 2)
	limited, cancel := context.WithTimeout(ctx, cfg.Lease/3)
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
		ms.running.Go(func() { ms.work(work) })
	}
	return nil
}

// lead reports whether this replica is the one that leads. It becomes that if no live
// replica is.
func (ms *membership) lead(ctx context.Context) (bool, error) {
	leaders := ms.group.leaders
	held, err := leaders.Get(ctx, leaderID)
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
	mine := record{Replica: ms.member.ID()}
	if err != nil {
		err = leaders.Insert(ctx, leaderID, mine)
	} else {
		_, err = leaders.Update(ctx, leaderID, func(r *record) error {
			if r.Replica != held.Replica {
				return errTaken
			}
			*r = mine
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

// end stops the work, and waits until it has stopped.
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
	err := ms.group.leaders.DeleteWhere(ctx, leaderID, func(r record) bool { return r.Replica == ms.member.ID() })
	if err := errors.Join(err, ms.member.Leave(ctx)); err != nil {
		return fmt.Errorf("cannot release the lease; other replicas wait until it expires: %w", err)
	}
	return nil
}
