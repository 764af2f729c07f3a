package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// replica is the lease of one process among those that share the store: it
// lasts for as long as its beat moves.
type replica struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Beat    int64     `json:"beat"`
}

// membership is this process's lease, and what it has seen of the others'. Only
// the keeper of a tenure uses it.
type membership struct {
	id        string
	replicas  store.Table[replica]
	lease     time.Duration
	now       func() time.Time
	sightings map[string]sighting
}

// sighting is when another's beat was first seen to be what it still is. The
// time is this process's own: no other clock is trusted.
type sighting struct {
	beat  int64
	since time.Time
}

var (
	errLost   = errors.New("this replica has lost its lease")
	errAlive  = errors.New("the replica is alive")
	errAbsent = errors.New("this replica has not joined yet")
)

func (e *Engine) newMembership() *membership {
	return &membership{
		id: e.cfg.NewID(), replicas: e.replicas, lease: e.cfg.Lease, now: e.now, sightings: map[string]sighting{},
	}
}

func (m *membership) join(ctx context.Context) error {
	return m.replicas.Insert(ctx, m.id, replica{ID: m.id, Started: m.now()})
}

// renew moves the beat; errLost when another replica has ended the lease.
func (m *membership) renew(ctx context.Context) error {
	_, err := m.replicas.Update(ctx, m.id, func(r *replica) error {
		r.Beat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return errLost
	}
	return err
}

// leave ends the lease, so that nobody waits for it to lapse.
func (m *membership) leave(ctx context.Context) error {
	return nf.UnlessGone(m.replicas.Delete(ctx, m.id))
}

// watch returns the replicas that hold a lease, and ends the leases that have
// stood still for their whole time.
func (m *membership) watch(ctx context.Context) (alive, ended map[string]bool, err error) {
	all, err := m.replicas.List(ctx, "")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot see the other replicas: %w", err)
	}
	alive, ended = map[string]bool{}, map[string]bool{}
	seen := map[string]sighting{}
	for _, r := range all {
		s, known := m.sightings[r.ID]
		if !known || s.beat != r.Beat {
			s = sighting{beat: r.Beat, since: m.now()}
		}
		seen[r.ID], alive[r.ID] = s, true
		if r.ID == m.id || m.now().Sub(s.since) < m.lease {
			continue
		}
		switch over, err := m.expire(ctx, r); {
		case err != nil:
			return nil, nil, err
		case over:
			delete(alive, r.ID)
			ended[r.ID] = true
		}
	}
	m.sightings = seen
	return alive, ended, nil
}

// expire ends another's lease, unless it has moved at the last moment.
func (m *membership) expire(ctx context.Context, seen replica) (over bool, err error) {
	err = nf.UnlessGone(m.replicas.DeleteIf(ctx, seen.ID, func(r replica) error {
		if r.Beat != seen.Beat {
			return errAlive
		}
		return nil
	}))
	if errors.Is(err, errAlive) {
		return false, nil
	}
	return err == nil, err
}

// evict ends every other lease at once. It is for a store that only one process
// can have open: the others are dead.
func (m *membership) evict(ctx context.Context) error {
	all, err := m.replicas.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot see former replicas: %w", err)
	}
	for _, r := range all {
		if r.ID == m.id {
			continue
		}
		if err := nf.UnlessGone(m.replicas.Delete(ctx, r.ID)); err != nil {
			return fmt.Errorf("cannot end the lease of a former replica: %w", err)
		}
	}
	return nil
}
