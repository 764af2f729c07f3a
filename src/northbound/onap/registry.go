package onap

import (
	"context"
	"errors"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Imports imports cloud regions of A&AI.
type Imports interface {
	// Use returns a region for a new instance, and imports it if it is not registered.
	// The owner may be empty. It returns nf.NotFound if A&AI does not have it either.
	Use(ctx context.Context, owner, id string) (nf.Region, error)
	// Import imports a region, or compares it with A&AI now. It returns nf.NotFound if
	// there is none, and nf.Conflict if the registered region is that of another owner.
	Import(ctx context.Context, owner, id string) (nf.Region, error)
	// Deregister removes an imported region. It returns nf.Conflict for another one, and
	// for one that is used.
	Deregister(ctx context.Context, id string) error
}

// noImports has no A&AI.
type noImports struct{ regions Regions }

// Use implements Imports.
func (n noImports) Use(ctx context.Context, _, id string) (nf.Region, error) {
	return n.regions.Region(ctx, id)
}

// Import implements Imports.
func (n noImports) Import(ctx context.Context, _, id string) (nf.Region, error) {
	return n.regions.Region(ctx, id)
}

// Deregister implements Imports.
func (n noImports) Deregister(ctx context.Context, id string) error {
	return n.regions.RemoveRegion(ctx, id)
}

// The statuses of a registered region.
const (
	regionRegistered = "registered"
	regionNoAccess   = "without access" // A&AI has no credentials that can be used
	regionVanished   = "vanished"       // A&AI no longer has the region
)

// registration is the status of a region in the registry.
type registration struct {
	Status string `json:"status"`
}

// registry serves the registration of regions, as ONAP's broker forwards it. ESR requests
// it after it has stored a region in A&AI.
type registry struct {
	regions Regions
	imports Imports
}

func (g registry) routes(on route) {
	const one = "/{cloud-owner}/{cloud-region}/registry"
	on(http.MethodPost, one, g.create)
	on(http.MethodGet, one, g.get)
	on(http.MethodDelete, one, g.remove)
}

// create imports a region. Its body, which may name a default tenant, is not needed: A&AI
// has that, too.
func (g registry) create(w http.ResponseWriter, r *http.Request) error {
	vars := mux.Vars(r)
	if _, err := g.imports.Import(r.Context(), vars["cloud-owner"], vars["cloud-region"]); err != nil {
		return plain(fail("Import Region", err), err)
	}
	return done(w, http.StatusAccepted)
}

// plain gives an error the status of its kind in both styles, because ONAP's plugin never
// had these paths.
func plain(err, cause error) error {
	if e, ok := errors.AsType[*refusal](err); ok {
		e.status = e.strict
		if nf.KindOf(cause) == nf.NotFound {
			e.status, e.strict = http.StatusNotFound, http.StatusNotFound
		}
	}
	return err
}

// get returns the status of a region. The owner in the path is ignored, because an id is
// unique.
func (g registry) get(w http.ResponseWriter, r *http.Request) error {
	region, err := g.regions.Region(r.Context(), mux.Vars(r)["cloud-region"])
	if err != nil {
		return plain(fail("Get Region", err), err)
	}
	out := registration{regionRegistered}
	switch {
	case region.NoAccess() != "":
		out.Status = regionNoAccess
	case region.AAI != nil && !region.AAI.Vanished.IsZero():
		out.Status = regionVanished
	}
	return answer(w, http.StatusOK, out)
}

// remove deregisters an imported region. A&AI keeps it, because it belongs to others. A
// region that a request has registered, or that is used, stays.
func (g registry) remove(w http.ResponseWriter, r *http.Request) error {
	if err := g.imports.Deregister(r.Context(), mux.Vars(r)["cloud-region"]); err != nil {
		return plain(fail("Delete Region", err), err)
	}
	return done(w, http.StatusNoContent)
}
