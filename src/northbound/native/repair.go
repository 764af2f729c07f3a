package native

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Repairs retries and undoes operations that failed without being undone. Retry and
// Undo return a new operation that continues without the caller. All methods return
// nf.Conflict if there is nothing to repair, and nf.Busy if another operation
// is running.
type Repairs interface {
	// Retry runs the same operation again.
	Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	// Undo undoes the changes of the operation.
	Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	// PreviewRetry returns what Retry would do, or its error.
	PreviewRetry(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error)
	// PreviewUndo returns what Undo would do, or its error.
	PreviewUndo(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error)
}

// remedy is a kind of repair, and its dry run.
type remedy struct {
	begin   func(context.Context, string, nf.Options) (nf.Operation, error)
	preview func(context.Context, string, nf.Options) (nf.Preview, error)
}

func (ops operations) retry(w http.ResponseWriter, r *http.Request) error {
	return ops.repair(w, r, remedy{ops.repairs.Retry, ops.repairs.PreviewRetry})
}

func (ops operations) undo(w http.ResponseWriter, r *http.Request) error {
	return ops.repair(w, r, remedy{ops.repairs.Undo, ops.repairs.PreviewUndo})
}

// repair starts an operation and waits for it as a request for the original
// change would. It responds with the operation.
func (ops operations) repair(w http.ResponseWriter, r *http.Request, by remedy) error {
	_, opts, err := readWith(ops.run, r, readIfAny[wire.Execution])
	if err != nil {
		return err
	}
	id := mux.Vars(r)["operation_id"]
	if dryRun(r) {
		p, err := by.preview(r.Context(), id, opts)
		if err != nil {
			return ops.irreparable(r, id, err)
		}
		return northbound.Answer(w, http.StatusOK, wire.PreviewOf(p))
	}
	op, err := by.begin(r.Context(), id, opts)
	if err != nil {
		return ops.irreparable(r, id, err)
	}
	arrived := northbound.Applied
	if op.Verb == nf.Terminate {
		arrived = northbound.Ended
	}
	op, done, err := ops.run.await(w, r, op, arrived)
	if err != nil {
		return instanceReference(op).refuse(w, r, err)
	}
	status := http.StatusOK
	if !done {
		status = http.StatusAccepted
	}
	w.Header().Set("Location", wire.OperationPath(op.ID))
	return northbound.Answer(w, status, wire.OperationOf(op))
}

// irreparable returns nf.Unsupported instead of nf.NotFound if the operation is
// not one of a VNF instance.
func (ops operations) irreparable(r *http.Request, id string, err error) error {
	if nf.KindOf(err) != nf.NotFound {
		return err
	}
	all, failed := ops.ledgers.of(r)
	if failed != nil {
		return err
	}
	e, failed := all.get(r.Context(), id)
	if failed != nil || e.Subject.Kind == nf.InstanceSubject {
		return err
	}
	return nf.E(nf.Unsupported, "repair", "operation "+id, fmt.Errorf("it is an operation of %s; repeat the request that started it", e.Subject))
}
