package lifecycle_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestUndoWaitsForDeletion undoes an upgrade while an object that it has pruned is still
// being deleted.
func TestUndoWaitsForDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_old")
		s.cluster.script("bad", nf.StatusFailed, "it does not start")
		s.cluster.refuse("old", nf.E(nf.Busy, "apply", "ConfigMap ns/old", errors.New("it is being deleted")))
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("db_bad", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, func() {
			s.cluster.mu.Lock()
			defer s.cluster.mu.Unlock()
			delete(s.cluster.applyErr, "old")
		})
		if op = e.end(t, op); op.State != nf.OperationFailed || op.Failure.Step != "wait 2/2 s1" {
			t.Errorf("it is undone: %s %+v", op.State, op.Failure)
		}
		if in := e.only(t.Context()); in.State != nf.Ready {
			t.Errorf("the instance is %s: %s", in.State, in.Message)
		}
		if diff := cmp.Diff([]string{"db", "old"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// TestOwnedBecomesShared upgrades to a package in which an object of the instance is shared, as
// a chart does that moves a definition to the folder crds: the instance leaves it to others.
func TestOwnedBecomesShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "shared/ns/crd"
		s := newSite(t)
		e := s.start()
		first := e.up(t, "owned.crd_db")
		preview, err := e.PreviewUpgrade(t.Context(), first.Subject.ID, change("shared.crd_db", "s"))
		if err != nil || !slices.ContainsFunc(preview.Changes, func(c nf.Change) bool { return c.Key() == key && c.Action == nf.Orphaned }) {
			t.Errorf("the preview is %v, %v", preview.Changes, err)
		}
		if op := e.upgrade(t, first.Subject.ID, change("shared.crd_db", "s")); op.State != nf.Succeeded {
			t.Fatalf("%s %+v", op.State, op.Failure)
		}
		if live := s.cluster.objects[key]; live == nil || live.owner != (nf.Subject{}) || live.former != first.Subject {
			t.Errorf("after the upgrade, the object is %+v", live)
		}
		if op := e.upgrade(t, first.Subject.ID, change("owned.crd_db", "s")); op.State != nf.Succeeded || s.cluster.objects[key].owner != first.Subject {
			t.Errorf("the way back: %s %+v", op.State, op.Failure)
		}
	})
}

// TestHealWithoutNamespace heals an instance whose namespace another client has deleted.
func TestHealWithoutNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db").Subject.ID
		s.cluster.lose("db")
		s.cluster.mu.Lock()
		delete(s.cluster.namespaces, "ns")
		s.cluster.mu.Unlock()
		if op := e.act(t, id, nf.ActRequest{Verb: nf.Heal}); op.State != nf.Succeeded {
			t.Errorf("%s %+v", op.State, op.Failure)
		}
		if diff := cmp.Diff([]string{"ns"}, s.cluster.madeNamespaces()); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
	})
}

// TestCancelledTests cancels the tests of a healthy instance, which they do not change: their
// objects are deleted.
func TestCancelledTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_probe.p")
		s.cluster.script("p", nf.InProgress, "at it")
		op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if live := s.cluster.live(); len(live) != 2 {
			t.Errorf("while they run, there are %v", live)
		}
		if _, err := e.Cancel(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.OperationCancelled || op.UndoFailure != nil {
			t.Errorf("the tests are %s, %v", op.State, op.UndoFailure)
		}
		if diff := cmp.Diff([]string{"db"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		if in := e.only(t.Context()); in.State != nf.Ready {
			t.Errorf("the instance is %s: %s", in.State, in.Message)
		}
		if _, err := e.Retry(t.Context(), op.ID, nf.Options{}); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "run the tests again") {
			t.Errorf("a retry: %v", err)
		}
	})
}

// TestLateTests lets the deadline of tests pass: their objects are deleted.
func TestLateTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_probe.p")
		s.cluster.script("p", nf.InProgress, "at it")
		op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{Options: nf.Options{Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.OperationFailed || op.UndoFailure != nil {
			t.Errorf("the tests are %s, %v", op.State, op.UndoFailure)
		}
		if diff := cmp.Diff([]string{"db"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		if in := e.only(t.Context()); in.State != nf.Ready || len(in.Inventory) != 1 {
			t.Errorf("the instance is %s: %s; it has %v", in.State, in.Message, in.Inventory)
		}
	})
}

// TestTestsAfterFailure runs the tests of an instance whose upgrade has failed and was kept:
// the upgrade can still be retried and undone.
func TestTestsAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_probe.p")
		s.cluster.script("bad", nf.StatusFailed, "it does not start")
		req := change("db_bad_probe.p", "xl")
		req.OnFailure = nf.Keep
		failed, err := e.Upgrade(t.Context(), first.Subject.ID, req)
		if err != nil {
			t.Fatal(err)
		}
		failed = e.end(t, failed)
		why := e.only(t.Context()).Message
		for range 2 {
			op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}
		if now := e.only(t.Context()).Message; why == "" || now != why {
			t.Errorf("after the tests, the instance has failed for the reason %q, want %q", now, why)
		}
		_, err = e.Act(t.Context(), first.Subject.ID, scaleTo(2, "db"))
		if nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), failed.ID) {
			t.Errorf("what is to be undone: %v", err)
		}
		op, err := e.Undo(t.Context(), failed.ID, nf.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("%s %+v", op.State, op.Failure)
		}
	})
}
