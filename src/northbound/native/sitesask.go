package native

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// sites returns who looks after sites, or nf.NotFound when nobody does.
func (a *API) sites(op string) (Sites, SiteOperations, error) {
	if a.cfg.Sites == nil || a.cfg.SiteOperations == nil {
		return nil, nil, nf.E(nf.NotFound, op, "sites", errors.New("this service looks after no sites"))
	}
	return a.cfg.Sites, a.cfg.SiteOperations, nil
}

func (a *API) createSite(w http.ResponseWriter, r *http.Request) error {
	sites, _, err := a.sites("build")
	if err != nil {
		return err
	}
	body, key, err := read[siteCreate](a, r)
	if err != nil {
		return err
	}
	req, err := body.request(key)
	if err != nil {
		return err
	}
	req.Trace = a.cfg.Trace(r)
	op, err := sites.CreateSite(r.Context(), req)
	if err != nil {
		return err
	}
	return a.answerSite(w, r, op, http.StatusCreated)
}

func (a *API) listSites(w http.ResponseWriter, r *http.Request) error {
	sites, _, err := a.sites("list")
	if err != nil {
		return err
	}
	all, err := sites.Sites(r.Context())
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := paginate(r, all, func(s nf.Site) string { return s.ID }, func(s nf.Site) bool {
		return (!query.Has("state") || query.Get("state") == string(s.State)) &&
			(!query.Has("project") || query.Get("project") == nf.ProjectOf(s.Project))
	})
	page.link(w, r)
	return northbound.Answer(w, http.StatusOK, struct {
		Items []siteView `json:"sites"`
		Next  string     `json:"next,omitempty"`
	}{each(page.items, fromSite), page.next})
}

func (a *API) getSite(w http.ResponseWriter, r *http.Request) error {
	sites, _, err := a.sites("get")
	if err != nil {
		return err
	}
	found, err := sites.Site(r.Context(), mux.Vars(r)["site_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, fromSite(found))
}

func (a *API) updateSite(w http.ResponseWriter, r *http.Request) error {
	sites, _, err := a.sites("change")
	if err != nil {
		return err
	}
	body, key, err := read[patch](a, r)
	if err != nil {
		return err
	}
	req, err := siteChange(body, key)
	if err != nil {
		return err
	}
	req.Trace = a.cfg.Trace(r)
	op, err := sites.ChangeSite(r.Context(), mux.Vars(r)["site_id"], req)
	if err != nil {
		return err
	}
	return a.answerSite(w, r, op, http.StatusOK)
}

func (a *API) deleteSite(w http.ResponseWriter, r *http.Request) error {
	sites, _, err := a.sites("remove")
	if err != nil {
		return err
	}
	key, err := a.key(r, nil)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	req := nf.SiteRemoveRequest{KeepHosts: query.Get("keep_hosts") == "true", Key: key, Trace: a.cfg.Trace(r)}
	if query.Has("timeout") {
		if req.Timeout, err = duration(query.Get("timeout")); err != nil {
			return err
		}
	}
	op, err := sites.RemoveSite(r.Context(), mux.Vars(r)["site_id"], req, query.Get("cascade") == "true")
	if err != nil {
		return err
	}
	op, done, err := a.awaitSite(w, r, op)
	if err != nil {
		return refuseSite(w, r, op, err)
	}
	if !done {
		return northbound.Answer(w, http.StatusAccepted, fromSiteOperation(op))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// awaitSite waits for an operation's end, as long as the client wants. When the
// wait is over first, the result is not done, and the headers name the operation:
// the request's end never ends the operation.
func (a *API) awaitSite(w http.ResponseWriter, r *http.Request, op nf.SiteOperation) (nf.SiteOperation, bool, error) {
	want := preferenceOf(r, a.cfg.Wait)
	ctx, cancel := context.WithTimeout(r.Context(), want.wait)
	defer cancel()
	for u, err := range a.followSite(ctx, op) {
		if err != nil {
			return op, false, &nf.Error{Kind: nf.KindOf(err), Op: "wait for", Subject: "operation " + op.ID, Operation: op.ID, Err: err}
		}
		if u.Operation == nil {
			continue
		}
		if op = *u.Operation; op.State.Final() {
			return op, true, siteFailure(op)
		}
	}
	w.Header().Set("Location", siteOperationPath(op.Site, op.ID))
	if want.applied != "" {
		w.Header().Set("Preference-Applied", want.applied)
	}
	return op, false, nil
}

// followSite yields what is new of an operation, but no events, until it is final
// or the context ends; the latter is no error, whatever it interrupts.
func (a *API) followSite(ctx context.Context, op nf.SiteOperation) iter.Seq2[nf.SiteUpdate, error] {
	return func(yield func(nf.SiteUpdate, error) bool) {
		if ctx.Err() != nil {
			return
		}
		for u, err := range a.cfg.SiteOperations.FollowSite(ctx, op.Site, op.ID, lastEvent) {
			if err != nil && ctx.Err() != nil || !yield(u, err) {
				return
			}
		}
	}
}

// lastEvent is after every event there can be.
const lastEvent = 1 << 30

// siteFailure is the error that an operation ended with; nil when it succeeded.
func siteFailure(op nf.SiteOperation) error {
	if op.State == nf.Succeeded {
		return nil
	}
	f := op.Failure
	if f == nil {
		f = &nf.Failure{Kind: nf.Failed, Message: "the operation " + string(op.State)}
	}
	return &nf.Error{
		Kind: f.Kind, Op: string(op.Verb), Subject: "site " + op.Site, Reason: f.Reason, Operation: op.ID, Err: recorded{f.Message, f.Violations},
	}
}

// refuseSite answers for an operation that went wrong, or that cannot be waited
// for.
func refuseSite(w http.ResponseWriter, r *http.Request, op nf.SiteOperation, err error) error {
	northbound.Refuse(w, r, err, func(p *northbound.Problem) {
		p.Operation, p.OperationURL = op.ID, siteOperationPath(op.Site, op.ID)
		if _, ok := errors.AsType[recorded](err); ok {
			p.Detail = err.Error() // everybody can read it in the operation
		}
	})
	return nil
}

// answerSite waits for an operation, and answers with the site: with the status
// then, and 202 when the wait is over first.
func (a *API) answerSite(w http.ResponseWriter, r *http.Request, op nf.SiteOperation, status int) error {
	op, done, err := a.awaitSite(w, r, op)
	if err != nil {
		return refuseSite(w, r, op, err)
	}
	// The wait may have ended because the service is stopping: its client still
	// gets an answer.
	in, err := a.cfg.Sites.Site(context.WithoutCancel(r.Context()), op.Site)
	if err != nil {
		return refuseSite(w, r, op, err)
	}
	switch {
	case !done:
		status = http.StatusAccepted
	case status == http.StatusCreated:
		w.Header().Set("Location", sitePath(in.ID))
	}
	out := fromSite(in)
	out.Operation, out.Links["operation"] = op.ID, siteOperationPath(op.Site, op.ID)
	return northbound.Answer(w, status, out)
}
