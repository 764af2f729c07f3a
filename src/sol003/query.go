package sol003

import (
	"context"
	"errors"
	"iter"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// Operations returns the attempts at occurrences.
func (m *Manager) Operations() operation.OfKind { return m.ledger.OfKind(nf.VNFSubject) }

// VNF returns a VNF, or nf.NotFound.
func (m *Manager) VNF(ctx context.Context, id string) (nf.VNF, error) {
	v, _, err := m.vnf(ctx, id)
	if v.ID != "" {
		err = nil // it is shown as it is stored
	}
	return v, err
}

// VNFsFrom yields the VNFs after the cursor, ordered by id. If the store has an index, it
// leaves out those that do not meet the conditions of the cursor.
func (m *Manager) VNFsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNF, error] {
	if found, ok := m.vnfs.Find(ctx, from); ok {
		return found
	}
	return m.vnfs.After(ctx, "", from)
}

// Occurrence returns an occurrence, or nf.NotFound.
func (m *Manager) Occurrence(ctx context.Context, id string) (nf.Occurrence, error) {
	r, err := m.occurrences.Get(ctx, id)
	if err != nil {
		return nf.Occurrence{}, err
	}
	o, shown, err := m.present(ctx, r)
	if err == nil && !shown {
		err = nf.E(nf.NotFound, "get", "occurrence "+id, nil)
	}
	return o, err
}

// OccurrencesFrom yields the occurrences after the cursor, ordered by id, which is the
// order of their start. It uses an index as VNFsFrom does.
func (m *Manager) OccurrencesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Occurrence, error] {
	records, indexed := m.occurrences.Find(ctx, from)
	if !indexed {
		records = m.occurrences.After(ctx, "", from)
	}
	return func(yield func(nf.Occurrence, error) bool) {
		for r, err := range records {
			var o nf.Occurrence
			shown := true
			if err == nil {
				o, shown, err = m.present(ctx, r)
			}
			if shown = shown || err != nil; shown && !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// present returns an occurrence as its VNF has it. One that has not ended is not shown if
// its VNF does not name it: its request was not accepted yet. One that has failed is
// running again as soon as the next attempt is accepted.
func (m *Manager) present(ctx context.Context, r record) (o nf.Occurrence, shown bool, err error) {
	if r.State.Final() {
		return r.Occurrence, true, nil
	}
	v, err := m.vnfs.Get(ctx, r.VNF)
	if err := nf.IgnoreNotFound(err); err != nil {
		return r.Occurrence, true, err
	}
	if v.Occurrence != r.ID { // or it has ended since it was read
		now, err := m.occurrences.Get(ctx, r.ID)
		return now.Occurrence, err == nil && now.State.Final(), nf.IgnoreNotFound(err)
	}
	if r.State != nf.OccurrenceFailedTemp || v.Operation == "" {
		return r.Occurrence, true, nil
	}
	op, err := m.ledger.Get(ctx, v.Operation)
	if err != nil {
		return r.Occurrence, true, nf.IgnoreNotFound(err)
	}
	r.State = stateOf(op.Verb)
	return r.Occurrence, true, nil
}

// stateOf returns the state of an occurrence while an attempt runs that is not the first.
func stateOf(verb nf.Verb) nf.OccurrenceState {
	if verb == nf.Rollback {
		return nf.OccurrenceRollingBack
	}
	return nf.OccurrenceProcessing
}

// NoticesFrom yields the notices after the cursor. Those of one VNF are in their order.
func (m *Manager) NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error] {
	return m.notices.After(ctx, "", from)
}

// DropNotice deletes a notice. It need not exist.
func (m *Manager) DropNotice(ctx context.Context, id string) error {
	return nf.IgnoreNotFound(m.notices.Delete(ctx, id))
}

// Noticed returns a channel that receives a value when there may be new notices of this
// replica.
func (m *Manager) Noticed() <-chan struct{} { return m.noticed }

// errNotFailed says that a request needs a failed occurrence.
var errNotFailed = errors.New("only an occurrence in the state FAILED_TEMP can be retried, rolled back or made to fail")
