package notify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var errTaken = errors.New("another replica has taken it")

// round is who serves the subscriptions of one region.
type round struct {
	Region  string `json:"region"`
	Replica string `json:"replica"`
}

// take makes this replica serve a region, unless somebody else was faster.
func (t *tenure) take(ctx context.Context, region string, seen round) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, t.n.cfg.Lease/3)
	defer cancel()
	mine := round{Region: region, Replica: t.m.ID()}
	var err error
	if seen.Replica == "" {
		err = t.n.rounds.Insert(ctx, region, mine)
	} else {
		_, err = t.n.rounds.Update(ctx, region, func(r *round) error {
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
func (t *tenure) give(ctx context.Context, region string) error {
	ctx, cancel := context.WithTimeout(ctx, t.n.cfg.Lease/3)
	defer cancel()
	err := nf.UnlessGone(t.n.rounds.DeleteIf(ctx, region, func(r round) error {
		if r.Replica != t.m.ID() {
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
