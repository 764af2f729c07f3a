package lifecycle_test

import (
	"errors"
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

// TestCancelledTests cancels the tests of a healthy instance, which they do not change.
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
		if _, err := e.Cancel(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.OperationCancelled {
			t.Errorf("the tests are %s", op.State)
		}
		if in := e.only(t.Context()); in.State != nf.Ready {
			t.Errorf("the instance is %s: %s", in.State, in.Message)
		}
		if _, err := e.Retry(t.Context(), op.ID, nf.Options{}); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "run the tests again") {
			t.Errorf("a retry: %v", err)
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
		for range 2 {
			op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
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
