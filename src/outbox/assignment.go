package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var errTaken = errors.New("another replica has claimed it")

// assignment records which replica serves a shard.
type assignment struct {
	Shard   string `json:"shard"`
	Replica string `json:"replica"`
}

// take assigns a shard to this replica. It returns false if another replica has
// taken it from its former holder.
func (ms *membership) take(ctx context.Context, shard, holder string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ms.o.cfg.Lease/3)
	defer cancel()
	mine := assignment{Shard: shard, Replica: ms.member.ID()}
	var err error
	if holder == "" {
		err = ms.o.assignments.Insert(ctx, shard, mine)
	} else {
		_, err = ms.o.assignments.Update(ctx, shard, func(a *assignment) error {
			if a.Replica != holder {
				return errTaken
			}
			*a = mine
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

// release releases a shard, so that another replica can take it.
func (ms *membership) release(ctx context.Context, shard string) error {
	ctx, cancel := context.WithTimeout(ctx, ms.o.cfg.Lease/3)
	defer cancel()
	return ms.o.assignments.DeleteWhere(ctx, shard, func(a assignment) bool { return a.Replica == ms.member.ID() })
}

// chosen returns the replica that should serve a shard, by rendezvous hashing.
// All replicas compute the same result, and adding or removing a replica moves
// few shards.
func chosen(shard string, alive map[string]bool) string {
	var best string
	var most uint64
	for id := range alive {
		sum := sha256.Sum256([]byte(id + "/" + shard))
		if weight := binary.BigEndian.Uint64(sum[:]); best == "" || weight > most || weight == most && id < best {
			best, most = id, weight
		}
	}
	return best
}
