package lifecycle_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

const lease = 10 * time.Second

// meter remembers what a replica has counted.
type meter struct {
	mu       sync.Mutex
	finished []nf.Operation
	resumed  int
	lost     int // leases of its own
	gone     int // leases of others
}

func (m *meter) Finished(op nf.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished = append(m.finished, op)
}

func (m *meter) LeaseEnded(own bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own {
		m.lost++
	} else {
		m.gone++
	}
}

func (m *meter) Resumed(nf.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumed++
}

func (m *meter) ends() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.finished)
}

// replica starts an engine that shares the store.
func (s *site) replica(m *meter, edit ...func(*config)) *engine {
	s.t.Helper()
	return s.start(append([]func(*config){func(c *config) {
		c.Work.Sole, c.Work.Lease, c.Work.LeaseEnded = false, lease, m.LeaseEnded
		c.Work.Meter, c.Drain = m, time.Nanosecond
	}}, edit...)...)
}

// stall is a process that stops for a while: what it asks of the store or of the
// cluster is not served before it continues.
type stall struct {
	mu   sync.Mutex
	wait chan struct{} // nil: it continues
}

func (s *stall) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = make(chan struct{})
}

func (s *stall) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.wait)
	s.wait = nil
}

func (s *stall) pass() {
	s.mu.Lock()
	wait := s.wait
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

// stalling makes a replica's store and cluster those of a process that stalls.
func (s *site) stalling(st *stall) func(*config) {
	return func(c *config) {
		c.KV = storetest.Failing{KV: s.kv, Fail: func(string, string) error { st.pass(); return nil }}
		c.Open = func(context.Context, string, string) (lifecycle.Cluster, error) {
			return stallingCluster{s.cluster, st}, nil
		}
	}
}

type stallingCluster struct {
	*fakeCluster
	stall *stall
}

func (c stallingCluster) EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error) {
	c.stall.pass()
	return c.fakeCluster.EnsureNamespace(ctx, namespace, project)
}

func TestReplicasShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var one, two meter
		few := func(c *config) { c.Places = 2 }
		a := s.replica(&one, few)
		s.replica(&two, few)
		s.cluster.before = func(call string) {
			if len(call) > 5 && call[:5] == "apply" {
				<-time.After(3 * time.Second)
			}
		}
		var ops []nf.Operation
		for i := range 12 {
			op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: fmt.Sprint("ns", i), Spec: nf.Spec{Package: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		}
		for _, op := range ops {
			if op = a.end(t, op); op.State != nf.Succeeded {
				t.Errorf("operation: %+v", op.Failure)
			}
		}
		synctest.Wait()
		if one.ends() == 0 || two.ends() == 0 || one.ends()+two.ends() != len(ops) {
			t.Errorf("what one replica accepted was done by it %d times and by the other %d times", one.ends(), two.ends())
		}
	})
}

func TestDeadReplicaIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var one, two meter
		dead := &stall{}
		a := s.replica(&one, s.stalling(dead))
		b := s.replica(&two)
		s.cluster.script("a", nf.InProgress, "")
		op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it waits for a
		died := time.Now()
		dead.stop()
		s.cluster.script("a", nf.Current, "")
		if op = b.end(t, op); op.State != nf.Succeeded || op.Attempts != 2 {
			t.Errorf("operation: %s, %d attempts, %+v", op.State, op.Attempts, op.Failure)
		}
		if took := time.Since(died); took < lease || took > 2*lease {
			t.Errorf("the other took over after %s; a lease is %s", took, lease)
		}
		synctest.Wait()
		if two.ends() != 1 || two.resumed != 1 || two.gone != 1 {
			t.Errorf("the other replica: %d ends, %d resumed, %d leases ended", two.ends(), two.resumed, two.gone)
		}
		before := s.everything()
		dead.resume()
		<-time.After(time.Minute)
		if diff := cmp.Diff(before, s.everything()); diff != "" {
			t.Errorf("the process that came to again changed (-before +after):\n%s", diff)
		}
		if one.ends() != 0 || one.lost != 1 {
			t.Errorf("the process that came to again: %d ends, %d leases lost", one.ends(), one.lost)
		}
		if a.work.Replicas() != 2 || b.work.Replicas() != 2 {
			t.Errorf("they see %d and %d replicas", a.work.Replicas(), b.work.Replicas())
		}
		if again := a.up(t, "c"); again.State != nf.Succeeded {
			t.Errorf("it does not work any more: %+v", again.Failure)
		}
	})
}

// everything returns what the store and the cluster hold, leases excepted.
func (s *site) everything() map[string]string {
	out := map[string]string{}
	for e, err := range s.kv.List(s.t.Context(), "", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if len(e.Key) < 9 || e.Key[:9] != "replicas/" {
			out[e.Key] = string(e.Value)
		}
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	for key, o := range s.cluster.objects {
		out[key] = fmt.Sprint(o.owner.ID, o.object.Object)
	}
	return out
}

func TestStoppedReplicaHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var one, two meter
		a, b := s.replica(&one), s.replica(&two)
		s.cluster.script("a", nf.InProgress, "")
		op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stopped := time.Now()
		a.stop()
		s.cluster.script("a", nf.Current, "")
		if op = b.end(t, op); op.State != nf.Succeeded {
			t.Errorf("operation: %s %+v", op.State, op.Failure)
		}
		if took := time.Since(stopped); took > lease/2 {
			t.Errorf("a replica that says goodbye is waited for: %s", took)
		}
	})
}

func TestCancelThroughAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var one, two meter
		a, b := s.replica(&one), s.replica(&two)
		s.cluster.script("a", nf.InProgress, "")
		op, err := a.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := b.Cancel(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		if op = b.end(t, op); op.State != nf.OperationCancelled {
			t.Errorf("operation: %s", op.State)
		}
		synctest.Wait()
		if one.ends() != 1 || two.ends() != 0 {
			t.Errorf("it was ended %d times where it ran and %d times elsewhere", one.ends(), two.ends())
		}
		if live := s.cluster.live(); len(live) > 0 {
			t.Errorf("left in the cluster: %v", live)
		}
	})
}

// TestShortAbsenceOfTheStore keeps the store away for less than the lease lasts.
func TestShortAbsenceOfTheStore(t *testing.T) {
	cases := map[string]struct {
		reason     string
		stalledFor time.Duration
		lost       int
	}{
		"Short": {"a lease bears a missed beat", lease / 3, 0},
		"Long":  {"who cannot renew must stop before others think that he is dead", lease, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				var one meter
				stalled := &stall{}
				e := s.replica(&one, s.stalling(stalled))
				synctest.Wait()
				stalled.stop()
				<-time.After(tc.stalledFor)
				stalled.resume()
				<-time.After(lease)
				if one.lost != tc.lost {
					t.Errorf("%s: %d leases lost, want %d", tc.reason, one.lost, tc.lost)
				}
				if op := e.up(t, "a"); op.State != nf.Succeeded {
					t.Errorf("%s: afterwards: %+v", tc.reason, op.Failure)
				}
			})
		})
	}
}
