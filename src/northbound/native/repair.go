package native

import (
	"context"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Repairs is what the API asks for operations that failed and were kept. Both
// return an operation of its own, which goes on without the caller; nf.Conflict
// when there is nothing to repair, nf.Busy while another operation runs.
type Repairs interface {
	// Retry does the same once more.
	Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	// Undo takes back what the operation did.
	Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
}

func (a *API) retryOperation(w http.ResponseWriter, r *http.Request) error {
	return a.repair(w, r, a.cfg.Repairs.Retry)
}

func (a *API) undoOperation(w http.ResponseWriter, r *http.Request) error {
	return a.repair(w, r, a.cfg.Repairs.Undo)
}

// repair begins an operation, and answers with it when it has come as far as a
// request for the change itself would wait.
func (a *API) repair(w http.ResponseWriter, r *http.Request, begin func(context.Context, string, nf.Options) (nf.Operation, error)) error {
	body, key, err := readIfAny[manner](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, body, key)
	if err != nil {
		return err
	}
	op, err := begin(r.Context(), mux.Vars(r)["operation_id"], opts)
	if err != nil {
		return err
	}
	arrived := applied
	if op.Verb == nf.Terminate {
		arrived = ended
	}
	op, done, err := a.await(w, r, op, arrived)
	if err != nil {
		return refuseOperation(w, r, op, err)
	}
	status := http.StatusOK
	if !done {
		status = http.StatusAccepted
	}
	w.Header().Set("Location", northbound.OperationPath(op.ID))
	return northbound.Answer(w, status, fromOperation(op))
}
