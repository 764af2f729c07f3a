package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// dryRunResult is the result of a dry run.
type dryRunResult struct {
	unchecked []nf.Ref
	err       error
}

func (c *fakeCluster) DryRun(ctx context.Context, _ nf.Subject, objects []*unstructured.Unstructured, called []string) ([]nf.Ref, error) {
	var names []string
	for _, u := range objects {
		names = append(names, u.GetName())
	}
	leave, err := c.enter(ctx, fmt.Sprintf("dry-run %v", names))
	if err != nil {
		return nil, err
	}
	defer leave()
	c.dryRunNames = called
	return c.dryRunResult.unchecked, c.dryRunResult.err
}

// TestDryRunOfWhatIsWorthARequest counts what the API server is asked about
// before an upgrade is accepted.
func TestDryRunOfWhatIsWorthARequest(t *testing.T) {
	upgrade := func(pkg, check string) func(*testing.T, *engine, string) error {
		return func(t *testing.T, e *engine, id string) error {
			t.Helper()
			req := nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Package = pkg; return nil }, Options: nf.Options{Check: check}}
			_, err := e.Upgrade(t.Context(), id, req)
			return err
		}
	}
	cases := map[string]struct {
		reason string
		change func(t *testing.T, e *engine, id string) error
		want   []string
	}{
		"the same":        {"the API server has taken all of it", upgrade("db_web-twin.x", ""), []string{}},
		"new":             {"it has not seen one", upgrade("db_web-new", ""), []string{"dry-run [new]"}},
		"custom resource": {"its schema says all", upgrade("db_web-twin.y", ""), []string{}},
		"asked for":       {"the request wants all", upgrade("db_web-new-twin.x", nf.CheckServer), []string{"dry-run [db web new x]"}},
		"other values": {
			"each has changed", func(t *testing.T, e *engine, id string) error {
				t.Helper()
				_, err := e.Upgrade(t.Context(), id, change("db_web-twin.x", "xl"))
				return err
			}, []string{"dry-run [db web]"},
		},
		"preview": {
			"the comparison is a dry run already", func(t *testing.T, e *engine, id string) error {
				t.Helper()
				_, err := e.PreviewUpgrade(t.Context(), id, change("db_new", "xl"))
				return err
			}, []string{},
		},
		"preview of hooks": {
			"a comparison does not show them", func(t *testing.T, e *engine, id string) error {
				t.Helper()
				_, err := e.PreviewUpgrade(t.Context(), id, change("db_web-late.x", "xl"))
				return err
			}, []string{"dry-run [x]"},
		},
		"rollback": {
			"what has changed since is new again", func(t *testing.T, e *engine, id string) error {
				t.Helper()
				op, err := e.Upgrade(t.Context(), id, change("db_web-twin.x", "xl"))
				if err != nil {
					return err
				}
				e.end(t, op)
				_, err = e.Rollback(t.Context(), id, nf.RollbackRequest{})
				return err
			}, []string{"dry-run [db web]", "dry-run [db web]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, "db_web-twin.x")
				if diff := cmp.Diff([]string{"dry-run [db web]"}, s.cluster.asked("dry-run")); diff != "" {
					t.Errorf("all of an instance is new: (-want +got):\n%s", diff)
				}
				s.cluster.calls = nil
				if err := tc.change(t, e, first.Subject.ID); err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, s.cluster.asked("dry-run")); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestDryRunRefuses has the API server call an object wrong.
func TestDryRunRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db")
		records := s.records()
		s.cluster.calls = nil
		s.cluster.dryRunResult.err = nf.E(nf.Invalid, "apply", "objects", nf.Violations{{Object: configMap("web"), Field: "data", Message: "is bad"}})
		_, err := e.Upgrade(t.Context(), first.Subject.ID, change("web", ""))
		want := nf.Violations{{File: "list", Line: 1, Object: configMap("web"), Field: "data", Message: "is bad"}}
		if diff := cmp.Diff(want, nf.ViolationsOf(err)); nf.KindOf(err) != nf.Invalid || diff != "" {
			t.Errorf("the violation names its place in the package: %v (-want +got):\n%s", err, diff)
		}
		_, err = e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "web"}})
		if nf.KindOf(err) != nf.Invalid {
			t.Errorf("a new instance is refused as well: %v", err)
		}
		if diff := cmp.Diff(records, s.records()); diff != "" || len(s.cluster.asked("apply", "ensure")) > 0 {
			t.Errorf("nothing is touched: %v (-want +got):\n%s", s.cluster.calls, diff)
		}
	})
}

// TestDryRunWarns has objects that the API server cannot check yet.
func TestDryRunWarns(t *testing.T) {
	cases := map[string]struct {
		reason string
		check  string
		want   []string
	}{
		"asked for": {"the request asks for this check", nf.CheckServer, []string{"the API server did not check ConfigMap ns/db (objects in all: 1): the kind or namespace " +
			"does not exist yet, or the dry run was refused for another reason than a field"}},
		"not asked for": {"most packages bring their namespace", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				s.cluster.dryRunResult.unchecked = []nf.Ref{configMap("db")}
				op := e.up(t, "db", func(r *nf.InstantiateRequest) { r.Check = tc.check })
				if diff := cmp.Diff(tc.want, op.Warnings); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestDryRunKnowsTheNames has the names of an instance, by which a dry run may be
// that of another instance.
func TestDryRunKnowsTheNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		check  string
		want   []string
	}{
		"not asked for": {"equal objects of other instances count", "", []string{"vnf-1", "web", "released", "ns", "more"}},
		"asked for":     {"every object is checked itself", nf.CheckServer, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.start().up(t, "db", func(r *nf.InstantiateRequest) {
					r.ID, r.Name, r.Release, r.Namespaces, r.Check = "vnf-1", "web", "released", []string{"more"}, tc.check
				})
				if diff := cmp.Diff(tc.want, s.cluster.dryRunNames); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
