package lifecycle_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDisabledPackage disables the packages of an instance, "a" and its amendment
// "b", and "other".
func TestDisabledPackage(t *testing.T) {
	upgrade := func(edit func(*nf.Spec)) func(*testing.T, *engine, string) error {
		return func(t *testing.T, e *engine, id string) error {
			req := nf.UpgradeRequest{Edit: func(s *nf.Spec) error { edit(s); return nil }}
			_, previewErr := e.PreviewUpgrade(t.Context(), id, req)
			op, err := e.Upgrade(t.Context(), id, req)
			if (previewErr == nil) != (err == nil) {
				t.Errorf("the preview says %v, the request %v", previewErr, err)
			}
			if err == nil {
				e.end(t, op)
			}
			return err
		}
	}
	instantiate := func(spec nf.Spec) func(*testing.T, *engine, string) error {
		return func(t *testing.T, e *engine, _ string) error {
			_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: spec})
			return err
		}
	}
	accepted := func(t *testing.T, e *engine, op nf.Operation, err error) error {
		if err == nil {
			e.end(t, op)
		}
		return err
	}
	configure := func(edit func(*nf.Spec)) func(*testing.T, *engine, string) error {
		return func(t *testing.T, e *engine, id string) error {
			op, err := e.Configure(t.Context(), id, nf.ConfigureRequest{Edit: func(s *nf.Spec) error { edit(s); return nil }})
			return accepted(t, e, op, err)
		}
	}
	adopt := func(t *testing.T, e *engine, _ string) error {
		req := nf.AdoptRequest{Selector: nf.AdoptionSelector{Labels: map[string]string{"x": "y"}}}
		req.Region, req.Namespace, req.Package = "east", "ns", "other"
		_, err := e.Adopt(t.Context(), req)
		return err
	}
	cases := map[string]struct {
		reason   string
		replaced bool // the content of each package
		do       func(*testing.T, *engine, string) error
		refused  bool
	}{
		"Instantiate": {"nothing new comes from it", false, instantiate(nf.Spec{Package: "other"}), true},
		"Amended":     {"nor through an amendment", false, instantiate(nf.Spec{Package: "c_new", Amendments: []nf.Amendment{{Name: "x", Package: "other"}}}), true},
		"Adopt":       {"an adopted instance is a new one", false, adopt, true},
		"UpgradeTo":   {"it is not upgraded to", false, upgrade(func(s *nf.Spec) { s.Package = "other" }), true},
		"Change":      {"an instance of it can be changed", false, upgrade(func(s *nf.Spec) { s.Description = "new" }), false},
		"Replaced":    {"but not take a content that it does not have", true, upgrade(func(s *nf.Spec) { s.Description = "new" }), true},
		"Amend":       {"an amendment of it is not added", false, configure(func(s *nf.Spec) { s.Amendments = append(s.Amendments, nf.Amendment{Name: "y", Package: "other"}) }), true},
		"Configure":   {"one that is there is changed", false, configure(func(s *nf.Spec) { s.Amendments[0].Inputs.Parameters = map[string]any{"k": "v"} }), false},
		"Unamend":     {"or taken away", false, configure(func(s *nf.Spec) { s.Amendments = nil }), false},
		"Rollback": {"a stored plan is not rendered", true, func(t *testing.T, e *engine, id string) error {
			op, err := e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: 1})
			return accepted(t, e, op, err)
		}, false},
		"Terminate": {"it can end", true, func(t *testing.T, e *engine, id string) error {
			op, err := e.Terminate(t.Context(), id, nf.TerminateRequest{})
			return accepted(t, e, op, err)
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Amendments = []nf.Amendment{{Name: "x", Package: "b"}} })
				if err := upgrade(func(s *nf.Spec) { s.Description = "second" })(t, e, op.Subject.ID); err != nil {
					t.Fatal(err)
				}
				s.catalog.alters = func(p *nf.Package) {
					if p.Disabled = p.ID != "c_new"; tc.replaced {
						p.Digest += "-replaced"
					}
				}
				before, live, held := s.records(), s.cluster.live(), s.catalog.held()
				err := tc.do(t, e, op.Subject.ID)
				if tc.refused != (nf.KindOf(err) == nf.Conflict && nf.ReasonOf(err) == nf.ReasonDisabled) || !tc.refused && err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				after := []any{s.records(), s.cluster.live(), s.catalog.held()}
				if diff := cmp.Diff([]any{before, live, held}, after); tc.refused && diff != "" {
					t.Errorf("%s: the refused request changed records (-before +after):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestDisabledPackageIsRetried disables the package of an operation that failed.
func TestDisabledPackageIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"}
		e := s.start()
		op := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.OnFailure = nf.Keep })
		s.catalog.alters = func(p *nf.Package) { p.Disabled = true }
		delete(s.cluster.status, "web")
		again, err := e.Retry(t.Context(), op.ID, nf.Options{})
		if err != nil {
			t.Fatalf("an operation of a stored plan is not retried: %v", err)
		}
		if again = e.end(t, again); again.State != nf.Succeeded {
			t.Errorf("the retry is %s: %v", again.State, again.Failure)
		}
	})
}

// TestPackageWithoutContent uses a package that has no content yet.
func TestPackageWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.catalog.refuses = map[string]error{"empty": &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "package empty", Reason: nf.ReasonNoContent}}
		e := s.start()
		for _, spec := range []nf.Spec{{Package: "empty"}, {Package: "a", Amendments: []nf.Amendment{{Name: "x", Package: "empty"}}}} {
			_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: spec})
			if nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonNoContent {
				t.Errorf("instance of %+v: %v", spec, err)
			}
		}
		if left := s.records(); len(left) > 0 || len(s.catalog.held()) > 0 || len(s.cluster.live()) > 0 || s.catalog.inUse() > 0 {
			t.Errorf("left behind: records %v, holds %v, objects %v", left, s.catalog.held(), s.cluster.live())
		}
	})
}
