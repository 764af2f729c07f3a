package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// podOf returns a pod of the ConfigMap web.
func podOf(name string) nf.Pod {
	return nf.Pod{Health: nf.Health{Ref: nf.Ref{Version: "v1", Kind: "Pod", Namespace: "ns", Name: name}, UID: name, Status: nf.Current}, Workload: configMap("web")}
}

func TestHealCreatesWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db-old_web").Subject.ID
		e.act(t, id, scaleTo(5, "web"))
		s.cluster.lose("old")
		s.cluster.lose("web")
		preview, err := e.PreviewAct(t.Context(), id, nf.ActRequest{Verb: nf.Heal})
		want := []nf.Change{{Ref: configMap("old"), Action: nf.Created}, {Ref: configMap("web"), Action: nf.Created}}
		if diff := cmp.Diff(want, preview.Changes); err != nil || diff != "" {
			t.Errorf("preview: %v (-want +got):\n%s", err, diff)
		}
		s.cluster.calls = nil
		op := e.act(t, id, nf.ActRequest{Verb: nf.Heal})
		if op.State != nf.Succeeded || s.cluster.field("web", replicas) != "5" {
			t.Errorf("%v; the object has %s replicas, want the number that was set", op.Failure, s.cluster.field("web", replicas))
		}
		if diff := cmp.Diff([]string{"apply [old]", "apply [web]"}, s.cluster.asked("apply")); diff != "" {
			t.Errorf("what is there is not applied (-want +got):\n%s", diff)
		}
		if in := e.only(t.Context()); in.State != nf.Ready || in.Operation != "" || in.Revision != 1 {
			t.Errorf("instance: %+v", in)
		}
		if op = e.act(t, id, nf.ActRequest{Verb: nf.Heal}); op.State != nf.Succeeded || len(op.Steps) != 1 {
			t.Errorf("nothing is missing: %v, steps %v", op.Failure, op.Steps)
		}
	})
}

func TestHealReplacesPods(t *testing.T) {
	cases := map[string]struct {
		reason string
		req    nf.ActRequest
		budget string // of web-2
		state  nf.OperationState
		calls  []string
	}{
		"Evicted": {"named pods are evicted one after another", nf.ActRequest{Pods: []string{"web-1", "ns/web-2"}}, "", nf.Succeeded, []string{"evict web-1 false 1m0s", "evict web-2 false 1m0s"}},
		"Budget":  {"a budget ends it, with its name", nf.ActRequest{Pods: []string{"web-2", "web-1"}, Patience: time.Second}, "guard", nf.OperationFailed, []string{"evict web-2 false 1s"}},
		"Force":   {"unless it is forced", nf.ActRequest{Pods: []string{"web-2"}, Force: true}, "guard", nf.Succeeded, []string{"evict web-2 true 1m0s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				s.cluster.pods = []nf.Pod{podOf("web-1"), podOf("web-2")}
				s.cluster.rejects = map[string]string{"web-2": tc.budget}
				tc.req.Verb = nf.Heal
				op := e.act(t, id, tc.req)
				if diff := cmp.Diff(tc.calls, s.cluster.asked("evict")); op.State != tc.state || diff != "" {
					t.Errorf("%s: %s, %v (-want +got):\n%s", tc.reason, op.State, op.Failure, diff)
				}
				if tc.state == nf.OperationFailed {
					if op.Failure.Reason != nf.ReasonBudget || !strings.Contains(op.Failure.Message, tc.budget) || op.Undoing {
						t.Errorf("%s: %+v", tc.reason, op.Failure)
					}
					if _, err := e.Retry(t.Context(), op.ID, nf.Options{}); nf.KindOf(err) != nf.Conflict || !strings.Contains(err.Error(), "heal the instance again") {
						t.Errorf("a retry: %v", err)
					}
				}
				if in := e.only(t.Context()); in.State != nf.Ready || in.Operation != "" {
					t.Errorf("%s: the instance is as it was: %+v", tc.reason, in)
				}
			})
		})
	}
}

// TestHealWaitsForNewPods evicts two pods of a workload. It evicts the second one when the
// workload's status does not count the first one any longer, and ends when it counts neither.
func TestHealWaitsForNewPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web").Subject.ID
		s.cluster.pods = []nf.Pod{podOf("web-1"), podOf("web-2")}
		s.cluster.late = map[string]bool{"web-1": true, "web-2": true}
		op, err := e.Act(t.Context(), id, nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "web-2"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, uid := range []string{"web-1", "web-2"} {
			synctest.Wait()
			if evicted := s.cluster.asked("evict"); len(evicted) != i+1 {
				t.Errorf("before %s is replaced, the heal has evicted %v", uid, evicted)
			}
			if now, err := e.Operation(t.Context(), op.ID); err != nil || now.State != nf.Running {
				t.Fatalf("before %s is replaced, the heal is %s: %v", uid, now.State, err)
			}
			s.cluster.mu.Lock()
			delete(s.cluster.late, uid)
			s.cluster.touch()
			s.cluster.mu.Unlock()
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the heal: %s, %v", op.State, op.Failure)
		}
	})
}

// TestHealOfBrokenWorkload evicts two pods of a workload that is not ready, and may not be
// before both are replaced: the heal does not wait in between.
func TestHealOfBrokenWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web").Subject.ID
		s.cluster.pods = []nf.Pod{podOf("web-1"), podOf("web-2")}
		s.cluster.script("web", nf.InProgress, "")
		op, err := e.Act(t.Context(), id, nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "web-2"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if evicted := s.cluster.asked("evict"); len(evicted) != 2 {
			t.Errorf("the heal has evicted %v", evicted)
		}
		s.cluster.script("web", nf.Current, "")
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the heal: %s, %v", op.State, op.Failure)
		}
	})
}

// TestHealOrder evicts pods of several workloads: first those of workloads that are not ready,
// which the others may need, and without a wait for a workload of which no other pod follows.
func TestHealOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web").Subject.ID
		db := podOf("db-0")
		db.Workload = configMap("db")
		s.cluster.pods = []nf.Pod{podOf("web-1"), db}
		s.cluster.late = map[string]bool{"web-1": true}
		s.cluster.script("db", nf.InProgress, "")
		op, err := e.Act(t.Context(), id, nf.ActRequest{Verb: nf.Heal, Pods: []string{"web-1", "db-0"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"evict db-0 false 1m0s", "evict web-1 false 1m0s"}, s.cluster.asked("evict")); diff != "" {
			t.Errorf("evictions (-want +got):\n%s", diff)
		}
		s.cluster.script("db", nf.Current, "")
		s.cluster.mu.Lock()
		s.cluster.late = nil
		s.cluster.touch()
		s.cluster.mu.Unlock()
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the heal: %s, %v", op.State, op.Failure)
		}
	})
}

// TestHealRecreatesPods heals a pod that is an object of the instance itself: the heal evicts
// it, and creates it again.
func TestHealRecreatesPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_Pod.bare").Subject.ID
		bare := podOf("bare")
		bare.Workload = bare.Ref
		s.cluster.pods = []nf.Pod{bare}
		req := nf.ActRequest{Verb: nf.Heal, Pods: []string{"bare"}}
		preview, err := e.PreviewAct(t.Context(), id, req)
		if diff := cmp.Diff([]nf.Change{{Ref: bare.Ref, Action: nf.Recreated}}, preview.Changes); err != nil || diff != "" {
			t.Errorf("preview: %v (-want +got):\n%s", err, diff)
		}
		s.cluster.calls = nil
		op := e.act(t, id, req)
		var calls []string
		for _, call := range s.cluster.calls {
			if strings.HasPrefix(call, "evict ") || strings.HasPrefix(call, "apply ") {
				calls = append(calls, call)
			}
		}
		if diff := cmp.Diff([]string{"evict bare false 1m0s", "apply [bare]"}, calls); op.State != nf.Succeeded || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", op.State, op.Failure, diff)
		}
	})
}

func TestHealRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		pods   []string
		kind   nf.Kind
		want   string
	}{
		"Foreign":   {"a pod of others", []string{"web-1", "theirs"}, nf.NotFound, "pods[1]: VNF instance ID has no pod ns/theirs"},
		"Elsewhere": {"a pod in another namespace", []string{"kube-system/web-1"}, nf.NotFound, "has no pod kube-system/web-1"},
		"Form":      {"no name of a pod", []string{"a/b/c"}, nf.Invalid, "pods[0]: must be the name of a pod"},
		"Twice":     {"a pod twice", []string{"web-1", "web-1"}, nf.Invalid, "is given twice"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				id := e.up(t, "db_web").Subject.ID
				s.cluster.pods = []nf.Pod{podOf("web-1")}
				_, err := e.Act(t.Context(), id, nf.ActRequest{Verb: nf.Heal, Pods: tc.pods})
				if nf.KindOf(err) != tc.kind || !strings.Contains(strings.ReplaceAll(err.Error(), id, "ID"), tc.want) || len(s.cluster.asked("evict")) > 0 {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
		})
	}
}
