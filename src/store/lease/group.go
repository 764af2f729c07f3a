package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// ErrLost says that a lease is over: another process has seen it expire.
var ErrLost = errors.New("this replica has lost its lease")

var errMoved = errors.New("the replica is alive")

// record is the lease of one process.
type record struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Heartbeat int64     `json:"heartbeat"`
}

// Group is the set of processes that share one kind of work. It is safe for
// concurrent use.
type Group struct {
	leases store.Table[record]
	lasts  time.Duration
	clock  func() time.Time
}

// NewGroup returns the group whose lease keys begin with the prefix
// ("replicas/"). Each lease lasts for the given time. The noun is the name of a
// member in errors.
func NewGroup(kv store.KV, prefix, noun string, lasts time.Duration, clock func() time.Time) *Group {
	return &Group{leases: store.NewTable[record](kv, prefix, noun), lasts: lasts, clock: clock}
}

// Join starts a lease under an id that was never used before. The lease time
// counts from before the call.
func (g *Group) Join(ctx context.Context, id string) (*Member, error) {
	if err := g.leases.Insert(ctx, id, record{ID: id, Started: g.clock().UTC()}); err != nil {
		return nil, err
	}
	return &Member{id: id, group: g, seen: newObservations(g.lasts, g.clock)}, nil
}

// Has reports whether a member has a lease that has not been ended.
func (g *Group) Has(ctx context.Context, id string) (bool, error) {
	_, err := g.leases.Get(ctx, id)
	return err == nil, nf.IgnoreNotFound(err)
}

// Member is a process's lease, with its observations of the other leases. Only
// ID is safe for concurrent use.
type Member struct {
	id    string
	group *Group
	seen  *observations
}

// ID returns the id under which the member joined.
func (m *Member) ID() string { return m.id }

// Renew changes the heartbeat. It returns ErrLost if another process has ended
// the lease.
func (m *Member) Renew(ctx context.Context) error {
	_, err := m.group.leases.Update(ctx, m.id, func(r *record) error {
		r.Heartbeat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return ErrLost
	}
	return err
}

// Leave ends the lease, so that the others do not wait until it expires. It
// returns nil if the lease no longer exists.
func (m *Member) Leave(ctx context.Context) error {
	return nf.IgnoreNotFound(m.group.leases.Delete(ctx, m.id))
}

// Survey returns the members that hold a lease, including this one. It ends the
// leases that have expired, and returns their members as well. Members that
// join during the call may be missing.
func (m *Member) Survey(ctx context.Context) (alive, ended map[string]bool, err error) {
	all, err := m.group.leases.List(ctx, "")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the other replicas: %w", err)
	}
	alive, ended = map[string]bool{}, map[string]bool{}
	for _, r := range all {
		over := false
		if m.seen.Expired(r.ID, r.Heartbeat) && r.ID != m.id {
			if over, err = m.expire(ctx, r); err != nil {
				return nil, nil, err
			}
		}
		if over {
			ended[r.ID] = true
		} else {
			alive[r.ID] = true
		}
	}
	m.seen.Retain(func(id string) bool { return alive[id] })
	return alive, ended, nil
}

// expire ends another member's lease, unless it was renewed in the meantime.
func (m *Member) expire(ctx context.Context, seen record) (over bool, err error) {
	err = nf.IgnoreNotFound(m.group.leases.DeleteIf(ctx, seen.ID, func(r record) error {
		if r.Heartbeat != seen.Heartbeat {
			return errMoved
		}
		return nil
	}))
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, err
}

// Expel ends every other lease at once. It is for a store that only one process
// can open: the others have ended.
func (m *Member) Expel(ctx context.Context) error {
	all, err := m.group.leases.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot list former replicas: %w", err)
	}
	for _, r := range all {
		if r.ID == m.id {
			continue
		}
		if err := nf.IgnoreNotFound(m.group.leases.Delete(ctx, r.ID)); err != nil {
			return fmt.Errorf("cannot end the lease of a former replica: %w", err)
		}
	}
	return nil
}
