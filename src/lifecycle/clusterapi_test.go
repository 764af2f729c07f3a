package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestClusterIsDeletedFirst deletes the objects of a package with a Cluster, whatever the
// stages are in which it has them.
func TestClusterIsDeletedFirst(t *testing.T) {
	const pkg = "template.small-key_machines.workers-cluster.edge_web"
	cases := map[string]struct {
		reason string
		act    func(ctx context.Context, s *site, e *engine, id string) (nf.Operation, error)
		want   []string
	}{
		"Terminate": {
			"the Cluster alone, what belongs to it, and then stage by stage, with what the machines need last",
			func(ctx context.Context, _ *site, e *engine, id string) (nf.Operation, error) {
				return e.Terminate(ctx, id, nf.TerminateRequest{})
			},
			[]string{"delete [edge]", "delete [workers]", "delete [web]", "delete [key small]"},
		},
		"Prune": {
			"an upgrade without the Cluster deletes in the same order",
			func(ctx context.Context, _ *site, e *engine, id string) (nf.Operation, error) {
				req := change("web", "")
				_, err := e.Upgrade(ctx, id, req)
				req.Confirm = nf.ConfirmOf(err) // what runs in the cluster would be lost
				return e.Upgrade(ctx, id, req)
			},
			[]string{"delete [edge]", "delete [workers]", "delete [key small]"},
		},
		"Undo": {
			"and so does the undo of a creation",
			func(ctx context.Context, s *site, e *engine, _ string) (nf.Operation, error) {
				s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
				return e.Instantiate(ctx, nf.InstantiateRequest{Region: "east", Namespace: "two", Spec: nf.Spec{Package: pkg + "_bad"}})
			},
			[]string{"delete [edge]", "delete [workers]", "delete [bad]", "delete [web]", "delete [key small]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start(func(c *config) { c.DeletionGuard.Share = 1 })
				id := e.up(t, pkg).Subject.ID
				op, err := tc.act(t.Context(), s, e, id)
				if err != nil {
					t.Fatal(err)
				}
				e.end(t, op)
				if diff := cmp.Diff(tc.want, s.cluster.asked("delete")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestTemplateIsKeptWhileMachinesUseIt replaces the template of machines in an upgrade
// that does not wait otherwise.
func TestTemplateIsKeptWhileMachinesUseIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.DeletionGuard.Share = 1 })
		id := e.up(t, "template.small_machines.workers").Subject.ID
		s.cluster.script("workers", nf.InProgress, "2 of 3 machines are up to date")
		req := change("template.large_machines.workers", "xl")
		req.NoWait = true
		op, err := e.Upgrade(t.Context(), id, req)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.cluster.live(); !slices.Contains(got, "small") || !slices.Contains(got, "large") {
			t.Errorf("during the roll-out there are %v", got)
		}
		s.cluster.script("workers", nf.Current, "")
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the upgrade ends as %s: %+v", op.State, op.Failure)
		}
		if diff := cmp.Diff([]string{"large", "workers"}, s.cluster.live()); diff != "" {
			t.Errorf("after it (-want +got):\n%s", diff)
		}
	})
}
