package lifecycle_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRecreate changes a field that cannot be changed.
func TestRecreate(t *testing.T) {
	cases := map[string]struct {
		reason string
		pkg    string
		state  nf.OperationState
		calls  []string
	}{
		"Allowed":   {"its package lets it be made again", "db_again.web", nf.Succeeded, []string{"apply [web]", "delete [web]", "apply [web]"}},
		"Forbidden": {"without a word of its package nothing is deleted", "db_web", nf.OperationFailed, []string{"apply [web]", "apply [web]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, tc.pkg)
				s.cluster.fix("web")
				seen := len(s.cluster.asked("apply [web]", "delete"))
				preview, err := e.PreviewUpgrade(t.Context(), first.Subject.ID, change(tc.pkg, "xl"))
				if told := slices.ContainsFunc(preview.Changes, func(c nf.Change) bool { return c.Action == nf.Recreated }); told != (tc.state == nf.Succeeded) || told == (err != nil) {
					t.Errorf("%s: a dry run tells so: %t, error %v", tc.reason, told, err)
				}
				op, err := e.Upgrade(t.Context(), first.Subject.ID, change(tc.pkg, "xl"))
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != tc.state {
					t.Errorf("%s: %s %+v", tc.reason, op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.calls, s.cluster.asked("apply [web]", "delete")[seen:]); diff != "" {
					t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
				}
				changes, _ := e.Changes(t.Context(), op.ID)
				recreated := 0
				for _, c := range changes {
					if c.Action == nf.Recreated {
						recreated++
					}
				}
				if (recreated == 1) != (tc.state == nf.Succeeded) {
					t.Errorf("%s: the operation tells of %d", tc.reason, recreated)
				}
			})
		})
	}
}

// TestUndoRecreates undoes an upgrade that has recreated an object, which the package of the
// active revision does not allow to recreate.
func TestUndoRecreates(t *testing.T) {
	recreated := []string{"apply [web]", "delete [web]", "apply [web]"} // each time
	cases := map[string]struct {
		reason string
		policy nf.OnFailure
		want   []string
	}{
		"Automatic": {"the failed upgrade is undone", nf.Undo, slices.Concat(recreated, recreated, []string{"delete [bad]"})},
		"Kept":      {"it is kept, and undone later", nf.Keep, recreated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, "again.web", func(req *nf.InstantiateRequest) { req.Spec.Inputs.Parameters = map[string]any{"recreate": "never"} })
				s.cluster.fix("web")
				s.cluster.script("bad", nf.StatusFailed, "it does not start")
				seen := len(s.cluster.asked("apply [web]", "delete"))
				req := change("again.web_bad", "xl")
				req.OnFailure = tc.policy
				op := e.upgrade(t, first.Subject.ID, req)
				if op.State != nf.OperationFailed || op.Failure.Step != "wait 2/2 s1" {
					t.Errorf("%s: %s %+v", tc.reason, op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.want, s.cluster.asked("apply [web]", "delete")[seen:]); diff != "" {
					t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
				}
				if tc.policy == nf.Undo {
					return
				}
				op, err := e.Undo(t.Context(), op.ID, nf.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %s %+v", tc.reason, op.State, op.Failure)
				}
			})
		})
	}
}

// TestRecreateTwin changes what cannot be changed in one of two objects of the
// same kind and name, in different groups: that one alone is made again.
func TestRecreateTwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "twin.web-again.web")
		s.cluster.fix("again/ns/web")
		var told []string
		preview, err := e.PreviewUpgrade(t.Context(), first.Subject.ID, change("twin.web-again.web", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range preview.Changes {
			told = append(told, string(c.Action)+" "+c.Key())
		}
		slices.Sort(told)
		if diff := cmp.Diff([]string{"configured again.example.org/ns/web", "recreated again/ns/web"}, told); diff != "" {
			t.Errorf("a dry run (-want +got):\n%s", diff)
		}
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("twin.web-again.web", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Fatalf("%s: %+v", op.State, op.Failure)
		}
		var done []string
		changes, _ := e.Changes(t.Context(), op.ID)
		for _, c := range changes {
			done = append(done, string(c.Action)+" "+c.Key())
		}
		slices.Sort(done)
		if diff := cmp.Diff([]string{"configured again.example.org/ns/web", "recreated again/ns/web"}, done); diff != "" {
			t.Errorf("the upgrade (-want +got):\n%s", diff)
		}
	})
}
