package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const allPlans = 256 << 20 // bytes of a budget

// TestPlanMemory makes each request that has a plan while others use all memory for plans,
// and again when it is free.
func TestPlanMemory(t *testing.T) {
	t.Parallel()
	type request func(ctx context.Context, e *engine) error
	only := func(e *engine, ctx context.Context) nf.Instance { return e.only(ctx) }
	dryRun := func(_ nf.Preview, err error) error { return err }
	accepted := func(_ nf.Operation, err error) error { return err }
	created := nf.InstantiateRequest{Region: "east", Namespace: "other", Spec: nf.Spec{Package: "a_b"}}
	failed := func(t *testing.T, s *site, e *engine) {
		e.up(t, "db_old", named)
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		req := change("db_bad", "xl")
		req.OnFailure = nf.Keep
		op, err := e.Upgrade(t.Context(), e.only(t.Context()).ID, req)
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		s.cluster.refuse("bad", nil)
	}
	changed := func(t *testing.T, _ *site, e *engine) {
		first := e.up(t, "db_old", named)
		op, err := e.Upgrade(t.Context(), first.Subject.ID, change("db", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
	}
	cases := map[string]struct {
		prepare func(*testing.T, *site, *engine)
		do      request
	}{
		"Instantiate":        {nil, func(ctx context.Context, e *engine) error { return accepted(e.Instantiate(ctx, created)) }},
		"PreviewInstantiate": {nil, func(ctx context.Context, e *engine) error { return dryRun(e.PreviewInstantiate(ctx, created)) }},
		"Adopt":              {running("db"), func(ctx context.Context, e *engine) error { return accepted(e.Adopt(ctx, adoptRequest("db"))) }},
		"PreviewAdopt":       {running("db"), func(ctx context.Context, e *engine) error { return dryRun(e.PreviewAdopt(ctx, adoptRequest("db"))) }},
		"Upgrade": {changed, func(ctx context.Context, e *engine) error {
			return accepted(e.Upgrade(ctx, only(e, ctx).ID, change("db_new", "xl")))
		}},
		"PreviewUpgrade": {changed, func(ctx context.Context, e *engine) error {
			return dryRun(e.PreviewUpgrade(ctx, only(e, ctx).ID, change("db_new", "xl")))
		}},
		"Configure": {changed, func(ctx context.Context, e *engine) error {
			return accepted(e.Configure(ctx, only(e, ctx).ID, amendments(amendment("a", "db", "m"))))
		}},
		"PreviewConfigure": {changed, func(ctx context.Context, e *engine) error {
			return dryRun(e.PreviewConfigure(ctx, only(e, ctx).ID, amendments(amendment("a", "db", "m"))))
		}},
		"Rollback": {changed, func(ctx context.Context, e *engine) error {
			return accepted(e.Rollback(ctx, only(e, ctx).ID, nf.RollbackRequest{Revision: 1}))
		}},
		"PreviewRollback": {changed, func(ctx context.Context, e *engine) error {
			return dryRun(e.PreviewRollback(ctx, only(e, ctx).ID, nf.RollbackRequest{Revision: 1}))
		}},
		"Retry": {failed, func(ctx context.Context, e *engine) error {
			return accepted(e.Retry(ctx, only(e, ctx).LastOperation, nf.Options{}))
		}},
		"PreviewRetry": {failed, func(ctx context.Context, e *engine) error {
			return dryRun(e.PreviewRetry(ctx, only(e, ctx).LastOperation, nf.Options{}))
		}},
		"Undo": {failed, func(ctx context.Context, e *engine) error {
			return accepted(e.Undo(ctx, only(e, ctx).LastOperation, nf.Options{}))
		}},
		"PreviewUndo": {failed, func(ctx context.Context, e *engine) error {
			return dryRun(e.PreviewUndo(ctx, only(e, ctx).LastOperation, nf.Options{}))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, plans := newSite(t), budget.New(allPlans)
				e := s.start(func(c *config) { c.Plans = plans })
				if tc.prepare != nil {
					tc.prepare(t, s, e)
				}
				others := plans.Open(allPlans)
				if !others.TryReserve(allPlans) {
					t.Fatal("an ended request still holds memory")
				}
				before := s.sizes()
				if err := tc.do(t.Context(), e); nf.KindOf(err) != nf.TooManyRequests {
					t.Errorf("without memory: %v, want too many requests", err)
				}
				if after := s.sizes(); len(after) != len(before) {
					t.Errorf("the refused request left records: %v, before %v", after, before)
				}
				others.Close()
				if err := tc.do(t.Context(), e); err != nil {
					t.Errorf("with memory: %v", err)
				}
				if !others.TryReserve(allPlans) {
					t.Error("the request still holds memory after its end")
				}
			})
		})
	}
}

// TestPlansWait has more requests wait for memory than may: their plans exist already, so
// the others are refused at once.
func TestPlansWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, plans := newSite(t), budget.New(allPlans)
		e := s.start(func(c *config) { c.Plans = plans })
		others := plans.Open(allPlans)
		if !others.TryReserve(allPlans) {
			t.Fatal("there is no memory")
		}
		const most, more = 8, 3
		results := make(chan error, most+more)
		for range most + more {
			go func() {
				_, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a_b"}})
				results <- err
			}()
		}
		synctest.Wait()
		if n := len(results); n != more {
			t.Fatalf("%d of %d requests were refused at once, want %d", n, most+more, more)
		}
		for range more {
			err := <-results
			if refused, ok := errors.AsType[*nf.Error](err); nf.KindOf(err) != nf.TooManyRequests || !ok || refused.RetryAfter != time.Second {
				t.Errorf("a request that cannot wait: %v", err)
			}
		}
		others.Close()
		for range most {
			if err := <-results; err != nil {
				t.Errorf("a request that waited: %v", err)
			}
		}
	})
}
