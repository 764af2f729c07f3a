package native

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// History is what the API asks of what the VNF instances were.
type History interface {
	// Revisions returns the kept revisions of an instance, ordered by number.
	Revisions(ctx context.Context, id string) ([]nf.Revision, error)
	// Revision returns a revision of an instance, or nf.NotFound.
	Revision(ctx context.Context, id string, number int) (nf.Revision, error)
	// Rollback accepts the return to a revision; nf.Busy while another operation
	// runs.
	Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error)
	// PreviewRollback tells what Rollback would do, or fails as it would.
	PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error)
}

// revision is a revision of an instance as clients see it.
type revision struct {
	Number            int               `json:"number"`
	InForce           bool              `json:"in_force"`
	Restores          int               `json:"restores,omitempty"`
	Package           string            `json:"csar_id"`
	PackageDigest     string            `json:"package_digest"`
	Description       string            `json:"vnf_instance_description,omitempty"`
	Parameters        map[string]any    `json:"parameters,omitempty"`
	OOFParameters     []map[string]any  `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any    `json:"network_parameters,omitempty"`
	Overrides         map[string]string `json:"set,omitempty"`
	Amendments        []amendment       `json:"amendments,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Operation         string            `json:"operation_id"`
	CreatedAt         time.Time         `json:"created_at"`
}

// fromRevision returns a revision of an instance as it may be shown.
func fromRevision(r nf.Revision, in nf.Instance) revision {
	shown := r.Inputs.Mask(r.Sensitive)
	return revision{
		Number: r.Number, InForce: r.Number == in.Revision, Restores: r.Restores,
		Package: r.Package, PackageDigest: r.PackageDigest, Description: r.Description,
		Parameters: shown.Parameters, OOFParameters: shown.OOF, NetworkParameters: shown.Network, Overrides: shown.Overrides,
		Amendments: fromAmendments(r.Amendments, r.Sensitive),
		Labels:     r.Labels, Operation: r.Operation, CreatedAt: r.Created,
	}
}

// rollback is the body of a request to return to a revision.
type rollback struct {
	manner

	Revision int `json:"revision"`
}

func (a *API) listRevisions(w http.ResponseWriter, r *http.Request) error {
	in, err := a.cfg.Instances.Instance(r.Context(), mux.Vars(r)["vnf_id"])
	if err != nil {
		return err
	}
	all, err := a.cfg.History.Revisions(r.Context(), in.ID)
	if err != nil {
		return err
	}
	key := func(rev nf.Revision) string { return fmt.Sprintf("%010d", rev.Number) } // as long as the largest that a request may name
	page := paginate(r, all, key, func(nf.Revision) bool { return true })
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []revision `json:"revisions"`
		Next  string     `json:"next,omitempty"`
	}{each(page.items, func(rev nf.Revision) revision { return fromRevision(rev, in) }), page.next})
}

func (a *API) getRevision(w http.ResponseWriter, r *http.Request) error {
	vars := mux.Vars(r)
	in, err := a.cfg.Instances.Instance(r.Context(), vars["vnf_id"])
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(vars["number"])
	if err != nil {
		return invalid("number", "must be an integer")
	}
	found, err := a.cfg.History.Revision(r.Context(), in.ID, number)
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromRevision(found, in))
}

func (a *API) rollBackInstance(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["vnf_id"]
	body, key, err := readIfAny[rollback](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, body.manner, key)
	if err != nil {
		return err
	}
	req := nf.RollbackRequest{Revision: body.Revision, Options: opts}
	if dryRun(r) {
		p, err := a.cfg.History.PreviewRollback(r.Context(), id, req)
		return answerPreview(w, p, err)
	}
	op, err := a.cfg.History.Rollback(r.Context(), id, req)
	if err != nil {
		return err
	}
	return a.answerApplied(w, r, op, http.StatusOK)
}
