package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestUndoReturnsToNamespaces undoes an upgrade that has left a namespace
// already, which was removed.
func TestUndoReturnsToNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason, fails string
		err           error
	}{
		"After it has left":    {"a hook fails after the namespace is gone", "apply [late]", nf.E(nf.Invalid, "apply", "Job ns/late", nil)},
		"While it was leaving": {"the namespace cannot be removed", "remove namespace mon", nf.E(nf.Invalid, "delete", "namespace mon", nil)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, "a-b", opening("b", "mon"))
				s.cluster.fails = map[string]error{tc.fails: tc.err}
				op, err := e.Upgrade(t.Context(), first.Subject.ID, nf.UpgradeRequest{Options: nf.Options{OnFailure: nf.Undo}, Edit: func(s *nf.Spec) error {
					s.Package, s.Namespaces, s.Inputs.Parameters = "a-late.late", nil, nil
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.OperationFailed || len(s.cluster.fails) > 0 {
					t.Fatalf("%s: %s, %+v, %v", tc.reason, op.State, op.Failure, s.cluster.calls)
				}
				if diff := cmp.Diff([]string{"a", "b"}, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff([]string{"mon", "ns"}, s.cluster.madeNamespaces()); diff != "" {
					t.Errorf("%s: namespaces (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestFurtherNamespaces follows the further namespaces of an instance through
// changes: they are made, shared, left by the last instance, and undone.
func TestFurtherNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "a-b", opening("b", "mon"))
		want := func(when string, namespaces, objects []string) {
			t.Helper()
			if diff := cmp.Diff(namespaces, s.cluster.madeNamespaces()); diff != "" {
				t.Errorf("namespaces %s (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(objects, s.cluster.live()); diff != "" {
				t.Errorf("objects %s (-want +got):\n%s", when, diff)
			}
		}
		want("of the first", []string{"mon", "ns"}, []string{"a", "b"})
		second := e.up(t, "c", func(r *nf.InstantiateRequest) {
			r.Namespace, r.Namespaces = "other", []string{"mon"}
			r.Inputs.Parameters = placed(map[string]any{"c": "mon"})
		})
		move := func(pkg, to string) nf.Operation {
			t.Helper()
			op, err := e.Upgrade(t.Context(), first.Subject.ID, nf.UpgradeRequest{Options: nf.Options{OnFailure: nf.Undo}, Edit: func(s *nf.Spec) error {
				s.Package, s.Namespaces = pkg, []string{to}
				s.Inputs.Parameters = placed(map[string]any{"b": to})
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return e.end(t, op)
		}
		move("a-b", "logs")
		want("when the first has moved", []string{"logs", "mon", "ns", "other"}, []string{"a", "b", "c"})

		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		if op := move("a-b-bad", "tmp"); op.State != nf.OperationFailed {
			t.Fatalf("a move that fails: %s", op.State)
		}
		want("when a move failed", []string{"logs", "mon", "ns", "other"}, []string{"a", "b", "c"})

		for _, op := range []nf.Operation{second, first} {
			gone, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, gone)
		}
		want("at the end", []string{}, []string{})
		if left := s.records(); len(left) > 0 {
			t.Errorf("the store still has %v", left)
		}
	})
}

// TestDefaultNamespace holds where an instance goes whose request names no
// namespace.
func TestDefaultNamespace(t *testing.T) {
	cases := map[string]struct{ reason, usual, named, want string }{
		"Named":  {"what is named is taken", "edge", "ns", "ns"},
		"Region": {"a region may have a namespace for the rest", "edge", "", "edge"},
		"None":   {"without one it is Kubernetes' own default", "", "", "default"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.catalog.usual = tc.usual
				e := s.start()
				op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Namespace = tc.named })
				in, err := e.Instance(t.Context(), op.Subject.ID)
				if err != nil || in.Namespace != tc.want || op.State != nf.Succeeded {
					t.Errorf("%s: it is in %q, want %q: %s, %v", tc.reason, in.Namespace, tc.want, op.State, err)
				}
			})
		})
	}
}

// TestContainedNamespaceHasNoOwner terminates an instance whose package contains its
// namespace. The namespace may remain, and then it is free for another instance.
func TestContainedNamespaceHasNoOwner(t *testing.T) {
	s := newSite(t)
	e := s.start()
	id := e.up(t, "Namespace.ns-db_web").Subject.ID
	ended, err := e.Terminate(t.Context(), id, nf.TerminateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if ended = e.end(t, ended); ended.State != nf.Succeeded {
		t.Fatalf("the termination %s: %v", ended.State, ended.Failure)
	}
	for _, o := range s.cluster.objects {
		if o.owner.ID != "" {
			t.Errorf("%s belongs to %s", nf.RefOf(o.object), o.owner)
		}
	}
}
