package lifecycle_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func change(pkg, size string) nf.UpgradeRequest {
	return nf.UpgradeRequest{Edit: func(s *nf.Spec) error {
		s.Package = pkg
		s.Inputs.Parameters = map[string]any{"size": size}
		return nil
	}}
}

func TestUpgradePrunesWhatWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_web-old")
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("db_web-new", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Fatalf("upgrade: %+v", op.Failure)
		}
		if diff := cmp.Diff([]string{"db", "new", "web"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		in, _ := e.Instance(t.Context(), first.Subject.ID)
		if in.Revision != 2 || in.Package != "db_web-new" || in.Inputs.Parameters["size"] != "xl" || len(in.Inventory) != 3 {
			t.Errorf("instance: %+v", in)
		}
		want := map[string]bool{in.ID + " east": true, in.ID + " db_web-new": true}
		if diff := cmp.Diff(want, s.catalog.held()); diff != "" {
			t.Errorf("holds (-want +got):\n%s", diff)
		}
	})
}

func TestPruneGoesStageByStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.DeletionGuard.Share = 1 })
		first := e.up(t, "a_b_c-d")
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("a", ""))
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		// What a stage was built on goes after it.
		if diff := cmp.Diff([]string{"delete [c d]", "delete [b]"}, s.cluster.asked("delete")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestFailedUpgradeGoesBackToTheFormerRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_web-old")
		before, _ := e.Instance(t.Context(), first.Subject.ID)
		s.cluster.status["new"] = health{nf.StatusFailed, "CrashLoopBackOff"}
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("db_web-new", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.OperationFailed || !op.Undoing {
			t.Fatalf("upgrade: %+v", op)
		}
		if diff := cmp.Diff([]string{"db", "old", "web"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		after, _ := e.Instance(t.Context(), first.Subject.ID)
		if after.State != nf.Ready || !strings.Contains(after.Message, "CrashLoopBackOff") {
			t.Errorf("instance: %s %q", after.State, after.Message)
		}
		if diff := cmp.Diff(before.Inventory, after.Inventory); diff != "" || after.Revision != 1 || after.Package != before.Package {
			t.Errorf("instance after the undo: %+v\n%s", after, diff)
		}
		if s.catalog.held()[before.ID+" db_web-new"] {
			t.Error("the package of the failed revision is still held")
		}
	})
}

func TestBrokenInstanceCanBeMendedByAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["bad"] = health{nf.StatusFailed, "ImagePullBackOff"}
		e := s.start()
		first := e.up(t, "db_bad", func(r *nf.InstantiateRequest) { r.OnFailure = nf.Keep })
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("db_good", ""))
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Fatalf("upgrade: %+v", op.Failure)
		}
		if diff := cmp.Diff([]string{"db", "good"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

func TestTerminateDeletesInReverseAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_web_ui", func(r *nf.InstantiateRequest) { r.Name = "fw" })
		op, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Fatalf("terminate: %+v", op.Failure)
		}
		want := []string{"delete [ui]", "delete [web]", "delete [db]", "remove namespace ns"}
		if diff := cmp.Diff(want, s.cluster.asked("delete", "remove")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if left := s.records(); len(left) > 0 || len(s.catalog.held()) > 0 {
			t.Errorf("left behind: %v, %v", left, s.catalog.held())
		}
		if _, err := e.Instance(t.Context(), first.Subject.ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("the instance after its end: %v", err)
		}
	})
}

func TestNamespaceGoesWithItsLastInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		a, b := e.up(t, "a"), e.up(t, "b")
		for _, first := range []nf.Operation{a, b} {
			if diff := cmp.Diff([]string{"ns"}, s.cluster.madeNamespaces()); diff != "" {
				t.Fatalf("the namespace went while an instance lived in it: %s", diff)
			}
			op, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}
		if diff := cmp.Diff([]string{}, s.cluster.madeNamespaces(), cmp.Transformer("nil", func(in []string) []string { return append([]string{}, in...) })); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
	})
}
