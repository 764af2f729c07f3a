package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestVolumeClaimsOfPrunedSets takes a StatefulSet out of an instance.
func TestVolumeClaimsOfPrunedSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "a-set.db")
		s.cluster.claim("data-db-0", "db")
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("a", ""))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"volume claims of StatefulSets stay, with their data: PersistentVolumeClaim ns/data-db-0"}
		if diff := cmp.Diff(want, e.end(t, op).Warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "data-db-0"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// TestVolumeClaims terminates instances whose StatefulSets have made claims.
func TestVolumeClaims(t *testing.T) {
	const stay = "volume claims of StatefulSets stay, with their data: PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1; claims=delete would have deleted them"
	cases := map[string]struct {
		reason     string
		pkg        string
		request    nf.TerminateRequest
		script     func(*fakeCluster)
		live       []string
		namespaces []string // that the service made, and that are left
		warnings   []string
		policy     nf.ClaimPolicy // of the instance
	}{
		"Kept": {
			reason: "they stay unless the request says otherwise, and that is said", pkg: "set.db", live: []string{"data-db-0", "data-db-1", "data-other-0"},
			namespaces: []string{"ns"},
			warnings: []string{
				stay, "namespace ns remains: it contains PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1, PersistentVolumeClaim ns/data-other-0",
			},
		},
		"Deleted": {
			reason: "they go, and no other's", pkg: "set.db", request: nf.TerminateRequest{Claims: nf.ClaimsDelete}, live: []string{"data-other-0"}, namespaces: []string{"ns"},
			warnings: []string{"namespace ns remains: it contains PersistentVolumeClaim ns/data-other-0"},
		},
		"Policy": {
			reason: "or if the instance says so", pkg: "set.db", policy: nf.ClaimsDelete, live: []string{"data-other-0"}, namespaces: []string{"ns"},
			warnings: []string{"namespace ns remains: it contains PersistentVolumeClaim ns/data-other-0"},
		},
		"PolicyOrphan": {
			reason: "but not if its objects stay", pkg: "set.db", policy: nf.ClaimsDelete, request: nf.TerminateRequest{Orphan: true},
			live: []string{"data-db-0", "data-db-1", "data-other-0", "db"}, namespaces: []string{"ns"},
			warnings: []string{"namespace ns remains: it contains PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1, PersistentVolumeClaim ns/data-other-0 and 1 more"},
		},
		"PolicyOverruled": {
			reason: "the request takes precedence", pkg: "set.db", policy: nf.ClaimsDelete, request: nf.TerminateRequest{Claims: nf.ClaimsKeep},
			live: []string{"data-db-0", "data-db-1", "data-other-0"}, namespaces: []string{"ns"},
			warnings: []string{
				stay, "namespace ns remains: it contains PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1, PersistentVolumeClaim ns/data-other-0",
			},
		},
		"DeletedWithTheNamespace": {
			reason: "and when nothing is left, the namespace goes", pkg: "set.db", request: nf.TerminateRequest{Claims: nf.ClaimsDelete}, live: []string{}, namespaces: []string{},
			script: func(c *fakeCluster) { c.lose("data-other-0") },
		},
		"OfALostSet": {
			reason: "a StatefulSet that another client deleted is known from the plan", pkg: "set.db", request: nf.TerminateRequest{Claims: nf.ClaimsDelete}, live: []string{}, namespaces: []string{},
			script: func(c *fakeCluster) { c.lose("data-other-0"); c.lose("db") },
		},
		"OfThePackage": {
			reason: "a claim of the package goes in its stage, and is not said to stay", pkg: "PersistentVolumeClaim.data-db-2_set.db", live: []string{}, namespaces: []string{},
			script: func(c *fakeCluster) { c.lose("data-other-0"); c.lose("data-db-0"); c.lose("data-db-1") },
		},
		"Forbidden": {
			reason: "a region that does not let claims be listed does not keep the instance from being removed", pkg: "set.db",
			live: []string{"data-db-0", "data-db-1"}, namespaces: []string{"ns"},
			script: func(c *fakeCluster) {
				c.lose("data-other-0")
				c.volumesErr = nf.E(nf.Failed, "list", "claims", errors.New("forbidden"))
			},
			warnings: []string{"namespace ns remains: it contains PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1"},
		},
		"NoSet": {reason: "without a StatefulSet nothing is looked for", pkg: "db", live: []string{}, namespaces: []string{}, script: func(c *fakeCluster) {
			c.lose("data-other-0")
			c.lose("data-db-0")
			c.lose("data-db-1")
			c.volumesErr = errors.New("it was looked for")
		}},
		"Orphan": {
			reason: "an instance whose objects stay keeps its claims", pkg: "set.db", request: nf.TerminateRequest{Orphan: true},
			live: []string{"data-db-0", "data-db-1", "data-other-0", "db"}, namespaces: []string{"ns"},
			warnings: []string{"namespace ns remains: it contains PersistentVolumeClaim ns/data-db-0, PersistentVolumeClaim ns/data-db-1, PersistentVolumeClaim ns/data-other-0 and 1 more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				op := e.up(t, tc.pkg, func(r *nf.InstantiateRequest) { r.Claims = tc.policy })
				s.cluster.claim("data-db-0", "db")
				s.cluster.claim("data-db-1", "db")
				s.cluster.claim("data-other-0", "other")
				if tc.script != nil {
					tc.script(s.cluster)
				}
				op, err := e.Terminate(t.Context(), op.Subject.ID, tc.request)
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Fatalf("%s: %+v", tc.reason, op.Failure)
				}
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.namespaces, s.cluster.madeNamespaces()); diff != "" {
					t.Errorf("%s: namespaces (-want +got):\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.warnings, op.Warnings); diff != "" {
					t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestVolumeClaimsAfterAFailedRemoval has a removal fail that was to delete
// claims, and then something else happens to the instance.
func TestVolumeClaimsAfterAFailedRemoval(t *testing.T) {
	cases := map[string]struct {
		reason string
		next   func(*testing.T, *engine, nf.Operation) (nf.Operation, error)
		live   []string
		owners map[string]string // of the claims that are left: "instance" or ""
	}{
		"Retry": {
			reason: "a retry deletes them", live: []string{},
			next: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Retry(t.Context(), op.ID, nf.Options{})
			},
		},
		"Keep": {
			reason: "a removal that is to keep them lets go of them", live: []string{"data-db-0"}, owners: map[string]string{"data-db-0": ""},
			next: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
			},
		},
		"Upgrade": {
			reason: "an upgrade deletes none", live: []string{"data-db-0", "db", "web"}, owners: map[string]string{"data-db-0": "instance"},
			next: func(t *testing.T, e *engine, op nf.Operation) (nf.Operation, error) {
				return e.Upgrade(t.Context(), op.Subject.ID, change("set.db-web", "xl"))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				op := e.up(t, "set.db")
				s.cluster.claim("data-db-0", "db")
				s.cluster.finalizer["db"] = true
				op, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{Claims: nf.ClaimsDelete, Options: nf.Options{Timeout: time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.OperationFailed {
					t.Fatalf("the removal: %s", op.State)
				}
				delete(s.cluster.finalizer, "db")
				next, err := tc.next(t, e, op)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if next = e.end(t, next); next.State != nf.Succeeded {
					t.Errorf("%s: %+v", tc.reason, next.Failure)
				}
				if diff := cmp.Diff(tc.live, s.cluster.live()); diff != "" {
					t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
				}
				for _, o := range s.cluster.objects {
					want, is := tc.owners[o.object.GetName()]
					if is && o.owner.ID != map[string]string{"instance": op.Subject.ID}[want] {
						t.Errorf("%s: %s belongs to %q, want %q", tc.reason, o.object.GetName(), o.owner.ID, want)
					}
				}
				if left := s.world().unknown(); len(left) > 0 && len(tc.owners) == 0 {
					t.Errorf("%s: in no inventory: %v", tc.reason, left)
				}
			})
		})
	}
}

func TestVolumeClaimsAndOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		op := e.up(t, "set.db")
		_, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{Orphan: true, Claims: nf.ClaimsDelete})
		if v := nf.ViolationsOf(err); nf.KindOf(err) != nf.Invalid || len(v) != 1 || v[0].Field != "claims" {
			t.Errorf("objects that stay and claims that go: %v", err)
		}
	})
}

// claimed makes an instance whose StatefulSet has made volume claims.
func claimed(pkg string) func(*testing.T, *site, *engine) {
	return func(t *testing.T, s *site, e *engine) {
		e.up(t, pkg, named)
		s.cluster.claim("data-db-0", "db")
		s.cluster.claim("data-db-1", "db")
	}
}

// terminateWhole removes the volume claims of StatefulSets, too.
func terminateWhole(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
	return e.Terminate(ctx, e.only(ctx).ID, nf.TerminateRequest{Claims: nf.ClaimsDelete, Options: nf.Options{Key: key}})
}
