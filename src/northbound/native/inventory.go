package native

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Inventory knows what A&AI has of instances, networks and cloud regions.
type Inventory interface {
	// Listings yields the listings of which A&AI has, or is to have, an object: those of
	// instances, then those of networks, then those of cloud regions, and then those of
	// instances that do not exist (nf.ListingOrphaned), each ordered by id.
	Listings(ctx context.Context) iter.Seq2[nf.Listing, error]
	// Listing returns that of an instance.
	Listing(ctx context.Context, instance string) (nf.Listing, error)
	// Relist has the objects of an instance compared with A&AI again. It returns
	// nf.Conflict if A&AI is to have nothing of it.
	Relist(ctx context.Context, instance string) (nf.Listing, error)
}

// inventory serves listings.
type inventory struct{ store Inventory }

func (is inventory) routes(on route) {
	const one = "/vnf_instances/{vnf_id}/aai"
	on(http.MethodGet, "/inventory/aai", optional(is.missing("list"), is.list))
	on(http.MethodGet, one, optional(is.missing("get"), is.get))
	on(http.MethodPost, one+"/sync", optional(is.missing("sync"), is.sync))
}

// missing returns nf.NotFound if A&AI is not used.
func (is inventory) missing(op string) error {
	if is.store != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, "objects of A&AI", errors.New("the service does not write to A&AI; see aai-url and aai-write"))
}

func (is inventory) list(w http.ResponseWriter, r *http.Request) error {
	where := wanted(r, "vnf_id", "network_id", "cloud_region_id", "state")
	matching := kept(is.store.Listings(r.Context()), func(l nf.Listing) bool {
		one := wire.ListingOf(l)
		return nf.Summary{Attributes: []nf.Attribute{
			{Name: "vnf_id", Value: one.Instance}, {Name: "network_id", Value: one.Network}, {Name: "cloud_region_id", Value: one.Region}, {Name: "state", Value: string(one.State)},
		}}.Has(where)
	})
	marker := r.URL.Query().Get("marker")
	page, err := collect(r, kept(matching, func(l nf.Listing) bool { return listingKey(l) > marker }), listingKey)
	if err != nil {
		return err
	}
	return answerPage(w, "listings", page, wire.ListingOf)
}

// listingKey returns the marker of a listing. Those of instances are less than those of
// networks, those less than those of cloud regions, and those less than those of
// instances that do not exist.
func listingKey(l nf.Listing) string {
	switch l.Subject.Kind {
	case nf.InstanceSubject:
		if l.State == nf.ListingOrphaned {
			return "unknown." + l.Subject.ID
		}
		return "instances." + l.Subject.ID
	case nf.RegionSubject:
		return "regions." + l.Subject.ID
	default:
		return "networks." + l.Subject.ID
	}
}

func (is inventory) get(w http.ResponseWriter, r *http.Request) error {
	l, err := is.store.Listing(r.Context(), mux.Vars(r)["vnf_id"])
	return respond(w, l, err, wire.ListingOf)
}

func (is inventory) sync(w http.ResponseWriter, r *http.Request) error {
	l, err := is.store.Relist(r.Context(), mux.Vars(r)["vnf_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusAccepted, wire.ListingOf(l))
}
