package notify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// replica is the lease of one process among those that share the store: it lasts
// for as long as its beat moves.
type replica struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Beat    int64     `json:"beat"`
}

// sighting is when another's beat was first seen to be what it still is, by this
// process's own clock: no other is trusted.
type sighting struct {
	beat  int64
	since time.Time
}

// membership is this process's lease, and what it has seen of the others'.
type membership struct {
	n         *Notifier
	id        string
	sightings map[string]sighting
}

var (
	errLost  = errors.New("this replica has lost its lease")
	errAlive = errors.New("the replica is alive")
	errTaken = errors.New("another replica has taken it")
)

// join begins a lease.
func (n *Notifier) join(ctx context.Context) (*membership, error) {
	m := &membership{n: n, id: n.cfg.NewID(), sightings: map[string]sighting{}}
	if err := n.replicas.Insert(ctx, m.id, replica{ID: m.id, Started: n.now()}); err != nil {
		return nil, err
	}
	if !n.cfg.Sole {
		return m, nil
	}
	others, err := n.replicas.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range others {
		if r.ID == m.id {
			continue
		}
		if err := nf.UnlessGone(n.replicas.Delete(ctx, r.ID)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// renew moves the beat; errLost when another replica has ended the lease.
func (m *membership) renew(ctx context.Context) error {
	_, err := m.n.replicas.Update(ctx, m.id, func(r *replica) error {
		r.Beat++
		return nil
	})
	if nf.KindOf(err) == nf.NotFound {
		return errLost
	}
	return err
}

// living returns the replicas that hold a lease, and ends the leases that have
// stood still for their whole time.
func (m *membership) living(ctx context.Context) (map[string]bool, error) {
	all, err := m.n.replicas.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("cannot see the other replicas: %w", err)
	}
	alive, seen := map[string]bool{}, map[string]sighting{}
	for _, r := range all {
		s, known := m.sightings[r.ID]
		if !known || s.beat != r.Beat {
			s = sighting{beat: r.Beat, since: m.n.now()}
		}
		if r.ID != m.id && m.n.now().Sub(s.since) >= m.n.cfg.Lease {
			err := nf.UnlessGone(m.n.replicas.DeleteIf(ctx, r.ID, func(now replica) error {
				if now.Beat != r.Beat {
					return errAlive
				}
				return nil
			}))
			if err == nil {
				continue
			}
			if !errors.Is(err, errAlive) {
				return nil, err
			}
		}
		seen[r.ID], alive[r.ID] = s, true
	}
	m.sightings = seen
	return alive, nil
}

// round is who serves the subscriptions of one region.
type round struct {
	Region  string `json:"region"`
	Replica string `json:"replica"`
}

// take makes this replica serve a region, unless somebody else was faster.
func (m *membership) take(ctx context.Context, region string, seen round) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, m.n.cfg.Lease/3)
	defer cancel()
	mine := round{Region: region, Replica: m.id}
	var err error
	if seen.Replica == "" {
		err = m.n.rounds.Insert(ctx, region, mine)
	} else {
		_, err = m.n.rounds.Update(ctx, region, func(r *round) error {
			if r.Replica != seen.Replica {
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

// give lets others serve a region.
func (m *membership) give(ctx context.Context, region string) error {
	ctx, cancel := context.WithTimeout(ctx, m.n.cfg.Lease/3)
	defer cancel()
	err := nf.UnlessGone(m.n.rounds.DeleteIf(ctx, region, func(r round) error {
		if r.Replica != m.id {
			return errTaken
		}
		return nil
	}))
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// chosen is the replica that a region falls to: the same whoever asks, and with
// one replica more or less few regions fall to another.
func chosen(region string, alive map[string]bool) string {
	var best string
	var most uint64
	for id := range alive {
		sum := sha256.Sum256([]byte(id + "/" + region))
		if weight := binary.BigEndian.Uint64(sum[:]); best == "" || weight > most || weight == most && id < best {
			best, most = id, weight
		}
	}
	return best
}
