package sol003_test

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// finder is a store with an index of occurrences.
type finder struct {
	store.KV

	t *testing.T
}

// Find implements store.Finder.
func (f finder) Find(prefix, start string, c nf.Cursor) (iter.Seq[string], bool) {
	var keys []string
	for e, err := range f.List(f.t.Context(), prefix, start) {
		must(f.t, err)
		var o nf.Occurrence
		must(f.t, json.Unmarshal(e.Value, &o))
		if c.Selects(o.Summary()) {
			keys = append(keys, e.Key)
		}
	}
	return slices.Values(keys), prefix == "occurrences/"
}

// TestStates lists the occurrences in a state. One of them is retried: before its attempt
// begins, the store still has it as one that has failed.
func TestStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.kv = finder{w.kv, t}
		m, stop := w.start(t)
		list := func(state nf.OccurrenceState) string {
			var out []string
			for o, err := range m.OccurrencesFrom(t.Context(), nf.Cursor{Where: []nf.Attribute{{Name: nf.AttributeState, Value: string(state)}}}) {
				must(t, err)
				out = append(out, string(o.Operation)+" "+string(o.State))
			}
			return strings.Join(out, ", ")
		}
		done, failed := create(t, m), create(t, m)
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), done, instantiate) })
		w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
		o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), failed, instantiate) })
		if got := list(nf.OccurrenceCompleted); got != "INSTANTIATE COMPLETED" {
			t.Errorf("completed are %s", got)
		}
		if got := list(nf.OccurrenceProcessing); got != "INSTANTIATE FAILED_TEMP" { // which the caller leaves out
			t.Errorf("processed are %s", got)
		}
		must(t, m.Retry(t.Context(), o.ID, nf.RequestKey{}))
		if got := list(nf.OccurrenceProcessing); got != "INSTANTIATE PROCESSING" {
			t.Errorf("after the retry was accepted, processed are %s", got)
		}
		stop()
	})
}
