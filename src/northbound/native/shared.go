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

// Shared manages the resources of one kind that VNF instances share. The methods that
// change a resource return an operation that continues without the caller, or nf.Busy if
// another operation of the resource is running.
type Shared interface {
	// Create starts to create a resource. If there is an equal one, it adds a holder,
	// and the id of the operation is empty unless the resource is still being created.
	// It returns nf.Exists if there is another one of the name.
	Create(ctx context.Context, req nf.SharedRequest) (nf.Operation, error)
	// Change starts to change a resource.
	Change(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error)
	// PreviewChange returns what Change would do, or fails as it would.
	PreviewChange(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.SharedPreview, error)
	// Release ends a hold. The last one starts the removal; otherwise the id of the
	// operation is empty.
	Release(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error)
	SharedRecords
}

// SharedRecords reads shared resources.
type SharedRecords interface {
	// Get returns a resource, or nf.NotFound.
	Get(ctx context.Context, id string) (nf.Shared, error)
	// From yields the resources, sorted by id.
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Shared, error]
	// Users returns the number of holders of a resource, and those that the caller may
	// see.
	Users(ctx context.Context, id string) (count int, users []nf.Subject, err error)
}

// form is the form of one kind of shared resources in requests and responses.
type form struct {
	filters []string                                                       // attributes that lists select by
	path    func(id string) string                                         // of a resource
	read    func(r *http.Request) (nf.SharedRequest, any, error)           // the request to create one, and its timeout
	edit    func(change patch, s *nf.Shared) error                         // changes a resource by a merge patch
	item    func(s nf.Shared) any                                          // in a list
	show    func(ctx context.Context, s nf.Shared, use use, op string) any // with its users; op: the operation of the request, or empty
	used    func(op nf.Operation) bool                                     // whether the resource remains after a removal
}

// use is how many holders a resource has, and those that the caller may see.
type use struct {
	count int
	users []nf.Subject
}

// shared serves the shared resources of one kind.
type shared struct {
	noun       string // "network"; in the paths, too
	form       form
	store      Shared         // nil: none
	operations KindOperations // nil: none
	waiter     waiter
	trace      func(*http.Request) string
}

// of returns the resources with the noun that their paths have. The routes of an API
// are known without its configuration.
func (s shared) of(noun string) shared {
	s.noun = noun
	return s
}

func (s shared) routes(on route) {
	all := "/" + s.noun + "s"
	one := all + "/{" + s.noun + "_id}"
	on(http.MethodPost, all, optional(s.missing("create"), s.create))
	on(http.MethodGet, all, optional(s.missing("list"), s.list))
	on(http.MethodGet, one, optional(s.missing("get"), s.get))
	on(http.MethodPatch, one, optional(s.missing("change"), s.update))
	on(http.MethodDelete, one, optional(s.missing("release"), s.release))
}

// id returns the id of the resource in the path.
func (s shared) id(r *http.Request) string { return mux.Vars(r)[s.noun+"_id"] }

// missing returns nf.NotFound if there are no such resources.
func (s shared) missing(op string) error {
	if s.store != nil && s.operations != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, s.noun+"s", errors.New(s.noun+"s are not enabled"))
}

func (s shared) create(w http.ResponseWriter, r *http.Request) error {
	req, timeout, err := s.form.read(r)
	if err != nil {
		return err
	}
	if req.Timeout, err = duration(timeout); err != nil {
		return err
	}
	req.Trace = s.trace(r)
	op, err := s.store.Create(r.Context(), req)
	if err != nil {
		return err
	}
	return s.answer(w, r, op, nf.SharedID(req.Resource.Region, req.Resource.Name), http.StatusCreated)
}

func (s shared) list(w http.ResponseWriter, r *http.Request) error {
	where := wanted(r, s.form.filters...)
	page, err := paginateFrom(r, where, func(c nf.Cursor) iter.Seq2[nf.Shared, error] { return s.store.From(r.Context(), c) },
		func(there nf.Shared) string { return there.ID })
	if err != nil {
		return err
	}
	return answerPage(w, s.noun+"s", page, s.form.item)
}

func (s shared) get(w http.ResponseWriter, r *http.Request) error {
	out, err := s.show(r.Context(), s.id(r), "")
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, out)
}

// show returns a resource with its users. Op is the operation of the request, or empty.
func (s shared) show(ctx context.Context, id, op string) (any, error) {
	there, err := s.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	count, users, err := s.store.Users(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.form.show(ctx, there, use{count, users}, op), nil
}

func (s shared) update(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[patch](r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	timeout, err := duration(executionOptionsOf(query).Timeout)
	if err != nil {
		return err
	}
	req := nf.SharedChangeRequest{Restart: query.Get("restart") == "true", Timeout: timeout, Trace: s.trace(r), Edit: func(there *nf.Shared) error {
		return s.form.edit(body, there)
	}}
	if req.Key, err = keyWith(r, key, chosen(req.Restart)); err != nil {
		return err
	}
	if dryRun(r) {
		p, err := s.store.PreviewChange(r.Context(), s.id(r), req)
		return respond(w, p, err, wire.SharedPreviewOf)
	}
	op, err := s.store.Change(r.Context(), s.id(r), req)
	if err != nil {
		return err
	}
	return s.answer(w, r, op, s.id(r), http.StatusOK)
}

func (s shared) release(w http.ResponseWriter, r *http.Request) error {
	query, id := r.URL.Query(), s.id(r)
	req := nf.SharedReleaseRequest{Holder: query.Get("holder"), IfUnused: query.Get("if_unused") == "true", Trace: s.trace(r)}
	key, err := northbound.RequestKey(r, chosen(struct {
		Holder string
		Unused bool
	}{req.Holder, req.IfUnused}))
	if err != nil {
		return err
	}
	req.Key = key
	if req.Timeout, err = duration(executionOptionsOf(query).Timeout); err != nil {
		return err
	}
	op, err := s.store.Release(r.Context(), id, req)
	if err != nil {
		return err
	}
	if op.ID == "" {
		if _, err := s.store.Get(r.Context(), id); nf.KindOf(err) != nf.NotFound || err == nil {
			return s.answer(w, r, op, id, http.StatusOK)
		}
		w.WriteHeader(http.StatusNoContent) // another holder has removed it
		return nil
	}
	op, done, err := s.waiter.ended(w, r, s.operations, sharedReference(op), op)
	switch {
	case err != nil:
		return sharedReference(op).refuse(w, r, err)
	case !done:
		return northbound.Answer(w, http.StatusAccepted, wire.SubjectOperationOf(op))
	case s.form.used(op): // in the meantime
		return s.answer(w, r, nf.Operation{}, id, http.StatusOK)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answer waits for an operation, if there is one, and responds with the resource. The
// status is the given one, 200 without an operation, or 202 if the wait ends before the
// operation.
func (s shared) answer(w http.ResponseWriter, r *http.Request, op nf.Operation, id string, status int) error {
	if op.ID == "" {
		status = http.StatusOK
	} else {
		ended, done, err := s.waiter.ended(w, r, s.operations, sharedReference(op), op)
		if err != nil {
			return sharedReference(op).refuse(w, r, err)
		}
		if op = ended; !done {
			status = http.StatusAccepted
		}
	}
	// The wait may have ended because the service is stopping; the client still gets a
	// response.
	out, err := s.show(context.WithoutCancel(r.Context()), id, op.ID)
	if err != nil && op.ID != "" {
		return sharedReference(op).refuse(w, r, err)
	}
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		w.Header().Set("Location", s.form.path(id))
	}
	return northbound.Answer(w, status, out)
}
