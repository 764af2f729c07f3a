package lifecycle_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// firstID is what a site calls its first instance.
const firstID = "id0002"

// TestUnlockedOperationIsOnlyConcluded fails the write of an operation's end after
// the instance is unlocked. Resuming the operation must not change the instance,
// because another operation may have changed it since.
func TestUnlockedOperationIsOnlyConcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		plain := s.kv
		var hit atomic.Bool
		s.kv = storetest.Failing{KV: plain, Fail: func(method, key string) error {
			in, err := peek(t, plain)
			if method == "Put" && strings.HasPrefix(key, "operations/") && err == nil && in.State == nf.Broken && hit.CompareAndSwap(false, true) {
				return nf.E(nf.Unreachable, "write", key, errors.New("the disk is away"))
			}
			return nil
		}}
		e := s.start()
		e.up(t, "a_b")
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		keep := change("a_bad", "")
		keep.OnFailure = nf.Keep
		broken, err := e.Upgrade(t.Context(), firstID, keep)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !hit.Load() {
			t.Fatal("the write of the end did not fail")
		}
		mended, err := e.Upgrade(t.Context(), firstID, change("a_c", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, mended)
		s.cluster.refuse("bad", nil) // applying it now would succeed
		if broken = e.end(t, broken); broken.State != nf.OperationFailed {
			t.Errorf("the repeated operation: %s", broken.State)
		}
		if diff := cmp.Diff([]string{"a", "c"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		if in, _ := e.Instance(t.Context(), firstID); in.Revision != 3 || in.State != nf.Ready {
			t.Errorf("instance: revision %d, %s", in.Revision, in.State)
		}
	})
}

// TestNothingIsUndoneAfterTheEnd cancels an operation just after its instance was
// unlocked.
func TestNothingIsUndoneAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		plain := s.kv
		var e *engine
		var cancelled atomic.Bool
		s.kv = storetest.Failing{KV: plain, Fail: func(method, key string) error {
			in, err := peek(t, plain)
			// The end of the operation is written after that of its lock.
			if method == "Put" && strings.HasPrefix(key, "operations/") && err == nil && in.State == nf.Ready && cancelled.CompareAndSwap(false, true) {
				_, err := e.Cancel(t.Context(), in.LastOperation)
				return err
			}
			return nil
		}}
		e = s.start()
		if op := e.up(t, "a"); op.State != nf.Succeeded || !cancelled.Load() {
			t.Errorf("operation: %s, cancelled %t", op.State, cancelled.Load())
		}
		if diff := cmp.Diff([]string{"a"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// peek reads the first instance past whatever a test has put before the store.
func peek(t *testing.T, kv store.KV) (nf.Instance, error) {
	t.Helper()
	return store.NewTable[nf.Instance](kv, "instances/", "VNF instance").Get(t.Context(), firstID)
}

func TestNamespacesOfOthersAreNotForPackages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "Namespace.other"}})
		if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "Namespace other") {
			t.Errorf("a package that brings another namespace: %v", err)
		}
		neighbour := e.up(t, "a")
		op := e.up(t, "Namespace.ns")
		gone, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, gone)
		for _, call := range s.cluster.asked("delete", "remove namespace") {
			t.Errorf("the namespace of %s was asked to go: %s", neighbour.Subject.ID, call)
		}
	})
}

// TestRecoverFreesInstancesOfOperationsThatEnded writes what a store leaves
// that answered "unreachable" and wrote all the same.
func TestRecoverFreesInstancesOfOperationsThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		op := e.up(t, "a")
		e.stop()
		instances := store.NewTable[nf.Instance](s.kv, "instances/", "VNF instance")
		if _, err := instances.Update(t.Context(), op.Subject.ID, func(in *nf.Instance) error { in.Operation = op.ID; return nil }); err != nil {
			t.Fatal(err)
		}
		again := s.start()
		<-time.After(2 * time.Minute) // the first search
		gone, err := again.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatalf("the instance stays locked: %v", err)
		}
		again.end(t, gone)
	})
}
