package native

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Operations manages the operations of VNF instances.
type Operations interface {
	// Operation returns an operation, or nf.NotFound.
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// OperationsFrom yields the operations on an instance, or on all if the id is
	// empty, sorted by id, which is the order of their acceptance.
	OperationsFrom(ctx context.Context, instance string, from nf.Cursor) iter.Seq2[nf.Operation, error]
	// Changes returns the changes that an operation has made to objects so far.
	Changes(ctx context.Context, id string) ([]nf.Change, error)
	// Follow yields an operation, and yields it again after each change, until
	// it is final or the context ends.
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
	// Cancel cancels an operation. It returns nf.Conflict if the operation has
	// ended.
	Cancel(ctx context.Context, id string) (nf.Operation, error)
}

// instanceLedger is the operations of a VNF instance, or of all if the id is
// empty.
type instanceLedger struct {
	operations Operations
	instance   string
}

var _ ledger = instanceLedger{}

func (l instanceLedger) get(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.Operation(ctx, id)
	if err != nil {
		return entry{}, err
	}
	changes, err := l.operations.Changes(ctx, id)
	if err != nil {
		return entry{}, err
	}
	e := instanceEntry(op)
	e.document = func() any {
		out := wire.OperationOf(op)
		out.Changes = wire.List(changes, wire.ChangeOf)
		return out
	}
	return e, nil
}

func (l instanceLedger) list(ctx context.Context, from nf.Cursor) iter.Seq2[entry, error] {
	return entries(l.operations.OperationsFrom(ctx, l.instance, from), instanceEntry)
}

func (l instanceLedger) follow(ctx context.Context, id string, _ int) iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		for op, err := range l.operations.Follow(ctx, id) {
			if !yield(update{document: wire.OperationOf(op), counted: true, final: op.State.Final()}, err) {
				return
			}
		}
	}
}

func (l instanceLedger) cancel(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.Cancel(ctx, id)
	return instanceEntry(op), err
}

func instanceEntry(op nf.Operation) entry {
	return entry{op, func() any { return wire.OperationOf(op) }}
}

// operations serves the operations of all kinds, and repairs those of VNF
// instances.
type operations struct {
	paths   operationPaths
	ledgers ledgers
	repairs Repairs
	run     runner
}

func (ops operations) routes(on route) {
	const all = "/operations"
	ops.paths.routes(on, all, ops.ledgers.of)
	on(http.MethodPost, all+"/{operation_id}/retry", ops.retry)
	on(http.MethodPost, all+"/{operation_id}/undo", ops.undo)
}

// operationPaths serves operations below a path.
type operationPaths struct {
	heartbeat time.Duration
	logger    *slog.Logger
}

// routes adds the paths of the operations that from returns for a request.
func (ps operationPaths) routes(on route, path string, from func(*http.Request) (ledger, error)) {
	with := func(serve func(http.ResponseWriter, *http.Request, ledger) error) northbound.Handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			l, err := from(r)
			if err != nil {
				return err
			}
			return serve(w, r, l)
		}
	}
	on(http.MethodGet, path, with(ps.list))
	on(http.MethodGet, path+"/{operation_id}", with(ps.get))
	on(http.MethodGet, path+"/{operation_id}/events", with(ps.follow))
	on(http.MethodPost, path+"/{operation_id}/cancel", with(ps.cancel))
}

func (ps operationPaths) list(w http.ResponseWriter, r *http.Request, l ledger) error {
	page, err := paginateFrom(r, wanted(r, nf.AttributeState, nf.AttributeProject), func(from nf.Cursor) iter.Seq2[entry, error] {
		return l.list(r.Context(), from)
	}, entry.key)
	if err != nil {
		return err
	}
	return answerPage(w, "operations", page, func(e entry) any { return e.document() })
}

func (ps operationPaths) get(w http.ResponseWriter, r *http.Request, l ledger) error {
	e, err := l.get(r.Context(), mux.Vars(r)["operation_id"])
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, e.document())
}

func (ps operationPaths) cancel(w http.ResponseWriter, r *http.Request, l ledger) error {
	e, err := l.cancel(r.Context(), mux.Vars(r)["operation_id"])
	if err != nil {
		return err
	}
	w.Header().Set("Location", strings.TrimSuffix(r.URL.EscapedPath(), "/cancel"))
	return northbound.Answer(w, http.StatusAccepted, e.document())
}
