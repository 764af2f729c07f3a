package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestPreviewsAreTrue compares a dry run with the operation that follows: its changes by
// name, without those that change nothing.
func TestPreviewsAreTrue(t *testing.T) {
	t.Parallel()
	type verb func(e *engine, ctx context.Context) (nf.Operation, error)
	type preview func(e *engine, ctx context.Context) (nf.Preview, error)
	last := func(e *engine, ctx context.Context) string { return e.only(ctx).LastOperation }
	retry := func(e *engine, ctx context.Context) (nf.Operation, error) {
		return e.Retry(ctx, last(e, ctx), nf.Options{})
	}
	previewRetry := func(e *engine, ctx context.Context) (nf.Preview, error) {
		return e.PreviewRetry(ctx, last(e, ctx), nf.Options{})
	}
	undo := func(e *engine, ctx context.Context) (nf.Operation, error) {
		return e.Undo(ctx, last(e, ctx), nf.Options{})
	}
	previewUndo := func(e *engine, ctx context.Context) (nf.Preview, error) {
		return e.PreviewUndo(ctx, last(e, ctx), nf.Options{})
	}
	// fails fails a request, whose results are kept, and then removes the cause.
	fails := func(request func(context.Context, *engine, nf.RequestKey) (nf.Operation, error)) func(*testing.T, *site, *engine) {
		return func(t *testing.T, s *site, e *engine) {
			s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
			op, err := request(t.Context(), e, nf.RequestKey{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
			s.cluster.refuse("bad", nil)
		}
	}
	upgradeTo := func(pkg string) func(*testing.T, *site, *engine) {
		return func(t *testing.T, s *site, e *engine) {
			e.up(t, "db_old", named)
			fails(func(ctx context.Context, e *engine, _ nf.RequestKey) (nf.Operation, error) {
				req := change(pkg, "xl")
				req.OnFailure = nf.Keep
				return e.Upgrade(ctx, e.only(ctx).ID, req)
			})(t, s, e)
		}
	}
	scaleFails := func(t *testing.T, s *site, e *engine) {
		e.up(t, "db_web", named)
		refuseScale(s)
		op, err := acted(scaleTo(5, "db", "web"), nf.Keep)(t.Context(), e, nf.RequestKey{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		s.cluster.rejects = nil
	}
	cases := map[string]struct {
		reason  string
		prepare func(*testing.T, *site, *engine)
		preview preview
		do      verb
		want    map[string]nf.Action
	}{
		"Retry":       {"a retry continues", upgradeTo("db_bad-new"), previewRetry, retry, map[string]nf.Action{"bad": nf.Created, "new": nf.Created, "old": nf.Deleted}},
		"Undo":        {"an undo returns to the active revision", upgradeTo("db_bad-new"), previewUndo, undo, map[string]nf.Action{"db": nf.Configured}},
		"UndoCreate":  {"that of a new instance deletes", fails(keptCreation("x-y_bad")), previewUndo, undo, map[string]nf.Action{"x": nf.Deleted, "y": nf.Deleted}},
		"RetryCreate": {"its retry creates", fails(keptCreation("x-y_bad")), previewRetry, retry, map[string]nf.Action{"bad": nf.Created}},
		"UndoAdopt": {"what was adopted is given back", func(t *testing.T, s *site, e *engine) {
			running("db")(t, s, e)
			fails(createAdopting("db-new_bad", nf.Keep))(t, s, e)
		}, previewUndo, undo, map[string]nf.Action{"db": nf.Orphaned, "new": nf.Deleted}},
		"RetryScale": {"an action is repeated", scaleFails, previewRetry, retry, map[string]nf.Action{"web": nf.Configured}},
		"Adopt": {"an adoption", running("db", "web"), func(e *engine, ctx context.Context) (nf.Preview, error) {
			return e.PreviewAdopt(ctx, adoptRequest("db_web-absent"))
		}, func(e *engine, ctx context.Context) (nf.Operation, error) {
			return e.Adopt(ctx, adoptRequest("db_web-absent"))
		}, map[string]nf.Action{"db": nf.Adopted, "web": nf.Adopted}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				tc.prepare(t, s, e)
				before := s.sizes()
				p, err := tc.preview(e, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, s.sizes()); diff != "" {
					t.Errorf("the dry run changes nothing (-want +got)\n%s", diff)
				}
				op, err := tc.do(e, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				e.end(t, op)
				changes, err := e.Changes(t.Context(), op.ID)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, effects(p.Changes)); diff != "" {
					t.Errorf("%s: the dry run (-want +got)\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.want, effects(changes)); diff != "" {
					t.Errorf("%s: the operation (-want +got)\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// keptCreation creates an instance whose failure is kept.
func keptCreation(pkg string) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		req := adopting(pkg, nf.Keep, key)
		req.Adopt = false
		return e.Instantiate(ctx, req)
	}
}

func adoptRequest(pkg string) nf.AdoptRequest {
	return nf.AdoptRequest{
		InstantiateRequest: nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "vnf", Spec: nf.Spec{Package: pkg}},
		Selector:           nf.AdoptionSelector{Labels: map[string]string{"mark": "x"}},
	}
}

// effects returns the actions that change something, by the names of the objects. Of
// several changes of one object, the last is its effect; that of a restored object is
// that it has no owner.
func effects(changes []nf.Change) map[string]nf.Action {
	out := map[string]nf.Action{}
	for _, c := range changes {
		if c.Action != nf.Unchanged {
			out[c.Name] = c.Action
		}
	}
	return out
}

func TestPreviewTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db_probe.p-probe.q", named)
		id := e.only(t.Context()).ID
		p, err := e.PreviewTest(t.Context(), id, nf.TestRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]nf.Action{"p": nf.Created, "q": nf.Created}, effects(p.Changes)); diff != "" {
			t.Errorf("the objects of the tests are listed (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"db": ""}, s.sizes()); diff != "" {
			t.Errorf("no test runs (-want +got)\n%s", diff)
		}
		if _, err := e.PreviewRetry(t.Context(), e.only(t.Context()).LastOperation, nf.Options{}); nf.KindOf(err) != nf.Conflict {
			t.Errorf("an operation that succeeded is not retried: %v", err)
		}
	})
}
