package sol003_test

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// finder is a store with an index of occurrences.
type finder struct {
	store.KV

	t    *testing.T
	then func() // runs once the keys are found, and before the records are read
}

// Find implements store.Finder.
func (f *finder) Find(prefix, start string, c nf.Cursor) (iter.Seq[string], bool) {
	var keys []string
	for e, err := range f.List(f.t.Context(), prefix, start) {
		must(f.t, err)
		var o nf.Occurrence
		must(f.t, json.Unmarshal(e.Value, &o))
		if c.Selects(o.Summary()) {
			keys = append(keys, e.Key)
		}
	}
	if then := f.then; then != nil {
		f.then = nil
		then()
	}
	return slices.Values(keys), prefix == "occurrences/"
}

// TestStates lists the occurrences in a state. One of them is retried: before its attempt
// begins, the store still has it as one that has failed.
func TestStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		index := &finder{KV: w.kv, t: t}
		w.kv = index
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
		w.engine.setTakes(time.Minute)
		index.then = func() { // the attempt begins while the list is read
			must(t, m.Retry(t.Context(), o.ID, nf.RequestKey{}))
			<-time.After(time.Second)
		}
		for _, when := range []string{"while the attempt begins", "after it has begun"} {
			if got := list(nf.OccurrenceProcessing); got != "INSTANTIATE PROCESSING" {
				t.Errorf("%s, processed are %s", when, got)
			}
		}
		stop()
	})
}
