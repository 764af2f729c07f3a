package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// ErrLost says that a lease is over: another process has seen it stand still.
var ErrLost = errors.New("this replica has lost its lease")

var errMoved = errors.New("the replica is alive")

// record is the lease of one process.
type record struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Beat    int64     `json:"beat"`
}

// Group is those processes that share the work of one kind. It is safe for
// concurrent use.
type Group struct {
	leases store.Table[record]
	lasts  time.Duration
	clock  func() time.Time
}

// NewGroup returns the group whose leases have keys that begin with the prefix
// ("replicas/"), and last for a time. The noun is what errors call a member.
func NewGroup(kv store.KV, prefix, noun string, lasts time.Duration, clock func() time.Time) *Group {
	return &Group{leases: store.NewTable[record](kv, prefix, noun), lasts: lasts, clock: clock}
}

// Join begins a lease under an id that nobody has had. It lasts from before Join
// was called.
func (g *Group) Join(ctx context.Context, id string) (*Member, error) {
	if err := g.leases.Insert(ctx, id, record{ID: id, Started: g.clock().UTC()}); err != nil {
		return nil, err
	}
	return &Member{id: id, group: g, seen: NewSightings[int64](g.lasts, g.clock)}, nil
}

// Has reports whether a member has a lease that nobody has ended.
func (g *Group) Has(ctx context.Context, id string) (bool, error) {
	_, err := g.leases.Get(ctx, id)
	return err == nil, nf.UnlessGone(err)
}

// Member is a process's lease, and what it has seen of the others'. Only ID is
// safe for concurrent use.
type Member struct {
	id    string
	group *Group
	seen  *Sightings[int64]
}

// ID returns the id that the member has joined under.
func (m *Member) ID() string { return m.id }

// Renew moves the beat. It is ErrLost when another process has ended the lease.
func (m *Member) Renew(ctx context.Context) error {
	_, err := m.group.leases.Update(ctx, m.id, func(r *record) error {
		r.Beat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return ErrLost
	}
	return err
}

// Leave ends the lease, so that nobody waits for it to lapse. There need not be
// one any more.
func (m *Member) Leave(ctx context.Context) error {
	return nf.UnlessGone(m.group.leases.Delete(ctx, m.id))
}

// Survey returns the members that hold a lease, this one among them, and ends
// the leases that have lapsed, which it returns, too. Members that join after it
// was called may be missing.
func (m *Member) Survey(ctx context.Context) (alive, ended map[string]bool, err error) {
	all, err := m.group.leases.List(ctx, "")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot see the other replicas: %w", err)
	}
	alive, ended = map[string]bool{}, map[string]bool{}
	for _, r := range all {
		over := false
		if m.seen.Lapsed(r.ID, r.Beat) && r.ID != m.id {
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

// expire ends another's lease, unless it has moved at the last moment.
func (m *Member) expire(ctx context.Context, seen record) (over bool, err error) {
	err = nf.UnlessGone(m.group.leases.DeleteIf(ctx, seen.ID, func(r record) error {
		if r.Beat != seen.Beat {
			return errMoved
		}
		return nil
	}))
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, err
}

// Evict ends every other lease at once. It is for a store that only one process
// can have open: the others are dead.
func (m *Member) Evict(ctx context.Context) error {
	all, err := m.group.leases.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot see former replicas: %w", err)
	}
	for _, r := range all {
		if r.ID == m.id {
			continue
		}
		if err := nf.UnlessGone(m.group.leases.Delete(ctx, r.ID)); err != nil {
			return fmt.Errorf("cannot end the lease of a former replica: %w", err)
		}
	}
	return nil
}
