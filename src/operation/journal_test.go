package operation

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// TestBatchOfAStalledAttempt has a stalled attempt store a batch of the log that
// the operation's record does not count. The rightful attempt overwrites it, and
// followers read only what was counted.
func TestBatchOfAStalledAttempt(t *testing.T) {
	l := ledgerOf(t, memory.New())
	op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: "thing", ID: "a"}, State: nf.Running, Claim: "new", Steps: []nf.Step{{}}}
	insert(t, l, op)
	if err := l.workers.claims.Insert(t.Context(), op.ID, claim{Operation: op.ID, Token: "new"}); err != nil {
		t.Fatal(err)
	}
	attempt := func(token string) *Attempt {
		return &Attempt{cfg: &l.workers.cfg, ledger: l, workers: l.workers, job: Job{ID: op.ID, Token: token}, op: op, draft: newDraft()}
	}
	hide := func(text string) string { return text }
	note := func(text string) nf.LogEntry { return nf.LogEntry{Kind: nf.EventNote, Message: text} }

	late := batch{[]nf.LogEntry{{Number: 1, Message: "late"}, {Number: 2, Message: "later"}}}
	if err := l.entries.Insert(t.Context(), batchKey(op.ID, 0), late); err != nil { // its claim was compared before
		t.Fatal(err)
	}
	if err := attempt("old").Journal(hide).Publish(t.Context(), note("too late")); !errors.Is(err, ErrTaken) {
		t.Errorf("an attempt without the claim writes the log: %v", err)
	}
	if err := attempt("new").Journal(hide).Publish(t.Context(), note("right")); err != nil {
		t.Fatalf("the rightful attempt is stopped: %v", err)
	}
	if err := l.entries.Insert(t.Context(), batchKey(op.ID, 1), late); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var told []string
	for u, err := range l.Updates(ctx, op.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Operation == nil {
			told = append(told, fmt.Sprint(u.Entry.Number, " ", u.Entry.Message))
		} else if len(told) > 0 {
			break
		}
		if len(told) > 0 {
			break
		}
	}
	if diff := cmp.Diff([]string{"1 right"}, told); diff != "" {
		t.Errorf("followers read (-want +got):\n%s", diff)
	}
}

// ledgerOf returns the operations of a store.
func ledgerOf(t *testing.T, kv store.KV) *Ledger {
	t.Helper()
	w, err := New(Config{KV: kv, NewID: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return w.Ledger()
}
