package onap

import (
	"context"
	"net/http"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// refreshTime is how long a stack's update of A&AI is shown as running. After it, A&AI
// is written all the same.
const refreshTime = time.Minute

// Inventory is what the service writes to ONAP's inventory A&AI.
type Inventory interface {
	// Listing returns what is known of an instance in A&AI.
	Listing(ctx context.Context, instance string) (nf.Listing, error)
	// Relist has an instance compared with A&AI soon. It returns nf.Conflict if A&AI is to
	// have nothing of it.
	Relist(ctx context.Context, instance string) (nf.Listing, error)
}

// refresh has the objects of a stack compared with A&AI. It succeeds if the service does
// not write them.
func (ws workloads) refresh(w http.ResponseWriter, r *http.Request) error {
	v, err := ws.vnfs.of(r)
	if err != nil {
		return notFound(fail("Get Instance", err))
	}
	if ws.inventory != nil {
		if _, err := ws.inventory.Relist(r.Context(), v.ID); err != nil && nf.KindOf(err) != nf.Conflict {
			return fail("Updating A&AI", err)
		}
	}
	return done(w, http.StatusAccepted)
}

// refreshed returns the status of a stack that is complete. If a client has asked for an
// update of A&AI since then, it is that of the update.
func (ws workloads) refreshed(ctx context.Context, in nf.Instance, complete string, ended time.Time) (string, error) {
	if ws.inventory == nil || complete != statusComplete {
		return complete, nil
	}
	l, err := ws.inventory.Listing(ctx, in.ID)
	switch {
	case err != nil:
		return "", fail("Get Instance", err)
	case l.Asked.Before(ended) || l.Asked.IsZero():
		return complete, nil
	case l.Pending || l.State == nf.ListingDirty || l.State == nf.ListingWaiting:
		if ws.clock().Sub(l.Asked) < refreshTime {
			return "UPDATE_IN_PROGRESS", nil
		}
	case l.State == nf.ListingParked:
		return "UPDATE_FAILED", nil
	}
	return "UPDATE_COMPLETE", nil
}
