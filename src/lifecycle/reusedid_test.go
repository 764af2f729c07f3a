package lifecycle_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// stallAt stalls a replica at its nth call to the store that concerns the records of
// an instance, from when it is armed.
type stallAt struct {
	n     int
	woken chan struct{}

	mu      sync.Mutex
	armed   bool
	calls   int
	reached string // the call
}

func (s *stallAt) meet(method, key string) error {
	s.mu.Lock()
	table, _, _ := strings.Cut(key, "/")
	if !s.armed || table != "instances" && table != "revisions" && table != "names" {
		s.mu.Unlock()
		return nil
	}
	s.calls++
	stalls := s.calls == s.n
	if stalls {
		s.reached = method + " " + key
	}
	s.mu.Unlock()
	if stalls {
		<-s.woken
	}
	return nil
}

func (s *stallAt) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

func (s *stallAt) call() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

// TestReusedID stalls a replica at each call of a termination until another
// replica has ended the termination and a new instance has the id and the name.
// When the stalled replica continues, the new instance loses nothing.
func TestReusedID(t *testing.T) {
	for n := 1; ; n++ {
		reached := ""
		t.Run(fmt.Sprintf("call %d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { reached = stalledTermination(t, n) })
		})
		if reached == "" {
			if n < 8 {
				t.Errorf("the termination has made only %d calls", n-1)
			}
			return
		}
	}
}

// stalledTermination stalls a replica at the nth call, and returns the call, or ""
// if there was none.
func stalledTermination(t *testing.T, n int) string {
	t.Helper()
	s := newSite(t)
	at := &stallAt{n: n, woken: make(chan struct{})}
	var one, two meter
	a := s.replica(&one, func(c *config) {
		c.Work.Lease = time.Hour // while it stalls, its own timers stand still
		c.KV = storetest.Failing{KV: s.kv, Fail: at.meet}
	})
	reused := func(r *nf.InstantiateRequest) { r.ID, r.Name = "vnf-1", "fw" }
	a.up(t, "a", reused)
	s.cluster.before = func(call string) {
		if strings.HasPrefix(call, "delete") {
			at.arm()
		}
	}
	gone, err := a.Terminate(t.Context(), "vnf-1", nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	b := s.replica(&two)
	<-time.After(2 * lease) // b waits for a
	if at.call() == "" {
		close(at.woken)
		return ""
	}
	if gone = b.end(t, gone); gone.State != nf.Succeeded {
		t.Fatalf("the termination is %s: %+v", gone.State, gone.Failure)
	}
	b.up(t, "a", reused)
	synctest.Wait()
	before, held := s.everything(), s.catalog.held()
	close(at.woken)
	<-time.After(lease)
	if diff := cmp.Diff(before, s.everything()); diff != "" {
		t.Errorf("stalled at %s, the replica has changed records of the new instance (-want +got):\n%s", at.call(), diff)
	}
	if diff := cmp.Diff(held, s.catalog.held()); diff != "" {
		t.Errorf("stalled at %s, the replica has changed holds of the new instance (-want +got):\n%s", at.call(), diff)
	}
	return at.call()
}
