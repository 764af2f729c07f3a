package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// watching has the instance ask for the correction of drift.
func watching(ignore ...nf.DriftIgnore) func(*nf.InstantiateRequest) {
	return func(r *nf.InstantiateRequest) { r.Drift = nf.DriftPolicy{Mode: nf.DriftCorrect, Ignore: ignore} }
}

// drifted returns the objects of the instance that have drifted, by name.
func (e *engine) drifted(t *testing.T, keys ...string) (in nf.Instance, names []string, refs []nf.Ref) {
	t.Helper()
	in, drifts, err := e.Drift(t.Context(), e.only(t.Context()).ID, keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drifts {
		names, refs = append(names, d.Name), append(refs, d.Ref)
	}
	return in, names, refs
}

// TestDrift is about what counts as drift of an instance.
func TestDrift(t *testing.T) {
	cases := map[string]struct {
		reason  string
		pkg     string
		meddle  func(t *testing.T, s *site, e *engine)
		ignore  []nf.DriftIgnore
		keys    []string
		want    []string
		applied []string // by a correction
	}{
		"Nothing":   {reason: "what was applied is there", pkg: "db_web"},
		"Changed":   {reason: "another client changes objects of two stages", pkg: "db-old_web", meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.meddle("db", "x"); s.cluster.meddle("web", "x") }, want: []string{"db", "web"}, applied: []string{"apply [db]", "apply [web]"}},
		"Deleted":   {reason: "or deletes one", pkg: "db_web", meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.lose("web") }, want: []string{"web"}, applied: []string{"apply [web]"}},
		"Action":    {reason: "what an action has set is wanted", pkg: "db_web", meddle: func(t *testing.T, _ *site, e *engine) { e.act(t, e.only(t.Context()).ID, scaleTo(5, "web")) }},
		"Ignored":   {reason: "an ignored field may change", pkg: "db_web", ignore: []nf.DriftIgnore{{Object: "configmap/web", Path: "data"}}, meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.meddle("db", "x"); s.cluster.meddle("web", "x") }, want: []string{"db"}, applied: []string{"apply [db]"}},
		"Given":     {reason: "only the given objects are compared", pkg: "db_web", keys: []string{configMap("web").Key()}, meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.meddle("db", "x"); s.cluster.meddle("web", "x") }, want: []string{"web"}, applied: []string{"apply [web]"}},
		"Disowned":  {reason: "an object of another owner is shown, and stays", pkg: "db_web", meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.disown("web") }, want: []string{"web"}},
		"Namespace": {reason: "a namespace is not compared", pkg: "Namespace.ns-db_web", meddle: func(_ *testing.T, s *site, _ *engine) { s.cluster.lose("ns") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				e.up(t, tc.pkg, named, watching(tc.ignore...))
				if tc.meddle != nil {
					tc.meddle(t, s, e)
				}
				in, names, refs := e.drifted(t, tc.keys...)
				if diff := cmp.Diff(tc.want, names); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
				}
				s.cluster.calls = nil
				op, started, err := e.Correct(t.Context(), in, refs)
				if err != nil || started != (len(tc.applied) > 0) {
					t.Fatalf("%s: %v, %v", tc.reason, started, err)
				}
				if !started {
					return
				}
				if op = e.end(t, op); op.State != nf.Succeeded || op.Verb != nf.Correct {
					t.Errorf("%s: %s %s, %v", tc.reason, op.Verb, op.State, op.Failure)
				}
				if diff := cmp.Diff(tc.applied, s.cluster.asked("apply")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				now, left, _ := e.drifted(t, tc.keys...)
				if len(left) > 0 || len(now.Corrections) != len(tc.applied) || now.Corrections[0].Times != 1 || now.State != nf.Ready || now.Revision != 1 {
					t.Errorf("%s: %v, %+v", tc.reason, left, now)
				}
			})
		})
	}
}

// TestCorrectOnce is about two replicas that see the same drift, and about an instance
// that changes before its correction.
func TestCorrectOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web", named, watching()).Subject.ID
		s.cluster.meddle("web", "x")
		in, _, refs := e.drifted(t)
		op, started, err := e.Correct(t.Context(), in, refs)
		if err != nil || !started {
			t.Fatal(started, err)
		}
		e.end(t, op)
		if _, started, err := e.Correct(t.Context(), in, refs); err != nil || started {
			t.Errorf("there is nothing left to correct: %v, %v", started, err)
		}
		s.cluster.meddle("web", "y")
		if _, _, err := e.Correct(t.Context(), in, refs); nf.KindOf(err) != nf.Conflict {
			t.Errorf("the correction was decided on an earlier state: %v", err)
		}
		in, _, refs = e.drifted(t)
		if op, _, err = e.Correct(t.Context(), in, refs); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if in = e.only(t.Context()); len(in.Corrections) != 1 || in.Corrections[0].Times != 2 {
			t.Errorf("corrections: %+v", in.Corrections)
		}
		if op = e.act(t, id, scaleTo(2, "db")); op.State != nf.Succeeded || len(e.only(t.Context()).Corrections) > 0 {
			t.Errorf("an action starts again: %v, %+v", op.Failure, e.only(t.Context()).Corrections)
		}
		s.cluster.meddle("web", "y")
		in, _, refs = e.drifted(t)
		if op, _, err = e.Correct(t.Context(), in, refs); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if op, err = e.Upgrade(t.Context(), id, change("db_web", "xl")); err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		if in = e.only(t.Context()); len(in.Corrections) > 0 || in.Drift.Mode != nf.DriftCorrect {
			t.Errorf("a change of the instance starts again: %+v, %+v", in.Corrections, in.Drift)
		}
		s.cluster.refuse("web", nf.E(nf.Invalid, "apply", "ConfigMap ns/web", nil))
		s.cluster.meddle("web", "z")
		in, _, refs = e.drifted(t)
		if op, _, err = e.Correct(t.Context(), in, refs); err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.OperationFailed {
			t.Errorf("the region refuses it: %s", op.State)
		}
		if in = e.only(t.Context()); in.State != nf.Ready || in.Corrections[0].Times != 1 {
			t.Errorf("a correction that fails counts, and leaves the instance ready: %+v", in)
		}
	})
}

// TestHealDrift corrects what other clients have changed at the request of a user.
func TestHealDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		id := e.up(t, "db_web", named).Subject.ID
		s.cluster.meddle("web", "x")
		s.cluster.lose("db")
		preview, err := e.PreviewAct(t.Context(), id, nf.ActRequest{Verb: nf.Heal, Drift: true})
		if err != nil || len(preview.Changes) != 2 || preview.Changes[1].Action != nf.Configured || len(preview.Changes[1].Fields) != 1 ||
			preview.Changes[1].Message != "data was changed by kubectl-edit" {
			t.Errorf("preview: %+v, %v", preview.Changes, err)
		}
		if op := e.act(t, id, nf.ActRequest{Verb: nf.Heal, Drift: true}); op.State != nf.Succeeded {
			t.Errorf("%v", op.Failure)
		}
		if _, names, _ := e.drifted(t); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	})
}

// meddled makes an instance of which another client has changed and deleted objects.
func meddled(t *testing.T, s *site, e *engine) {
	e.up(t, "db-old_web", named, watching())
	s.cluster.meddle("db", "x")
	s.cluster.lose("old")
	s.cluster.meddle("web", "x")
}

// correct corrects all drift, as the watcher does. If there is none, another process has
// corrected it; and if that has failed, it is not tried again at once.
func correct(ctx context.Context, e *engine, _ nf.RequestKey) (nf.Operation, error) {
	in, drifts, err := e.Drift(ctx, e.only(ctx).ID, nil)
	if err != nil {
		return nf.Operation{}, err
	}
	if last, err := e.Operation(ctx, in.LastOperation); err != nil || last.Verb == nf.Correct || len(drifts) == 0 {
		return last, err
	}
	var refs []nf.Ref
	for _, d := range drifts {
		refs = append(refs, d.Ref)
	}
	op, _, err := e.Correct(ctx, in, refs)
	return op, err
}
