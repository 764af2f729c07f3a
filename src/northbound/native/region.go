package native

import (
	"cmp"
	"context"
	"encoding/base64"
	"iter"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Regions is what the API asks of the registered cloud regions.
type Regions interface {
	// Register probes a region and keeps it: nf.Exists, nf.Invalid,
	// nf.Unreachable. When a region with the same Request is there, that is
	// returned, or nf.Conflict when the Request's digest is another.
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Regions returns every region, ordered by id.
	Regions(ctx context.Context) ([]nf.Region, error)
	// UpdateRegion edits a region; the edit may be called more than once.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	// RemoveRegion forgets a region; nf.Conflict while instances use it.
	RemoveRegion(ctx context.Context, id string) error
}

// Usage tells which instances use regions and packages.
type Usage interface {
	// Users yields the ids of the instances that use a region, or else a package,
	// in their order.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error]
}

// Conditions tells how the regions are doing.
type Conditions interface {
	// RegionState returns what is known of a region without asking it, or
	// nf.NotFound.
	RegionState(ctx context.Context, id string) (nf.RegionState, error)
}

// region is a cloud region as clients see it. It has no place for a kubeconfig.
type region struct {
	ID           string            `json:"cloud_region_id"`
	Owner        string            `json:"cloud_owner"`
	Description  string            `json:"description,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Tenants      tenants           `json:"tenants,omitempty"`
	Server       string            `json:"server"`
	Version      string            `json:"kubernetes_version"`
	APIs         []string          `json:"apis"`
	ProbedAt     time.Time         `json:"probed_at,omitzero"`
	VNFInstances []string          `json:"vnf_instances,omitzero"` // of a single region
	More         bool              `json:"more_vnf_instances,omitempty"`
	State        *regionState      `json:"state,omitempty"` // nil: not asked
	Credential   *credential       `json:"credential,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

// tenants are what projects may use of a region, by project.
type tenants map[string]nf.Tenant

// regionState is how a region is doing.
type regionState struct {
	Condition nf.RegionCondition `json:"condition"`
	Reason    string             `json:"reason,omitempty"`
	Message   string             `json:"message,omitempty"`
	Since     time.Time          `json:"since,omitzero"`
	Checked   time.Time          `json:"checked,omitzero"`
	Breaker   nf.BreakerState    `json:"breaker"`
	RetryAt   time.Time          `json:"retry_at,omitzero"`
}

// credential is what a region's kubeconfig authenticates with.
type credential struct {
	Kind    string    `json:"kind"`
	Expires time.Time `json:"expires,omitzero"`
}

func fromRegion(r nf.Region) region {
	return region{
		ID: r.ID, Owner: r.Owner, Description: r.Description, Labels: r.Labels, Tenants: r.Tenants,
		Server: r.Probe.Server, Version: r.Probe.Version, APIs: list(r.Probe.APIs), ProbedAt: r.Probe.Time,
		CreatedAt: r.Created, UpdatedAt: r.Updated,
	}
}

// with adds how the region is doing.
func (r region) with(s nf.RegionState) region {
	r.State = &regionState{
		Condition: cmp.Or(s.Condition, nf.RegionUnknown), Reason: s.Reason, Message: s.Message, Since: s.Since,
		Checked: s.Checked, Breaker: cmp.Or(s.Breaker, nf.BreakerClosed), RetryAt: s.Retry,
	}
	if s.Credential.Kind != "" {
		r.Credential = &credential{Kind: s.Credential.Kind, Expires: s.Credential.Expires}
	}
	return r
}

// show returns a region with how it is doing.
func (a *API) show(ctx context.Context, r nf.Region) region {
	return fromRegion(r).with(a.stateOf(ctx, r.ID))
}

// stateOf returns how a region is doing, the zero state when that cannot be
// told: what else is known of the region is worth more than that.
func (a *API) stateOf(ctx context.Context, id string) nf.RegionState {
	if a.cfg.Conditions == nil {
		return nf.RegionState{}
	}
	state, err := a.cfg.Conditions.RegionState(ctx, id)
	if err != nil && nf.KindOf(err) != nf.NotFound { // it may have been removed since it was read
		a.cfg.Logger.WarnContext(ctx, "the state of a region cannot be told", "region", id, "error", err)
	}
	return state
}

// mostUsers is how many instances the answer to a request for a region or a
// package names. The list of instances has them all.
const mostUsers = 100

// users returns the first instances that use a region or a package, and whether
// there are more.
func (a *API) users(ctx context.Context, of nf.Holding) (ids []string, more bool, err error) {
	ids = []string{}
	for id, err := range a.cfg.Usage.Users(ctx, of) {
		if err != nil {
			return nil, false, err
		}
		if len(ids) == mostUsers {
			return ids, true, nil
		}
		ids = append(ids, id)
	}
	return ids, false, nil
}

// regionCreate is the body of a registration.
type regionCreate struct {
	ID          string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
	Tenants     tenants           `json:"tenants"`
	Kubeconfig  string            `json:"kubeconfig"` // base64
}

// regionEdit is what a merge patch of a region is applied to.
type regionEdit struct {
	Owner       string            `json:"cloud_owner,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Tenants     tenants           `json:"tenants,omitempty"`
	Kubeconfig  string            `json:"kubeconfig,omitempty"` // base64; empty: as it was
}

func (a *API) createRegion(w http.ResponseWriter, r *http.Request) error {
	in, key, err := a.decodeRegion(r)
	if err != nil {
		return err
	}
	kubeconfig, err := decodeKubeconfig(in.Kubeconfig)
	if err != nil {
		return err
	}
	made, err := a.cfg.Regions.Register(r.Context(), nf.Region{
		ID: in.ID, Owner: in.Owner, Description: in.Description, Labels: in.Labels, Tenants: in.Tenants, Kubeconfig: kubeconfig,
		Request: key,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", regionPath(made.ID))
	return northbound.Answer(w, http.StatusCreated, fromRegion(made))
}

func (a *API) decodeRegion(r *http.Request) (regionCreate, nf.RequestKey, error) {
	if !isForm(r) {
		return read[regionCreate](a, r)
	}
	document, err := regionForm(r)
	if err != nil {
		return regionCreate{}, nf.RequestKey{}, err
	}
	return decode[regionCreate](a, r, document)
}

func decodeKubeconfig(text string) (nf.Secret, error) {
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		// The cause quotes nothing, but where a secret stops being base64 is
		// nobody's business either.
		return nil, invalid("kubeconfig", "is not base64")
	}
	return content, nil
}

func (a *API) listRegions(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	all, err := a.cfg.Regions.Regions(ctx)
	if err != nil {
		return err
	}
	labels, query := labelFilter(r), r.URL.Query()
	show := func(g nf.Region) region { return a.show(ctx, g) }
	page := paginate(r, all, func(g nf.Region) string { return g.ID }, func(g nf.Region) bool {
		return labels(g.Labels) && (!query.Has("condition") || query.Get("condition") == string(show(g).State.Condition))
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []region `json:"cloud_regions"`
		Next  string   `json:"next,omitempty"`
	}{each(page.items, show), page.next})
}

func (a *API) getRegion(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Regions.Region(r.Context(), mux.Vars(r)["cloud_region_id"])
	if err != nil {
		return err
	}
	shown := a.show(r.Context(), found)
	if shown.VNFInstances, shown.More, err = a.users(r.Context(), nf.Holding{Region: found.ID}); err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, shown)
}

func (a *API) updateRegion(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[patch](r)
	if err != nil {
		return err
	}
	changed, err := a.cfg.Regions.UpdateRegion(r.Context(), mux.Vars(r)["cloud_region_id"], func(g *nf.Region) error {
		edit, err := apply(change, regionEdit{Owner: g.Owner, Description: g.Description, Labels: g.Labels, Tenants: g.Tenants})
		if err != nil {
			return err
		}
		if edit.Kubeconfig != "" {
			if g.Kubeconfig, err = decodeKubeconfig(edit.Kubeconfig); err != nil {
				return err
			}
		}
		g.Owner, g.Description, g.Labels, g.Tenants = edit.Owner, edit.Description, edit.Labels, edit.Tenants
		return nil
	})
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromRegion(changed))
}

func (a *API) deleteRegion(w http.ResponseWriter, r *http.Request) error {
	if err := a.cfg.Regions.RemoveRegion(r.Context(), mux.Vars(r)["cloud_region_id"]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
