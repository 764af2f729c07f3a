package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// did returns what the cluster was made to do since the last call of did.
func (s *site) did() []string {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(s.cluster.calls), func(call string) bool {
		return call == "preflight" || call == "health" || call == "namespaces" || strings.HasPrefix(call, "dry-run") || strings.HasPrefix(call, "ensure namespace") || strings.HasPrefix(call, "remove namespace")
	})
	s.cluster.calls = nil
	return out
}

func TestHooksRunAtTheirTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, hooked, named)
		want := []string{"ensure [crd]", "apply [e]", "apply [eonce]", "delete [eonce]", "apply [db k]", "apply [lonce]", "delete [lonce]"}
		if diff := cmp.Diff(want, s.did()); diff != "" {
			t.Errorf("instantiate (-want +got)\n%s", diff)
		}
		in := e.only(t.Context())
		var hooks, others []string
		for _, it := range in.Inventory {
			if it.Hook {
				hooks = append(hooks, it.Name)
			} else {
				others = append(others, it.Name)
			}
		}
		if diff := cmp.Diff([]string{"e"}, hooks); diff != "" {
			t.Errorf("what hooks left in the inventory (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff([]string{"db", "k"}, others); diff != "" {
			t.Errorf("the inventory, without what is shared (-want +got)\n%s", diff)
		}
		if health, err := e.Health(t.Context(), in.ID); err != nil || len(health) != 2 {
			t.Errorf("the health is of %d objects (%v), want the two that the instance is made of", len(health), err)
		}
		s.did()

		op, err := e.Upgrade(t.Context(), in.ID, change("early.e_db-new_late.lonce", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.Succeeded {
			t.Fatalf("the upgrade ended %+v", end.Failure)
		}
		want = []string{"delete [e]", "apply [e]", "apply [db new]", "orphan", "apply [lonce]", "delete [lonce]"}
		if diff := cmp.Diff(want, s.did()); diff != "" {
			t.Errorf("upgrade: what is kept is let go of (-want +got)\n%s", diff)
		}

		op, err = e.Rollback(t.Context(), in.ID, nf.RollbackRequest{Revision: 1})
		if nf.KindOf(err) == nf.Conflict { // k was left in place, without an owner
			t.Fatalf("the rollback is refused: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		s.did()
		op, err = e.Terminate(t.Context(), in.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, op)
		want = []string{"apply [b]", "orphan", "delete [db]", "apply [gonce]", "delete [gonce]", "delete [e b]"}
		if diff := cmp.Diff(want, s.did()); diff != "" {
			t.Errorf("terminate (-want +got)\n%s", diff)
		}
		var left []string
		for key := range s.cluster.objects {
			left = append(left, key)
		}
		slices.Sort(left)
		if diff := cmp.Diff([]string{"keep/ns/k", "shared/ns/crd"}, left); diff != "" {
			t.Errorf("what is left in the region (-want +got)\n%s", diff)
		}
	})
}

func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		pkg     string
		prepare func(s *site)
		state   nf.OperationState
		step    string
		left    []string
	}{
		"Early":   {"what comes before decides whether the rest comes", "early.e_db", func(s *site) { s.cluster.script("e", nf.StatusFailed, "exit 1") }, nf.OperationFailed, "wait for pre-install 1/1 Job e", nil},
		"Late":    {"what comes after takes everything back", "db_late.l", func(s *site) { s.cluster.script("l", nf.StatusFailed, "exit 1") }, nf.OperationFailed, "wait for post-install 1/1 Job l", nil},
		"Refused": {"a hook that cannot be made fails like any object", "early.e_db", func(s *site) { s.cluster.refuse("e", nf.E(nf.Invalid, "apply", "Job ns/e", nil)) }, nf.OperationFailed, "create pre-install 1/1 Job e", nil},
		"Endless": {"a hook has until the operation's deadline", "early.e_db", func(s *site) { s.cluster.script("e", nf.InProgress, "at it") }, nf.OperationFailed, "wait for pre-install 1/1 Job e", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				tc.prepare(s)
				end := s.start().up(t, tc.pkg)
				if end.State != tc.state || end.Failure == nil || end.Failure.Step != tc.step {
					t.Errorf("%s: ended %s, %+v", tc.reason, end.State, end.Failure)
				}
				if n := len(s.cluster.objects); n != len(tc.left) {
					t.Errorf("%s: %d objects are left", tc.reason, n)
				}
			})
		})
	}
}

// TestDeleteHooksWithoutNamespace terminates an instance whose namespace another client has
// deleted, or deletes: its hooks cannot run, and nothing of it is left that they are for.
func TestDeleteHooksWithoutNamespace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		lose   func(*site)
		want   []string
	}{
		"Gone": {"no request is sent", func(s *site) { delete(s.cluster.namespaces, "ns") }, []string{"delete [db]"}},
		"Terminating": {
			"the API server says so", func(s *site) {
				refused := &nf.Error{Kind: nf.Busy, Op: "apply", Subject: "Job ns/b", Reason: nf.ReasonTerminating}
				s.cluster.refuse("b", refused)
				s.cluster.refuse("gonce", refused)
			}, []string{"apply [b]", "delete [db]", "apply [gonce]", "delete [gonce]", "delete [b]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start()
				first := e.up(t, "bye.b_db_gone.gonce")
				tc.lose(s)
				s.did()
				op, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{})
				if err != nil {
					t.Fatal(err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded || len(op.Warnings) != 2 {
					t.Errorf("%s: %s, %+v, warnings %q", tc.reason, op.State, op.Failure, op.Warnings)
				}
				if diff := cmp.Diff(tc.want, s.did()); diff != "" {
					t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestHookTimes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		given  string
		took   time.Duration
		state  nf.OperationState
	}{
		"Short":  {"a hook has the time that the spec grants", "7s", 7 * time.Second, nf.OperationFailed},
		"NoWait": {"0 or less: it is not waited for", "0s", 0, nf.Succeeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.script("e", nf.InProgress, "at it")
				end := s.start().up(t, "early.e_db", func(req *nf.InstantiateRequest) {
					req.Annotations = map[string]string{"hook-timeout/pre-install": tc.given}
				})
				if took := end.Finished.Sub(end.Accepted); end.State != tc.state || took != tc.took {
					t.Errorf("%s: ended %s after %v", tc.reason, end.State, took)
				}
			})
		})
	}
	s := newSite(t)
	_, err := s.start().Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Spec: nf.Spec{
		Package: "early.e_db", Annotations: map[string]string{"hook-timeout/pre-install": "soon"},
	}})
	if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "soon") {
		t.Errorf("a time that is none gives %v", err)
	}
}

func TestTestsOfAnInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db_probe.p-probe.q", named)
		in := e.only(t.Context())
		s.cluster.script("p", nf.StatusFailed, "no answer")
		op, err := e.Test(t.Context(), in.ID, nf.TestRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if now := e.only(t.Context()); now.State != nf.Ready {
			t.Errorf("while it is tested, the instance is %s", now.State)
		}
		end := e.end(t, op)
		if end.State != nf.OperationFailed || end.Verb != nf.Test {
			t.Errorf("the test ended %s", end.State)
		}
		results := map[string]bool{}
		for _, step := range end.Steps {
			if strings.HasPrefix(step.Title(), "wait for test") {
				results[step.Title()] = step.Failed
			}
		}
		if diff := cmp.Diff(map[string]bool{"wait for test 1/2 Job p": true, "wait for test 2/2 Job q": false}, results); diff != "" {
			t.Errorf("every test is run, whatever came of the others (-want +got)\n%s", diff)
		}
		if now := e.only(t.Context()); now.State != nf.Ready || now.Operation != "" || now.Revision != 1 || len(now.Inventory) != 1 {
			t.Errorf("after it the instance is %+v", now)
		}
		if n := len(s.cluster.objects); n != 1 {
			t.Errorf("%d objects are there, want the instance's one", n)
		}
		s.cluster.script("p", nf.Current, "")
		s.cluster.mu.Lock()
		delete(s.cluster.status, "p")
		s.cluster.mu.Unlock()
		if op, err = e.Test(t.Context(), in.ID, nf.TestRequest{}); err != nil {
			t.Fatal(err)
		}
		if end := e.end(t, op); end.State != nf.Succeeded {
			t.Errorf("the second time it ended %s: %+v", end.State, end.Failure)
		}
		e.up(t, "plain")
		for _, other := range instances(t, e) {
			if other.ID == in.ID {
				continue
			}
			if _, err := e.Test(t.Context(), other.ID, nf.TestRequest{}); nf.KindOf(err) != nf.Conflict {
				t.Errorf("an instance without tests gives %v", err)
			}
			op, err := e.Test(t.Context(), other.ID, nf.TestRequest{Empty: true})
			if err != nil {
				t.Fatal(err)
			}
			if end := e.end(t, op); end.State != nf.Succeeded {
				t.Errorf("all of no tests ended %s: %+v", end.State, end.Failure)
			}
		}
	})
}

func instances(t *testing.T, e *engine) []nf.Instance {
	t.Helper()
	all, err := e.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNoWaitKeepsWhatIsApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.script("l", nf.StatusFailed, "exit 1")
		e := s.start()
		end := e.up(t, "db_late.l", func(req *nf.InstantiateRequest) { req.NoWait = true })
		if end.State != nf.OperationFailed || end.Undoing || end.Applied.IsZero() {
			t.Errorf("it ended %s, undoing %t, applied %v", end.State, end.Undoing, end.Applied)
		}
		if in := e.only(t.Context()); in.State != nf.Broken || s.sizes()["db"] != "" || len(s.cluster.objects) != 2 {
			t.Errorf("what was applied is there no more: %+v, %v", in, s.sizes())
		}
		s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
		if end := e.up(t, "bad", func(req *nf.InstantiateRequest) { req.NoWait, req.Namespace = true, "other" }); !end.Undoing {
			t.Error("what was never applied as a whole is not taken back")
		}
	})
}

func TestNoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.script("db", nf.InProgress, "it starts")
		end := s.start().up(t, "db_web_late.l", func(req *nf.InstantiateRequest) { req.NoWait = true })
		if took := end.Finished.Sub(end.Accepted); end.State != nf.Succeeded || took != 0 || end.Applied.IsZero() {
			t.Errorf("it ended %s after %v, applied %v", end.State, took, end.Applied)
		}
	})
}

func TestTestsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		e.up(t, "db_probe.p-probe.q", named)
		s.cluster.refuse("p", nf.E(nf.Failed, "apply", "Job ns/p", nil)) // as a full quota does
		op, err := e.Test(t.Context(), e.only(t.Context()).ID, nf.TestRequest{})
		if err != nil {
			t.Fatal(err)
		}
		end := e.end(t, op)
		failed := map[string]bool{}
		for _, step := range end.Steps {
			failed[step.Title()] = step.Failed
		}
		if !failed["create test 1/2 Job p"] || failed["create test 2/2 Job q"] || failed["wait for test 2/2 Job q"] || end.Failure == nil || end.Failure.Kind != nf.Failed {
			t.Errorf("the other test is run, and the whole has failed: %+v, %v", end.Failure, failed)
		}
	})
}

// TestPlan checks which plan of an instance is shown, from its acceptance on.
func TestPlan(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		then   func(t *testing.T, s *site, e *engine, op nf.Operation)
		want   int // hooks of the plan; -1 is nf.Conflict
	}{
		"Instantiating": {"hooks are shown while the first operation runs", func(*testing.T, *site, *engine, nf.Operation) {}, 5},
		"Ready": {"then they are those in force", func(t *testing.T, s *site, e *engine, op nf.Operation) {
			t.Helper()
			s.cluster.script("db", nf.Current, "")
			e.end(t, op)
		}, 5},
		"Removed": {"a termination has no plan", func(t *testing.T, s *site, e *engine, op nf.Operation) {
			t.Helper()
			if _, err := e.Cancel(t.Context(), op.ID); err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
			s.cluster.mu.Lock()
			s.cluster.finalizer["db"] = true // the termination does not end
			s.cluster.mu.Unlock()
			if _, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{}); err != nil {
				t.Fatal(err)
			}
		}, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.script("db", nf.InProgress, "starting")
				e := s.start()
				op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: hooked}, Options: nf.Options{OnFailure: nf.Keep}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				tc.then(t, s, e, op)
				plan, err := e.Plan(t.Context(), op.Subject.ID)
				if got := len(plan.Hooks); tc.want >= 0 && (err != nil || got != tc.want) || tc.want < 0 && nf.KindOf(err) != nf.Conflict {
					t.Errorf("%s: %d hooks (%v), want %d", tc.reason, got, err, tc.want)
				}
			})
		})
	}
}
