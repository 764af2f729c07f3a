package operation

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestFlush begins a second step, which is not written at once. It is stored a
// second later, or as soon as the store can be written again, but not after the
// attempt or its claim has ended.
func TestFlush(t *testing.T) {
	cases := map[string]struct {
		reason string
		away   time.Duration // how long the store cannot be written
		during func(l *Ledger, cancel context.CancelFunc)
		after  time.Duration
		steps  int // stored then
	}{
		"Before":    {"a step that ends within a second needs no write", 0, nil, flushSteps - 1, 1},
		"Stored":    {"the record is at most a second old", 0, nil, flushSteps + 1, 2},
		"Away":      {"the store cannot be written", 3 * time.Second, nil, 2500 * time.Millisecond, 1},
		"Back":      {"the write is repeated", 3 * time.Second, nil, 5 * time.Second, 2},
		"Cancelled": {"the attempt has ended", 3 * time.Second, func(_ *Ledger, cancel context.CancelFunc) { cancel() }, time.Minute, 1},
		"Taken": {"another replica has claimed the operation", 0, func(l *Ledger, _ context.CancelFunc) {
			_, err := l.operations.Update(t.Context(), "op-1", func(op *nf.Operation) error { op.Claim = "other"; return nil })
			if err != nil {
				t.Error(err)
			}
		}, time.Minute, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := memory.New()
				var back atomic.Pointer[time.Time] // nil: at no time
				l := ledgerOf(t, storetest.Failing{KV: kv, Fail: func(method, _ string) error {
					if until := back.Load(); method == "Put" && until != nil && time.Now().Before(*until) {
						return nf.E(nf.Unreachable, "use", "the store", nil)
					}
					return nil
				}})
				op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: "thing", ID: "a"}, State: nf.Running, Claim: "mine"}
				insert(t, l, op)
				if err := l.workers.claims.Insert(t.Context(), op.ID, claim{Operation: op.ID, Token: "mine"}); err != nil {
					t.Fatal(err)
				}
				a := &Attempt{
					cfg: &l.workers.cfg, ledger: l, workers: l.workers, job: Job{ID: op.ID, Token: "mine"}, op: op, log: l.workers.cfg.Logger, draft: newDraft(),
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for _, phase := range []nf.Phase{nf.PhaseReserve, nf.PhaseApply} {
					if err := a.beginStep(ctx, Step{Step: nf.Step{StepID: nf.StepID{Phase: phase}}}); err != nil {
						t.Fatal(err)
					}
				}
				until := time.Now().Add(tc.away)
				back.Store(&until)
				if tc.during != nil {
					tc.during(l, cancel)
				}
				<-time.After(tc.after)
				synctest.Wait()
				stored, err := store.NewTable[nf.Operation](kv, "operations/", "operation").Get(t.Context(), op.ID)
				if err != nil || len(stored.Steps) != tc.steps {
					t.Errorf("%s: after %s, %d steps are stored, want %d; error %v", tc.reason, tc.after, len(stored.Steps), tc.steps, err)
				}
				a.draft.stop()
			})
		})
	}
}

// TestFlushTwice loses the answer to a write of two steps, which is repeated.
func TestFlushTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := memory.New()
		var lost atomic.Int32
		l := ledgerOf(t, storetest.Failing{KV: kv, Lose: func(method, key string) error {
			if method == "Put" && strings.HasPrefix(key, "operations/") && lost.Add(1) == 2 {
				return nf.E(nf.Unreachable, "use", "the store", nil)
			}
			return nil
		}})
		op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: "thing", ID: "a"}, State: nf.Running, Claim: "mine"}
		if err := l.operations.Insert(t.Context(), op.ID, op); err != nil {
			t.Fatal(err)
		}
		lost.Store(0)
		a := &Attempt{cfg: &l.workers.cfg, ledger: l, workers: l.workers, job: Job{ID: op.ID, Token: "mine"}, op: op, log: l.workers.cfg.Logger, draft: newDraft()}
		if err := l.workers.claims.Insert(t.Context(), op.ID, claim{Operation: op.ID, Token: "mine"}); err != nil {
			t.Fatal(err)
		}
		for _, phase := range []nf.Phase{nf.PhaseReserve, nf.PhaseApply, nf.PhaseWait} {
			if err := a.beginStep(t.Context(), Step{Step: nf.Step{StepID: nf.StepID{Phase: phase}}}); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(5 * flushSteps)
		synctest.Wait()
		a.draft.stop()
		stored, err := store.NewTable[nf.Operation](kv, "operations/", "operation").Get(t.Context(), op.ID)
		if err != nil || len(stored.Steps) != 3 || !stored.Steps[2].Finished.IsZero() || lost.Load() < 3 {
			t.Errorf("after %d writes, the steps are %+v: %v; want three, of which the last one runs", lost.Load(), stored.Steps, err)
		}
	})
}
