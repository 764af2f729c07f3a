package native

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// History manages the revisions of VNF instances.
type History interface {
	// Revisions returns the stored revisions of an instance, sorted by number.
	Revisions(ctx context.Context, id string) ([]nf.Revision, error)
	// Revision returns a revision of an instance, or nf.NotFound.
	Revision(ctx context.Context, id string, number int) (nf.Revision, error)
	// Rollback starts a rollback to a revision. It returns nf.Busy if another
	// operation is running.
	Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error)
	// PreviewRollback returns what Rollback would do, or its error.
	PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error)
}

// revisions serves the revisions of VNF instances.
type revisions struct {
	instances Instances
	history   History
	run       runner
}

func (rs revisions) routes(on route) {
	const one = "/vnf_instances/{vnf_id}"
	on(http.MethodGet, one+"/revisions", rs.list)
	on(http.MethodGet, one+"/revisions/{number}", rs.get)
	on(http.MethodPost, one+"/rollback", rs.rollBack)
}

func (rs revisions) list(w http.ResponseWriter, r *http.Request) error {
	in, err := rs.instances.Instance(r.Context(), mux.Vars(r)["vnf_id"])
	if err != nil {
		return err
	}
	all, err := rs.history.Revisions(r.Context(), in.ID)
	if err != nil {
		return err
	}
	key := func(rev nf.Revision) string { return fmt.Sprintf("%010d", rev.Number) } // 10 digits hold the largest revision number that a request may use
	page := paginate(r, all, key, func(nf.Revision) bool { return true })
	return answerPage(w, "revisions", page, func(rev nf.Revision) wire.Revision { return wire.RevisionOf(rev, in).Listed() })
}

func (rs revisions) get(w http.ResponseWriter, r *http.Request) error {
	vars := mux.Vars(r)
	in, err := rs.instances.Instance(r.Context(), vars["vnf_id"])
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(vars["number"])
	if err != nil {
		return invalid("number", "must be an integer")
	}
	found, err := rs.history.Revision(r.Context(), in.ID, number)
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, wire.RevisionOf(found, in))
}

func (rs revisions) rollBack(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["vnf_id"]
	body, opts, err := readWith(rs.run, r, readIfAny[wire.Rollback])
	if err != nil {
		return err
	}
	req := nf.RollbackRequest{Revision: body.Revision, Options: opts}
	if dryRun(r) {
		p, err := rs.history.PreviewRollback(r.Context(), id, req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := rs.history.Rollback(r.Context(), id, req)
	if err != nil {
		return err
	}
	return rs.run.answerApplied(w, r, op, http.StatusOK)
}
