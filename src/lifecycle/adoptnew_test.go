package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func adoptionDeaths() map[string]deathScenario {
	refused := func(prepare func(*testing.T, *site, *engine)) func(*testing.T, *site, *engine) {
		return func(t *testing.T, s *site, e *engine) {
			prepare(t, s, e)
			s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		}
	}
	return map[string]deathScenario{
		"adopt":                   {deaths: 135, prepare: running("db", "web"), request: adopt("db_web-absent")},
		"adopt fails":             {deaths: 198, prepare: running("db", "web", "!theirs"), request: adopt("db_web-theirs")},
		"create, adopt":           {deaths: 150, prepare: running("db", "web"), request: createAdopting("db_web-new", "")},
		"create, adopt, undo":     {deaths: 200, prepare: refused(running("db", "web")), request: createAdopting("db_web-bad", nf.Undo)},
		"create, adopt, and keep": {deaths: 130, prepare: refused(running("db", "web")), request: createAdopting("db_web-bad", nf.Keep)},
	}
}

// createAdopting creates an instance that adopts the objects that have no owner.
func createAdopting(pkg string, onFailure nf.OnFailure) func(context.Context, *engine, nf.RequestKey) (nf.Operation, error) {
	return func(ctx context.Context, e *engine, key nf.RequestKey) (nf.Operation, error) {
		return e.Instantiate(ctx, adopting(pkg, onFailure, key))
	}
}

func adopting(pkg string, onFailure nf.OnFailure, key nf.RequestKey) nf.InstantiateRequest {
	return nf.InstantiateRequest{
		Region: "east", Namespace: "ns", Name: "vnf", Adopt: true, Options: nf.Options{OnFailure: onFailure, Key: key},
		Spec: nf.Spec{Package: pkg, Inputs: nf.Inputs{Parameters: map[string]any{"size": "m"}}},
	}
}

// TestCreateAdopts takes a new instance on objects without an owner to its end.
func TestCreateAdopts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		running("db")(t, s, e)
		p, err := e.PreviewInstantiate(t.Context(), adopting("db_new", "", nf.RequestKey{}))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]nf.Change{
			"db":  {Ref: configMap("db"), Action: nf.Adopted, Message: "was left in place"},
			"new": {Ref: configMap("new"), Action: nf.Created},
		}
		if diff := cmp.Diff(want, changesByName(p.Changes)); diff != "" {
			t.Errorf("the dry run names each object that would be adopted (-want +got)\n%s", diff)
		}
		op, err := createAdopting("db_new", "")(t.Context(), e, nf.RequestKey{})
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.Succeeded {
			t.Fatalf("it ended %s: %+v", end.State, end.Failure)
		}
		changes, err := e.Changes(t.Context(), op.ID)
		if err != nil || changes[0].Action != nf.Adopted || changes[0].Name != "db" {
			t.Errorf("the operation says what it has adopted: %+v, %v", changes, err)
		}
		if diff := cmp.Diff(map[string]string{"db": "m", "new": "m"}, s.sizes()); diff != "" {
			t.Errorf("what was adopted has the package's content (-want +got)\n%s", diff)
		}
		in := e.only(t.Context())
		if op, err = e.Terminate(t.Context(), in.ID, nf.TerminateRequest{}); err != nil {
			t.Fatal(err)
		}
		if e.end(t, op); len(s.cluster.objects) != 0 {
			t.Errorf("%d objects outlive it, although they were its own", len(s.cluster.objects))
		}
	})
}

func changesByName(changes []nf.Change) map[string]nf.Change {
	out := map[string]nf.Change{}
	for _, c := range changes {
		out[c.Name] = c
	}
	return out
}

// TestCreateThatAdoptsAndFails gives back what it has adopted, by each way.
func TestCreateThatAdoptsAndFails(t *testing.T) {
	t.Parallel()
	broken := nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", errors.New("no"))
	undo := func(t *testing.T, e *engine) {
		t.Helper()
		op, err := e.Undo(t.Context(), e.only(t.Context()).LastOperation, nf.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
	}
	cases := map[string]struct {
		reason string
		policy nf.OnFailure
		then   func(t *testing.T, e *engine)
		want   map[string]string
		owned  int // objects that have an owner
	}{
		"Undo": {"the content that it had is restored, and what was created is deleted", nf.Undo, func(*testing.T, *engine) {}, map[string]string{"db": "was"}, 0},
		"Keep": {"nothing is undone", nf.Keep, func(*testing.T, *engine) {}, map[string]string{"db": "m", "new": "m"}, 2},
		"Kept": {"a later undo gives the same back", nf.Keep, undo, map[string]string{"db": "was"}, 0},
		"Changed": {"a change that fails, too, does not make them its own", nf.Keep, func(t *testing.T, e *engine) {
			t.Helper()
			req := change("db-new_bad", "xl")
			req.OnFailure = nf.Keep
			op, err := e.Upgrade(t.Context(), e.only(t.Context()).ID, req)
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
			if op, err = e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{}); err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}, map[string]string{"db": "was"}, 0},
		"Deleted": {"an instance that was never active does not take the objects along", nf.Keep, func(t *testing.T, e *engine) {
			t.Helper()
			op, err := e.Terminate(t.Context(), e.only(t.Context()).ID, nf.TerminateRequest{})
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}, map[string]string{"db": "was"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				running("db")(t, s, e)
				s.cluster.refuse("bad", broken)
				op, err := createAdopting("db-new_bad", tc.policy)(t.Context(), e, nf.RequestKey{})
				if err != nil {
					t.Fatal(err)
				}
				if end := e.end(t, op); end.State != nf.OperationFailed {
					t.Fatalf("it ended %s", end.State)
				}
				tc.then(t, e)
				if diff := cmp.Diff(tc.want, s.sizes()); diff != "" {
					t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
				}
				owned := 0
				for _, o := range s.cluster.objects {
					if o.owner.ID != "" {
						owned++
					}
				}
				if owned != tc.owned {
					t.Errorf("%s: %d objects have an owner, want %d", tc.reason, owned, tc.owned)
				}
			})
		})
	}
}

// failedAdoption fails to create an instance that adopts the object db, because the object
// bad is rejected.
func failedAdoption(t *testing.T, s *site, e *engine, objects string) nf.Operation {
	t.Helper()
	running("db")(t, s, e)
	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	op, err := createAdopting(objects, nf.Keep)(t.Context(), e, nf.RequestKey{})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, op)
	return op
}

// TestRetryOfCreateThatAdopts adopts what the failed operation was to adopt, and nothing
// else.
func TestRetryOfCreateThatAdopts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		op := failedAdoption(t, s, e, "db_bad_late")
		s.cluster.refuse("bad", nil)
		running("late")(t, s, e)
		if _, err := e.Retry(t.Context(), op.ID, nf.Options{}); nf.KindOf(err) != nf.Conflict {
			t.Errorf("an object that came later is not taken: %v", err)
		}
		delete(s.cluster.objects, configMap("late").Key())
		again, err := e.Retry(t.Context(), op.ID, nf.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, again); end.State != nf.Succeeded {
			t.Fatalf("it ended %s: %+v", end.State, end.Failure)
		}
		if diff := cmp.Diff(map[string]string{"db": "m", "bad": "m", "late": "m"}, s.sizes()); diff != "" {
			t.Errorf("the retry completes the instance (-want +got)\n%s", diff)
		}
	})
}

// TestHooksOfRetryThatAdopts undoes the retry of an instantiation that adopts. The object of a
// hook, which the first attempt has created, was not adopted: it is deleted.
func TestHooksOfRetryThatAdopts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		op := failedAdoption(t, s, e, "early.estays_db-bad")
		op, err := e.Retry(t.Context(), op.ID, nf.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.OperationFailed {
			t.Fatalf("the retry ended %s", end.State)
		}
		if diff := cmp.Diff([]string{"db", "estays"}, s.cluster.live()); diff != "" {
			t.Errorf("before it is undone (-want +got)\n%s", diff)
		}
		if op, err = e.Undo(t.Context(), op.ID, nf.Options{}); err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.Succeeded {
			t.Errorf("the undo ended %s: %+v", end.State, end.Failure)
		}
		if diff := cmp.Diff([]string{"db"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got)\n%s", diff)
		}
	})
}

func TestCreateDoesNotAdopt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		running("db", "web")(t, s, e)
		req := adopting("db", "", nf.RequestKey{})
		req.Adopt = false
		if _, err := e.Instantiate(t.Context(), req); nf.KindOf(err) != nf.Conflict {
			t.Errorf("without the request nothing is adopted: %v", err)
		}
		s.cluster.disown("web")
		if _, err := createAdopting("db_web", "")(t.Context(), e, nf.RequestKey{}); nf.KindOf(err) != nf.Conflict {
			t.Errorf("an object of another instance is a conflict: %v", err)
		}
		if _, err := e.PreviewInstantiate(t.Context(), adopting("db_web", "", nf.RequestKey{})); nf.KindOf(err) != nf.Conflict {
			t.Errorf("the dry run fails as the request does: %v", err)
		}
		if all := instances(t, e); len(all) != 0 {
			t.Errorf("it left %+v", all)
		}
	})
}
