package lifecycle_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestBlockedRollout upgrades a StatefulSet whose rollout a pod of another revision blocks.
func TestBlockedRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "set.db")
		pod := nf.Pod{Health: nf.Health{Ref: nf.Ref{Version: "v1", Kind: "Pod", Namespace: "ns", Name: "db-1"}, UID: "u"}}
		s.cluster.pods, s.cluster.blockers = []nf.Pod{pod}, map[string]nf.Pod{"db": pod}
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("set.db", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("%s %+v", op.State, op.Failure)
		}
		if diff := cmp.Diff([]string{"evict db-1 true 0s"}, s.cluster.asked("evict")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		changes, err := e.Changes(t.Context(), op.ID)
		want := nf.Change{Ref: pod.Ref, UID: "u", Action: nf.Deleted, Message: "it was not ready, and blocked the rollout of StatefulSet ns/db"}
		if err != nil || !slices.ContainsFunc(changes, func(c nf.Change) bool { return cmp.Equal(c, want) }) {
			t.Errorf("the operation does not tell: %+v, %v", changes, err)
		}
	})
}
