package native

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// ledger gives access to the operations of one subject, of all subjects of a
// kind, or of all kinds.
type ledger interface {
	// get returns an operation with all its details, or nf.NotFound.
	get(ctx context.Context, id string) (entry, error)
	// list yields the operations in the order of their acceptance.
	list(ctx context.Context, from nf.Cursor) iter.Seq2[entry, error]
	// follow yields the operation and its events after the given number, until
	// the operation is final or the context ends.
	follow(ctx context.Context, id string, after int) iter.Seq2[update, error]
	// cancel cancels an operation, or returns nf.NotFound.
	cancel(ctx context.Context, id string) (entry, error)
}

// entry is an operation of any kind.
type entry struct {
	nf.Operation

	document func() any // of package wire
}

// key returns the entry's place in a list.
func (e entry) key() string { return e.ID }

// update is one event of an operation's stream: the operation, or an entry of
// its log.
type update struct {
	document any
	log      int  // number of the log's entry; 0: the document is the operation
	counted  bool // the event's id is its number in the stream
	final    bool
}

// kind is a kind of subjects. Of returns the operations of one subject, or of
// all if the id is empty.
type kind struct {
	name nf.SubjectKind
	of   func(id string) ledger
}

// ledgers are the operations of each kind of subjects.
type ledgers struct {
	instances Operations
	others    map[nf.SubjectKind]KindOperations // may be nil
}

// kinds returns the kinds of subjects whose operations /v1/operations has.
func (ls ledgers) kinds() []kind {
	all := []kind{{nf.InstanceSubject, func(id string) ledger { return instanceLedger{ls.instances, id} }}}
	for _, name := range slices.Sorted(maps.Keys(ls.others)) {
		if operations := ls.others[name]; operations != nil {
			all = append(all, kind{name, func(id string) ledger { return subjectLedger{operations, id} }})
		}
	}
	return all
}

// of returns the operations of all kinds, or of those subjects that the request
// selects.
func (ls ledgers) of(r *http.Request) (ledger, error) {
	query := r.URL.Query()
	want := nf.SubjectOf(query.Get("subject"))
	if query.Has("vnf_id") {
		if query.Has("subject") {
			return nil, invalid("vnf_id", "cannot be combined with subject; vnf_id=ID means subject="+string(nf.InstanceSubject)+"/ID")
		}
		want = nf.Subject{Kind: nf.InstanceSubject, ID: query.Get("vnf_id")}
	}
	var all joined
	var forms []string
	for _, k := range ls.kinds() {
		forms = append(forms, string(k.name), string(k.name)+"/ID")
		if want.Kind == "" && !query.Has("subject") || want.Kind == k.name {
			all = append(all, k.of(want.ID))
		}
	}
	if query.Has("subject") && want.String() != query.Get("subject") || len(all) == 0 {
		return nil, invalid("subject", fmt.Sprintf("%q is not one of %s", query.Get("subject"), strings.Join(forms, ", ")))
	}
	return all, nil
}

// joined is the operations of several kinds.
type joined []ledger

// first returns the first result that is not nf.NotFound, or the first error.
func (j joined) first(call func(ledger) (entry, error)) (entry, error) {
	var gone error
	for _, l := range j {
		e, err := call(l)
		if err == nil || nf.KindOf(err) != nf.NotFound {
			return e, err
		}
		gone = cmp.Or(gone, err)
	}
	return entry{}, gone
}

func (j joined) get(ctx context.Context, id string) (entry, error) {
	return j.first(func(l ledger) (entry, error) { return l.get(ctx, id) })
}

func (j joined) cancel(ctx context.Context, id string) (entry, error) {
	return j.first(func(l ledger) (entry, error) { return l.cancel(ctx, id) })
}

// list merges the lists by id, because ids begin with the time of acceptance.
func (j joined) list(ctx context.Context, from nf.Cursor) iter.Seq2[entry, error] {
	var all []iter.Seq2[entry, error]
	for _, l := range j {
		all = append(all, l.list(ctx, from))
	}
	return nf.Merged(entry.key, all...)
}

func (j joined) follow(ctx context.Context, id string, after int) iter.Seq2[update, error] {
	return func(yield func(update, error) bool) {
		var gone error
		for _, l := range j {
			absent := false
			for u, err := range l.follow(ctx, id, after) {
				if absent = err != nil && nf.KindOf(err) == nf.NotFound; absent {
					gone = cmp.Or(gone, err)
					break
				}
				if !yield(u, err) || err != nil {
					return
				}
			}
			if !absent {
				return
			}
		}
		yield(update{}, gone)
	}
}

// entries converts a sequence of operations.
func entries[T any](all iter.Seq2[T, error], convert func(T) entry) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for op, err := range all {
			if !yield(convert(op), err) {
				return
			}
		}
	}
}
