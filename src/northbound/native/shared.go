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

// Networks manages virtual networks. The methods that change a network return an
// operation that continues without the caller, or nf.Busy if another operation of the
// network is running.
type Networks interface {
	// CreateNetwork starts to create a network. If there is an equal one, it adds a
	// holder, and the id of the operation is empty unless the network is still being
	// created. It returns nf.Exists if there is another one of the name.
	CreateNetwork(ctx context.Context, req nf.SharedRequest) (nf.Operation, error)
	// ChangeNetwork starts to change a network.
	ChangeNetwork(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error)
	// ReleaseNetwork ends a hold. The last one starts the removal; otherwise the id of
	// the operation is empty.
	ReleaseNetwork(ctx context.Context, id string, req nf.SharedReleaseRequest) (nf.Operation, error)
	NetworkRecords
}

// NetworkRecords reads networks.
type NetworkRecords interface {
	// Network returns a network, or nf.NotFound.
	Network(ctx context.Context, id string) (nf.Network, error)
	// NetworksFrom yields the networks, sorted by id.
	NetworksFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error]
	// NetworkUsers returns the number of holders of a network, and those that the caller
	// may see.
	NetworkUsers(ctx context.Context, id string) (count int, users []nf.Subject, err error)
}

// networks serves virtual networks.
type networks struct {
	store      Networks       // nil: none
	operations KindOperations // nil: none
	waiter     waiter
	trace      func(*http.Request) string
}

func (ns networks) routes(on route) {
	const all, one = "/networks", "/networks/{network_id}"
	on(http.MethodPost, all, optional(ns.missing("create"), ns.create))
	on(http.MethodGet, all, optional(ns.missing("list"), ns.list))
	on(http.MethodGet, one, optional(ns.missing("get"), ns.get))
	on(http.MethodPatch, one, optional(ns.missing("change"), ns.update))
	on(http.MethodDelete, one, optional(ns.missing("release"), ns.release))
}

// missing returns nf.NotFound if there are no networks.
func (ns networks) missing(op string) error {
	if ns.store != nil && ns.operations != nil {
		return nil
	}
	return nf.E(nf.NotFound, op, "networks", errors.New("networks are not enabled"))
}

func (ns networks) create(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[wire.NetworkCreate](r)
	if err != nil {
		return err
	}
	timeout, err := duration(body.Timeout)
	if err != nil {
		return err
	}
	n := nf.Network{Name: body.Name, Region: body.Region, Project: body.Project, Driver: body.Driver}
	editNetwork(&n, body.NetworkEdit)
	op, err := ns.store.CreateNetwork(r.Context(), nf.SharedRequest{Resource: n, Holder: body.Holder, Timeout: timeout, Key: key, Trace: ns.trace(r)})
	if err != nil {
		return err
	}
	return ns.answer(w, r, op, nf.SharedID(n.Region, n.Name), http.StatusCreated)
}

func editNetwork(n *nf.Network, e wire.NetworkEdit) {
	n.Spec, n.Keep, n.Description, n.Labels = e.Spec, e.Keep, e.Description, e.Labels
}

func (ns networks) list(w http.ResponseWriter, r *http.Request) error {
	where := wanted(r, nf.AttributeRegion, nf.AttributeDriver, nf.AttributeState, nf.AttributeProject)
	page, err := paginateFrom(r, where, func(c nf.Cursor) iter.Seq2[nf.Network, error] { return ns.store.NetworksFrom(r.Context(), c) },
		func(n nf.Network) string { return n.ID })
	if err != nil {
		return err
	}
	return answerPage(w, "networks", page, wire.NetworkOf)
}

func (ns networks) get(w http.ResponseWriter, r *http.Request) error {
	out, err := ns.show(r.Context(), mux.Vars(r)["network_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, out)
}

// show returns a network with its users.
func (ns networks) show(ctx context.Context, id string) (wire.Network, error) {
	n, err := ns.store.Network(ctx, id)
	if err != nil {
		return wire.Network{}, err
	}
	count, users, err := ns.store.NetworkUsers(ctx, id)
	return wire.NetworkOf(n).With(count, users), err
}

func (ns networks) update(w http.ResponseWriter, r *http.Request) error {
	body, key, err := read[patch](r)
	if err != nil {
		return err
	}
	timeout, err := duration(executionOptionsOf(r.URL.Query()).Timeout)
	if err != nil {
		return err
	}
	id := mux.Vars(r)["network_id"]
	op, err := ns.store.ChangeNetwork(r.Context(), id, nf.SharedChangeRequest{Timeout: timeout, Key: key, Trace: ns.trace(r), Edit: func(n *nf.Network) error {
		edit, err := apply(body, wire.NetworkEdit{Spec: n.Spec, Keep: n.Keep, Description: n.Description, Labels: n.Labels})
		if err == nil {
			editNetwork(n, edit)
		}
		return err
	}})
	if err != nil {
		return err
	}
	return ns.answer(w, r, op, id, http.StatusOK)
}

func (ns networks) release(w http.ResponseWriter, r *http.Request) error {
	key, err := requestKey(r, nil)
	if err != nil {
		return err
	}
	query, id := r.URL.Query(), mux.Vars(r)["network_id"]
	req := nf.SharedReleaseRequest{Holder: query.Get("holder"), IfUnused: query.Get("if_unused") == "true", Key: key, Trace: ns.trace(r)}
	if req.Timeout, err = duration(executionOptionsOf(query).Timeout); err != nil {
		return err
	}
	op, err := ns.store.ReleaseNetwork(r.Context(), id, req)
	if err != nil {
		return err
	}
	if op.ID == "" {
		if _, err := ns.store.Network(r.Context(), id); nf.KindOf(err) != nf.NotFound || err == nil {
			return ns.answer(w, r, op, id, http.StatusOK)
		}
		w.WriteHeader(http.StatusNoContent) // another holder has removed it
		return nil
	}
	op, done, err := ns.waiter.ended(w, r, ns.operations, networkReference(op), op)
	switch {
	case err != nil:
		return networkReference(op).refuse(w, r, err)
	case !done:
		return northbound.Answer(w, http.StatusAccepted, wire.SubjectOperationOf(op))
	case op.Network.Used: // in the meantime
		return ns.answer(w, r, nf.Operation{}, id, http.StatusOK)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answer waits for an operation, if there is one, and responds with the network. The
// status is the given one, 200 without an operation, or 202 if the wait ends before the
// operation.
func (ns networks) answer(w http.ResponseWriter, r *http.Request, op nf.Operation, id string, status int) error {
	if op.ID == "" {
		status = http.StatusOK
	} else {
		ended, done, err := ns.waiter.ended(w, r, ns.operations, networkReference(op), op)
		if err != nil {
			return networkReference(op).refuse(w, r, err)
		}
		if op = ended; !done {
			status = http.StatusAccepted
		}
	}
	// The wait may have ended because the service is stopping; the client still gets a
	// response.
	out, err := ns.show(context.WithoutCancel(r.Context()), id)
	if err != nil && op.ID != "" {
		return networkReference(op).refuse(w, r, err)
	}
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		w.Header().Set("Location", wire.NetworkPath(id))
	}
	if op.ID != "" {
		out.Operation, out.Links["operation"] = op.ID, wire.OperationPath(op.ID)
	}
	return northbound.Answer(w, status, out)
}
