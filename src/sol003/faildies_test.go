package sol003_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestFailDies lets the process die after it has stored that an instantiation has failed,
// and before it changes the VNF, on a database without transactions.
func TestFailDies(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, m *sol003.Manager, id, occurrence string){
		"Again": func(t *testing.T, m *sol003.Manager, _, occurrence string) {
			_, err := m.Fail(t.Context(), occurrence)
			must(t, err)
		},
		"Delete": func(t *testing.T, m *sol003.Manager, id, _ string) {
			wantKind(t, "the VNF has an instance, which must be terminated first", m.Delete(t.Context(), id), nf.Conflict)
		},
		"Terminate": func(t *testing.T, m *sol003.Manager, id, occurrence string) {
			do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return termination.make(t.Context(), m, id, nf.RequestKey{}) })
			_, err := m.Fail(t.Context(), occurrence)
			wantKind(t, "it has failed already", err, nf.Conflict)
			must(t, m.Delete(t.Context(), id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				var dies atomic.Bool
				m, _ := w.start(t, func(c *config) {
					c.KV = storetest.Failing{KV: w.kv, Fail: func(method, key string) error {
						if dies.Load() && method == "Put" && strings.HasPrefix(key, "vnfs/") {
							return nf.E(nf.Unreachable, "write", key, nil)
						}
						return nil
					}}
				})
				id := create(t, m)
				w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
				o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return instantiation.make(t.Context(), m, id, nf.RequestKey{}) })
				dies.Store(true)
				_, err := m.Fail(t.Context(), o.ID)
				wantKind(t, "the database is away", err, nf.Unreachable)
				dies.Store(false)
				if now, err := m.Occurrence(t.Context(), o.ID); err != nil || now.State != nf.OccurrenceFailed {
					t.Fatalf("the occurrence is %s: %v", now.State, err)
				}
				next(t, m, id, o.ID)
				if name != "Terminate" && described(get(t, m, id)) != "one 0 0" {
					t.Errorf("the VNF is %q", described(get(t, m, id)))
				}
			})
		})
	}
}
