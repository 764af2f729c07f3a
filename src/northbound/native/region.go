package native

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Regions is what the API asks of the registered cloud regions.
type Regions interface {
	// Register probes a region and keeps it: nf.Exists, nf.Invalid, nf.Unreachable.
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

// region is a cloud region as clients see it. It has no place for a kubeconfig.
type region struct {
	ID           string            `json:"cloud_region_id"`
	Owner        string            `json:"cloud_owner"`
	Description  string            `json:"description,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Server       string            `json:"server"`
	Version      string            `json:"kubernetes_version"`
	APIs         []string          `json:"apis"`
	ProbedAt     time.Time         `json:"probed_at,omitzero"`
	VNFInstances []string          `json:"vnf_instances"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
}

func fromRegion(r nf.Region) region {
	return region{
		ID: r.ID, Owner: r.Owner, Description: r.Description, Labels: r.Labels,
		Server: r.Probe.Server, Version: r.Probe.Version, APIs: list(r.Probe.APIs), ProbedAt: r.Probe.Time,
		VNFInstances: list(r.Users), CreatedAt: r.Created, UpdatedAt: r.Updated,
	}
}

// regionCreate is the body of a registration.
type regionCreate struct {
	ID          string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
	Kubeconfig  string            `json:"kubeconfig"` // base64
}

// regionEdit is what a merge patch of a region is applied to.
type regionEdit struct {
	Owner       string            `json:"cloud_owner,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Kubeconfig  string            `json:"kubeconfig,omitempty"` // base64; empty: as it was
}

func (a *API) createRegion(w http.ResponseWriter, r *http.Request) error {
	in, err := decodeRegion(r)
	if err != nil {
		return err
	}
	kubeconfig, err := decodeKubeconfig(in.Kubeconfig)
	if err != nil {
		return err
	}
	made, err := a.cfg.Regions.Register(r.Context(), nf.Region{
		ID: in.ID, Owner: in.Owner, Description: in.Description, Labels: in.Labels, Kubeconfig: kubeconfig,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", regionPath(made.ID))
	return northbound.Answer(w, http.StatusCreated, fromRegion(made))
}

func decodeRegion(r *http.Request) (regionCreate, error) {
	if !isForm(r) {
		return northbound.Decode[regionCreate](r)
	}
	document, err := regionForm(r)
	if err != nil {
		return regionCreate{}, err
	}
	return northbound.DecodeDocument[regionCreate](r, document)
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
	all, err := a.cfg.Regions.Regions(r.Context())
	if err != nil {
		return err
	}
	labels := labelFilter(r)
	page := paginate(r, all, func(g nf.Region) string { return g.ID }, func(g nf.Region) bool { return labels(g.Labels) })
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []region `json:"cloud_regions"`
		Next  string   `json:"next,omitempty"`
	}{each(page.items, fromRegion), page.next})
}

func (a *API) getRegion(w http.ResponseWriter, r *http.Request) error {
	found, err := a.cfg.Regions.Region(r.Context(), mux.Vars(r)["cloud_region_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromRegion(found))
}

func (a *API) updateRegion(w http.ResponseWriter, r *http.Request) error {
	change, err := northbound.Decode[patch](r)
	if err != nil {
		return err
	}
	changed, err := a.cfg.Regions.UpdateRegion(r.Context(), mux.Vars(r)["cloud_region_id"], func(g *nf.Region) error {
		edit, err := apply(change, regionEdit{Owner: g.Owner, Description: g.Description, Labels: g.Labels})
		if err != nil {
			return err
		}
		if edit.Kubeconfig != "" {
			if g.Kubeconfig, err = decodeKubeconfig(edit.Kubeconfig); err != nil {
				return err
			}
		}
		g.Owner, g.Description, g.Labels = edit.Owner, edit.Description, edit.Labels
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
