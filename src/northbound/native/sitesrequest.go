package native

import (
	"context"
	"errors"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// sites serves sites and their operations.
type sites struct {
	store      Sites          // nil: none
	operations KindOperations // nil: none
	paths      operationPaths
	waiter     waiter
	trace      func(*http.Request) string
}

func (ss sites) routes(on route) {
	const all, one = "/sites", "/sites/{site_id}"
	on(http.MethodPost, all, optional(ss.missing("build"), ss.create))
	on(http.MethodGet, all, optional(ss.missing("list"), ss.list))
	on(http.MethodGet, one, optional(ss.missing("get"), ss.get))
	on(http.MethodPatch, one, optional(ss.missing("change"), ss.update))
	on(http.MethodDelete, one, optional(ss.missing("remove"), ss.remove))
	ss.paths.routes(on, one+"/operations", ss.ledger)
}

// missing returns nf.NotFound if there are no sites.
func (ss sites) missing(op string) error {
	if ss.store != nil && ss.operations != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, "sites", errors.New("sites are not enabled"))
}

func (ss sites) create(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[wire.SiteCreate](r)
	if err != nil {
		return err
	}
	req, err := siteRequest(body, key)
	if err != nil {
		return err
	}
	req.Trace = ss.trace(r)
	op, err := ss.store.CreateSite(r.Context(), req)
	if err != nil {
		return err
	}
	return ss.answer(w, r, op, http.StatusCreated)
}

func (ss sites) list(w http.ResponseWriter, r *http.Request) error {
	all, err := ss.store.Sites(r.Context())
	if err != nil {
		return err
	}
	where := wanted(r, nf.AttributeState, nf.AttributeProject)
	page := paginate(r, all, func(s nf.Site) string { return s.ID }, func(s nf.Site) bool { return s.Summary().Has(where) })
	return answerPage(w, "sites", page, wire.SiteOf)
}

func (ss sites) get(w http.ResponseWriter, r *http.Request) error {
	found, err := ss.store.Site(r.Context(), mux.Vars(r)["site_id"])
	return respond(w, found, err, wire.SiteOf)
}

func (ss sites) update(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[patch](r)
	if err != nil {
		return err
	}
	req, err := siteChange(body, key)
	if err != nil {
		return err
	}
	req.Trace = ss.trace(r)
	op, err := ss.store.ChangeSite(r.Context(), mux.Vars(r)["site_id"], req)
	if err != nil {
		return err
	}
	return ss.answer(w, r, op, http.StatusOK)
}

func (ss sites) remove(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	keep, cascade := query.Get("keep_hosts") == "true", query.Get("cascade") == "true"
	key, err := northbound.RequestKey(r, chosen([2]bool{keep, cascade}))
	if err != nil {
		return err
	}
	req := nf.SiteRemoveRequest{KeepHosts: keep, Key: key, Trace: ss.trace(r)}
	if req.Timeout, err = duration(executionOptionsOf(query).Timeout); err != nil {
		return err
	}
	op, err := ss.store.RemoveSite(r.Context(), mux.Vars(r)["site_id"], req, cascade)
	if err != nil {
		return err
	}
	op, done, err := ss.waiter.ended(w, r, ss.operations, siteReference(op), op)
	if err != nil {
		return siteReference(op).refuse(w, r, err)
	}
	if !done {
		return northbound.Answer(w, http.StatusAccepted, wire.SubjectOperationOf(op))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ledger returns the operations of the request's site.
func (ss sites) ledger(r *http.Request) (ledger, error) {
	return subjectLedger{ss.operations, mux.Vars(r)["site_id"]}, ss.missing("get")
}

// answer waits for an operation and responds with the site. The status is
// the given one, or 202 if the wait ends before the operation.
func (ss sites) answer(w http.ResponseWriter, r *http.Request, op nf.Operation, status int) error {
	op, done, err := ss.waiter.ended(w, r, ss.operations, siteReference(op), op)
	if err != nil {
		return siteReference(op).refuse(w, r, err)
	}
	// The wait may have ended because the service is stopping; the client still
	// gets a response.
	in, err := ss.store.Site(context.WithoutCancel(r.Context()), op.Subject.ID)
	if err != nil {
		return siteReference(op).refuse(w, r, err)
	}
	switch {
	case !done:
		status = http.StatusAccepted
	case status == http.StatusCreated:
		w.Header().Set("Location", wire.SitePath(in.ID))
	}
	out := wire.SiteOf(in)
	out.Operation, out.Links["operation"] = op.ID, wire.SiteOperationPath(op.Subject.ID, op.ID)
	return northbound.Answer(w, status, out)
}
