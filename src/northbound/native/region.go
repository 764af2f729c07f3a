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

// Regions manages the registered cloud regions.
type Regions interface {
	// Register probes a region and stores it. It returns nf.Exists, nf.Invalid
	// or nf.Unreachable. If a region with the same r.Request exists, the
	// request is a repetition: Register returns that region, or nf.Conflict if
	// the request's digest differs.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// RegionsFrom yields the regions, sorted by id.
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error]
	// UpdateRegion edits a region. Edit may be called more than once.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	// RemoveRegion deregisters a region. It returns nf.Conflict while instances
	// use it.
	RemoveRegion(ctx context.Context, id string) error
}

// Usage returns the users of regions and packages.
type Usage interface {
	// Users yields the holders of a region or a package, ordered by kind, project,
	// region and id.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// Conditions returns the state of regions.
type Conditions interface {
	// RegionState returns the last known state of a region, which the caller has read. It
	// does not contact the region.
	RegionState(r nf.Region) nf.RegionState
}

// Surveys reads what regions offer.
type Surveys interface {
	// RegionCapabilities returns what a region offers, as it was read recently, or now
	// for a fresh answer. It returns nf.NotFound or nf.Unreachable.
	RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error)
}

// Parents changes the parents of regions.
type Parents interface {
	// Reparent says that the Cluster of a region is in another region now. It returns
	// nf.Conflict if it is not there.
	Reparent(ctx context.Context, id, to string) (nf.Region, error)
}

// regions serves the registered cloud regions.
type regions struct {
	store      Regions
	usage      Usage
	conditions Conditions // nil: unknown
	surveys    Surveys
	parents    Parents // nil: they are not changed
}

func (rs regions) routes(on route) {
	const all, one = "/cloud_regions", "/cloud_regions/{cloud_region_id}"
	on(http.MethodPost, all, rs.create)
	on(http.MethodGet, all, rs.list)
	on(http.MethodGet, one, rs.get)
	on(http.MethodPatch, one, rs.update)
	on(http.MethodDelete, one, rs.remove)
	on(http.MethodGet, one+"/capabilities", rs.capabilities)
}

// show returns a region with its state.
func (rs regions) show(r nf.Region) wire.Region {
	var state nf.RegionState
	if rs.conditions != nil {
		state = rs.conditions.RegionState(r)
	}
	return wire.RegionOf(r).WithState(state)
}

// mostUsers limits the instances in the response for a region or a package. The
// list of instances has all of them.
const mostUsers = 100

// users returns the first instances that use a region or a package, and whether
// there are more.
func users(ctx context.Context, usage Usage, of nf.Holding) (ids []string, more bool, err error) {
	ids = []string{}
	for user, err := range usage.Users(ctx, of) {
		if err != nil {
			return nil, false, err
		}
		if user.Kind != nf.InstanceSubject {
			continue
		}
		if len(ids) == mostUsers {
			return ids, true, nil
		}
		ids = append(ids, user.ID)
	}
	return ids, false, nil
}

func (rs regions) create(w http.ResponseWriter, r *http.Request) error {
	in, key, err := decodeRegion(r)
	if err != nil {
		return err
	}
	access, err := regionAccess(in.Access, in.Kubeconfig)
	if err != nil {
		return err
	}
	if !access.IsZero() {
		access.Rotation = rotation(in.Credentials)
	}
	made, err := rs.store.Register(r.Context(), nf.Region{
		ID: in.ID, Owner: in.Owner, Type: in.Type, Origin: nf.OriginAPI, Description: in.Description, Labels: in.Labels,
		DefaultNamespace: in.Namespace, AAITenant: in.AAITenant, Plugins: in.Plugins, Interfaces: in.Interfaces, Tenants: in.Tenants, Access: access, Request: key,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", wire.RegionPath(made.ID))
	return northbound.Answer(w, http.StatusCreated, rs.show(made))
}

func decodeRegion(r *http.Request) (wire.RegionCreate, nf.RequestKey, error) {
	if !isForm(r) {
		return read[wire.RegionCreate](r)
	}
	document, err := regionForm(r)
	if err != nil {
		return wire.RegionCreate{}, nf.RequestKey{}, err
	}
	return decode[wire.RegionCreate](r, document)
}

func (rs regions) list(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	query := r.URL.Query()
	labels, err := selectorOf(r)
	if err != nil {
		return err
	}
	page, err := paginateFrom(r, labels.equal, func(from nf.Cursor) iter.Seq2[nf.Region, error] {
		return kept(rs.store.RegionsFrom(ctx, from), func(g nf.Region) bool {
			return labels.matches(g.Labels) && (!query.Has("condition") || query.Get("condition") == string(rs.show(g).State.Condition))
		})
	}, func(g nf.Region) string { return g.ID })
	if err != nil {
		return err
	}
	return answerPage(w, "cloud_regions", page, rs.show)
}

func (rs regions) get(w http.ResponseWriter, r *http.Request) error {
	found, err := rs.store.Region(r.Context(), mux.Vars(r)["cloud_region_id"])
	if err != nil {
		return err
	}
	shown := rs.show(found)
	if shown.VNFInstances, shown.More, err = users(r.Context(), rs.usage, nf.Holding{Region: found.ID}); err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, shown)
}

func (rs regions) update(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[patch](r)
	if err != nil {
		return err
	}
	if _, moves := change["parent"]; moves {
		return rs.reparent(w, r, change)
	}
	changed, err := rs.store.UpdateRegion(r.Context(), mux.Vars(r)["cloud_region_id"], func(g *nf.Region) error {
		edit, err := apply(change, wire.RegionEdit{
			Owner: g.Owner, Description: g.Description, Labels: g.Labels, Namespace: g.DefaultNamespace, AAITenant: g.AAITenant, Plugins: g.Plugins, Interfaces: g.Interfaces, Tenants: g.Tenants,
		})
		if err != nil {
			return err
		}
		access, err := regionAccess(edit.Access, edit.Kubeconfig)
		if err != nil {
			return err
		}
		if err := setAccess(g, access, rotation(edit.Credentials)); err != nil {
			return err
		}
		g.Owner, g.Description, g.Labels, g.Tenants = edit.Owner, edit.Description, edit.Labels, edit.Tenants
		g.DefaultNamespace, g.AAITenant, g.Plugins, g.Interfaces = edit.Namespace, edit.AAITenant, edit.Plugins, edit.Interfaces
		return nil
	})
	return respond(w, changed, err, rs.show)
}

// reparent changes the parent of a region, and nothing else.
func (rs regions) reparent(w http.ResponseWriter, r *http.Request, change patch) error {
	ctx, id := r.Context(), mux.Vars(r)["cloud_region_id"]
	edit, err := apply(change, wire.RegionPatch{})
	switch {
	case err != nil:
		return err
	case len(change) > 1 || edit.Parent == nil:
		return nf.E(nf.Invalid, "update", "cloud region "+id, nf.Violations{{Field: "parent", Message: "is changed alone, and not removed"}})
	case rs.parents == nil:
		return nf.E(nf.Unsupported, "update", "cloud region "+id, errors.New("this service makes no cloud regions of clusters"))
	}
	changed, err := rs.parents.Reparent(ctx, id, edit.Parent.Region)
	return respond(w, changed, err, rs.show)
}

func (rs regions) remove(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, rs.store.RemoveRegion(r.Context(), mux.Vars(r)["cloud_region_id"]))
}
