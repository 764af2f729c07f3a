package native

import (
	"context"
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// siteLedger is the operations of a site, or of all if the id is empty.
type siteLedger struct {
	operations SiteOperations
	site       string
}

var _ ledger = siteLedger{}

// ledger returns the operations of the request's site.
func (ss sites) ledger(r *http.Request) (ledger, error) {
	return siteLedger{ss.operations, mux.Vars(r)["site_id"]}, ss.missing("get")
}

func (l siteLedger) get(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.SiteOperation(ctx, l.site, id)
	return siteEntry(op), err
}

func (l siteLedger) list(ctx context.Context, from nf.Cursor) iter.Seq2[entry, error] {
	return entries(l.operations.SiteOperationsFrom(ctx, l.site, from), siteEntry)
}

func (l siteLedger) follow(ctx context.Context, id string, after int) iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		for u, err := range l.operations.FollowSite(ctx, l.site, id, after) {
			if !yield(siteUpdate(u), err) {
				return
			}
		}
	}
}

func (l siteLedger) cancel(ctx context.Context, id string) (entry, error) {
	op, err := l.operations.CancelSite(ctx, l.site, id)
	return siteEntry(op), err
}

func siteEntry(op nf.Operation) entry {
	return entry{op, func() any { return wire.SiteOperationOf(op) }}
}

func siteUpdate(u nf.OperationUpdate) update {
	if u.Operation == nil {
		return update{log: u.Entry.Number, document: wire.SiteEventOf(u.Entry)}
	}
	return update{document: wire.SiteOperationOf(*u.Operation), final: u.Operation.State.Final()}
}
