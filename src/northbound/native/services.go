package native

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Services manages network services.
type Services interface {
	ServiceChanges
	ServicePreviews
	// Get returns a service, or nf.NotFound.
	Get(ctx context.Context, id string) (nf.NetworkService, error)
	// From yields the services, sorted by id.
	From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.NetworkService, error]
}

// ServiceChanges start operations on network services, which continue without the caller.
// They return nf.Busy if another operation of the service is running.
type ServiceChanges interface {
	// Create starts to create a service. It returns nf.Exists if its id is taken.
	Create(ctx context.Context, req nf.ServiceRequest) (nf.Operation, error)
	// Change starts to change a service.
	Change(ctx context.Context, id string, req nf.ServiceChangeRequest) (nf.Operation, error)
	// Terminate starts to terminate a service.
	Terminate(ctx context.Context, id string, opts nf.Options) (nf.Operation, error)
	// Undo starts to undo a failed operation. It returns nf.Conflict if there is none.
	Undo(ctx context.Context, id string, opts nf.Options) (nf.Operation, error)
}

// ServicePreviews return what an operation would do, or fail as it would.
type ServicePreviews interface {
	PreviewCreate(ctx context.Context, req nf.ServiceRequest) ([]nf.MemberPreview, error)
	PreviewChange(ctx context.Context, id string, req nf.ServiceChangeRequest) ([]nf.MemberPreview, error)
	PreviewTerminate(ctx context.Context, id string, opts nf.Options) ([]nf.MemberPreview, error)
}

// services serves network services.
type services struct {
	store      Services       // nil: none
	operations KindOperations // nil: none
	nsds       NSDs           // nil: none
	waiter     waiter
	trace      func(*http.Request) string
}

func (ss services) routes(on route) {
	const all, one = "/services", "/services/{service_id}"
	on(http.MethodPost, all, optional(ss.missing("create"), ss.create))
	on(http.MethodGet, all, optional(ss.missing("list"), ss.list))
	on(http.MethodGet, one, optional(ss.missing("get"), ss.get))
	on(http.MethodPatch, one, optional(ss.missing("change"), ss.update))
	on(http.MethodDelete, one, optional(ss.missing("terminate"), ss.terminate))
	on(http.MethodPost, one+"/undo", optional(ss.missing("undo"), ss.undo))
}

// missing returns nf.NotFound if there are no network services.
func (ss services) missing(op string) error {
	if ss.store != nil && ss.operations != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, "services", errors.New("network services are not enabled"))
}

func (ss services) create(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[wire.ServiceCreate](r)
	if err != nil {
		return err
	}
	opts, err := ss.options(r, body.ServiceExecution, key)
	if err != nil {
		return err
	}
	req := nf.ServiceRequest{Service: nf.NetworkService{ID: body.ID, Project: body.Project}, Options: opts}
	edit, err := ss.described(r.Context(), body.Project, body.ServiceEdit)
	if err != nil {
		return err
	}
	if err := editService(&req.Service, edit); err != nil {
		return err
	}
	if dryRun(r) {
		p, err := ss.store.PreviewCreate(r.Context(), req)
		return respond(w, p, err, wire.ServicePreviewOf)
	}
	op, err := ss.store.Create(r.Context(), req)
	if err != nil {
		return err
	}
	return ss.answer(w, r, op, http.StatusCreated)
}

func (ss services) list(w http.ResponseWriter, r *http.Request) error {
	labels, err := selectorOf(r)
	if err != nil {
		return err
	}
	where := append(labels.equal, wanted(r, nf.AttributeState, nf.AttributeProject)...)
	page, err := paginateFrom(r, where, func(from nf.Cursor) iter.Seq2[nf.NetworkService, error] {
		return kept(ss.store.From(r.Context(), from), func(s nf.NetworkService) bool { return labels.matches(s.Labels) })
	}, func(s nf.NetworkService) string { return s.ID })
	if err != nil {
		return err
	}
	return answerPage(w, "services", page, wire.ServiceOf)
}

func (ss services) get(w http.ResponseWriter, r *http.Request) error {
	found, err := ss.store.Get(r.Context(), mux.Vars(r)["service_id"])
	return respond(w, found, err, wire.ServiceOf)
}

func (ss services) update(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["service_id"]
	change, key, err := read[patch](r)
	if err != nil {
		return err
	}
	given, err := apply(change, wire.ServicePatch{})
	if err != nil {
		return err
	}
	if change, err = ss.describedPatch(r.Context(), id, change, given.ServiceEdit); err != nil {
		return err
	}
	req := nf.ServiceChangeRequest{Edit: func(s *nf.NetworkService) error { return patchService(change, s) }}
	if req.Options, err = ss.options(r, given.ServiceExecution, key); err != nil {
		return err
	}
	if dryRun(r) {
		p, err := ss.store.PreviewChange(r.Context(), id, req)
		return respond(w, p, err, wire.ServicePreviewOf)
	}
	op, err := ss.store.Change(r.Context(), id, req)
	if err != nil {
		return err
	}
	return ss.answer(w, r, op, http.StatusOK)
}

func (ss services) undo(w http.ResponseWriter, r *http.Request) error {
	body, key, err := readIfAny[wire.ServiceUndo](r)
	if err != nil {
		return err
	}
	opts, err := ss.options(r, wire.ServiceExecution{Timeout: body.Timeout}, key)
	if err != nil {
		return err
	}
	op, err := ss.store.Undo(r.Context(), mux.Vars(r)["service_id"], opts)
	if err != nil {
		return err
	}
	return ss.answer(w, r, op, http.StatusOK)
}

func (ss services) terminate(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["service_id"]
	key, err := northbound.RequestKey(r, nil)
	if err != nil {
		return err
	}
	opts, err := ss.options(r, wire.ServiceExecution{Timeout: executionOptionsOf(r.URL.Query()).Timeout}, key)
	if err != nil {
		return err
	}
	if dryRun(r) {
		p, err := ss.store.PreviewTerminate(r.Context(), id, opts)
		return respond(w, p, err, wire.ServicePreviewOf)
	}
	op, err := ss.store.Terminate(r.Context(), id, opts)
	if err != nil {
		return err
	}
	op, done, err := ss.waiter.ended(w, r, ss.operations, sharedReference(op), op)
	switch {
	case err != nil:
		return sharedReference(op).refuse(w, r, err)
	case !done:
		return northbound.Answer(w, http.StatusAccepted, wire.SubjectOperationOf(op))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// options returns the options of a request.
func (ss services) options(r *http.Request, e wire.ServiceExecution, key nf.RequestKey) (nf.Options, error) {
	timeout, err := duration(e.Timeout)
	return nf.Options{OnFailure: e.OnFailure, Timeout: timeout, Key: key, Trace: ss.trace(r)}, err
}

// answer waits for an operation, and responds with the service. The status is the given
// one, or 202 if the wait ends before the operation. After an operation that has deleted
// the service, it is 204.
func (ss services) answer(w http.ResponseWriter, r *http.Request, op nf.Operation, status int) error {
	op, done, err := ss.waiter.ended(w, r, ss.operations, sharedReference(op), op)
	if err != nil {
		return sharedReference(op).refuse(w, r, err)
	}
	// The wait may have ended because the process is stopping; the client still gets a
	// response.
	there, err := ss.store.Get(context.WithoutCancel(r.Context()), op.Subject.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound && err != nil && done:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return sharedReference(op).refuse(w, r, err)
	case !done:
		status = http.StatusAccepted
	case status == http.StatusCreated:
		w.Header().Set("Location", wire.ServicePath(there.ID))
	}
	out := wire.ServiceOf(there)
	out.Operation, out.Links["operation"] = op.ID, wire.OperationPath(op.ID)
	return northbound.Answer(w, status, out)
}

// editService replaces the fields of a service that a request may change.
func editService(s *nf.NetworkService, e wire.ServiceEdit) error {
	s.Description, s.Labels, s.Content = e.Description, e.Labels, nf.ServiceContent{}
	for _, n := range e.Networks {
		s.Content.Networks = append(s.Content.Networks, nf.ServiceNetwork{Name: n.Name, Creation: nf.Creation{Driver: n.Driver, Spec: n.Spec, Keep: n.Keep}})
	}
	for i, m := range e.Members {
		added, err := memberOf(fmt.Sprintf("members[%d].", i), m)
		if err != nil {
			return err
		}
		s.Content.Members = append(s.Content.Members, added)
	}
	return nil
}

func memberOf(field string, m wire.ServiceMemberAdd) (nf.ServiceMember, error) {
	out := nf.ServiceMember{Name: m.Name, Group: m.Group, Region: m.Region, Placement: m.Placement.Domain(), Namespace: m.Namespace, Instance: m.VNFName, Spec: nf.Spec{Release: m.Release}}
	enter(&out.Spec, m.InstanceEdit)
	for name, values := range map[string]any{
		"parameters": out.Spec.Inputs.Parameters, "oof_parameters": out.Spec.Inputs.OOF, "network_parameters": out.Spec.Inputs.Network, "set": texts(out.Spec.Inputs.Overrides),
	} {
		if err := refuseMask(field+name, values); err != nil {
			return out, err
		}
	}
	return out, nil
}

// patchService applies a merge patch to a service. A list that it has replaces the whole
// one: members of a service that the patch does not have stay.
func patchService(change patch, s *nf.NetworkService) error {
	present := wire.ServiceEdit{Description: s.Description, Labels: s.Labels}
	edit, err := apply(change, present)
	if err != nil {
		return err
	}
	before := s.Content
	if err := editService(s, edit); err != nil {
		return err
	}
	if _, given := change["networks"]; !given {
		s.Content.Networks = before.Networks
	}
	if _, given := change["members"]; !given {
		s.Content.Members = before.Members
	}
	return nil
}
