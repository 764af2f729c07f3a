package operation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// TestForgetAfterADeath lets a process die at each deletion of an operation, and
// repeats the deletion. Nothing of the operation is left.
func TestForgetAfterADeath(t *testing.T) {
	for n := 1; ; n++ {
		kv := memory.New()
		calls := 0
		cut := storetest.Failing{KV: kv, Fail: func(method, _ string) error {
			if method == "Delete" {
				calls++
			}
			if method == "Delete" && calls >= n {
				return errors.New("the process is dead")
			}
			return nil
		}}
		op := nf.Operation{ID: "op-1", Subject: nf.Subject{Kind: "thing", ID: "a"}, Steps: make([]nf.Step, 2), Batches: 3}
		l := ledgerOf(t, kv)
		fill(t, l, op)
		if err := ledgerOf(t, cut).deleteRecords(t.Context(), op); err == nil {
			if n < 8 {
				t.Errorf("there were only %d deletions", n-1)
			}
			return
		}
		if err := l.deleteRecords(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		var left []string
		for e, err := range kv.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, e.Key)
		}
		if diff := cmp.Diff([]string(nil), left); diff != "" {
			t.Errorf("after a death at deletion %d (-want +got):\n%s", n, diff)
		}
	}
}

// insert stores an operation.
func insert(t *testing.T, l *Ledger, op nf.Operation) {
	t.Helper()
	ops, err := l.insertOps(op)
	if err == nil {
		_, err = store.Write(t.Context(), l.kv, ops)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill stores an operation with changes of each step, and with its log.
func fill(t *testing.T, l *Ledger, op nf.Operation) {
	t.Helper()
	insert(t, l, op)
	for i := range op.Steps {
		if err := l.changes.Insert(t.Context(), changesKey(op.ID, i), []nf.Change{{Action: nf.Created}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range op.Batches {
		if err := l.entries.Insert(t.Context(), batchKey(op.ID, i), batch{}); err != nil {
			t.Fatal(err)
		}
	}
}
