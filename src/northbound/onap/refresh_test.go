package onap_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// listing is what A&AI has of the only instance.
type listing struct {
	is      nf.Listing
	err     error
	relists int
}

// Listing implements onap.Inventory.
func (l *listing) Listing(context.Context, string) (nf.Listing, error) { return l.is, l.err }

// Relist implements onap.Inventory.
func (l *listing) Relist(context.Context, string) (nf.Listing, error) {
	l.relists++
	return l.is, l.err
}

// TestRefresh compares the status of a stack after an update of A&AI with what SO waits
// for.
func TestRefresh(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return noon(120).Add(-d) }
	cases := map[string]struct {
		reason string
		is     nf.Listing
		err    error
		post   int
		want   string
	}{
		"NeverAsked": {"the stack was made, and no client asked for an update", nf.Listing{State: nf.ListingDirty}, nil, http.StatusAccepted, "CREATE_COMPLETE"},
		"Asked":      {"an update waits for its replica", nf.Listing{State: nf.ListingClean, Asked: ago(time.Second), Pending: true}, nil, http.StatusAccepted, "UPDATE_IN_PROGRESS"},
		"Waiting":    {"an object of SO is missing", nf.Listing{State: nf.ListingWaiting, Asked: ago(time.Second)}, nil, http.StatusAccepted, "UPDATE_IN_PROGRESS"},
		"Late":       {"it waits for a minute at most", nf.Listing{State: nf.ListingWaiting, Asked: ago(time.Minute)}, nil, http.StatusAccepted, "UPDATE_COMPLETE"},
		"Done":       {"A&AI is equal", nf.Listing{State: nf.ListingClean, Asked: ago(time.Second)}, nil, http.StatusAccepted, "UPDATE_COMPLETE"},
		"Rejected":   {"A&AI rejects an object for good", nf.Listing{State: nf.ListingParked, Asked: ago(time.Second)}, nil, http.StatusAccepted, "UPDATE_FAILED"},
		"Earlier":    {"it was asked for before the last change of the stack", nf.Listing{State: nf.ListingClean, Asked: noon(0)}, nil, http.StatusAccepted, "CREATE_COMPLETE"},
		"Off":        {"the service does not write the instance", nf.Listing{State: nf.ListingOff}, nf.E(nf.Conflict, "compare", "it", nil), http.StatusAccepted, ""},
		"Denied":     {"the identity may only read", nf.Listing{}, nf.E(nf.Forbidden, "compare", "it", nil), http.StatusForbidden, ""},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &listing{is: tt.is, err: tt.err}
			w := newWorld(t, false)
			w.listing, w.now = l, noon(120)
			w.start(t, false, w.kv)
			w.hold = true
			w.ask(t, "POST /acme/east/infra_workload", stackRequest)
			w.release("op-a")
			if got := w.ask(t, "POST /acme/east/infra_workload/id1", "{}"); got.status != tt.post || l.relists != 1 {
				t.Errorf("%s: status %d after %d comparisons, want %d", tt.reason, got.status, l.relists, tt.post)
			}
			if tt.want != "" {
				w.want(t, tt.reason, "GET /acme/east/infra_workload/id1", "", http.StatusOK, workload("id1", tt.want, "null"))
			}
		})
	}
}
