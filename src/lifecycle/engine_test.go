package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestInstantiateAppliesStagesInOrderAndWritesTheInventoryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		s.cluster.before = func(call string) {
			if !strings.HasPrefix(call, "apply") {
				return
			}
			// The record must know of an object before the cluster does.
			ins, _ := e.Instances(t.Context())
			for name := range strings.FieldsSeq(strings.Trim(strings.TrimPrefix(call, "apply "), "[]")) {
				if !strings.Contains(strings.Join(nf.Components(ins[0].Inventory)["configmap"], " "), name) {
					t.Errorf("%s is applied before the inventory names it", name)
				}
			}
		}
		op := e.up(t, "db_web-svc")
		if op.State != nf.Succeeded || op.Applied.IsZero() {
			t.Fatalf("operation: %+v", op)
		}
		want := []string{"ensure namespace ns", "apply [db]", "apply [web svc]"}
		if diff := cmp.Diff(want, s.cluster.asked("ensure", "apply")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		in, err := e.Instance(t.Context(), op.Subject.ID)
		if err != nil {
			t.Fatal(err)
		}
		if in.State != nf.Ready || in.Revision != 1 || in.Operation != "" || len(in.Inventory) != 3 {
			t.Errorf("instance: %+v", in)
		}
		changes, err := e.Changes(t.Context(), op.ID)
		if err != nil || len(changes) != 3 || changes[0].Action != nf.Created {
			t.Errorf("changes: %v, %v", changes, err)
		}
	})
}

func TestFailureIsUndoneOrKept(t *testing.T) {
	type want struct {
		state    nf.OperationState
		kind     nf.Kind
		live     []string
		instance nf.InstanceState // "" when no instance may be left
	}
	cases := map[string]struct {
		reason string
		policy nf.OnFailure
		script func(*fakeCluster)
		want   want
	}{
		"UndoOfAFailedObject": {
			reason: "an object that cannot become ready fails the stage at once, and everything is taken back",
			policy: nf.Undo,
			script: func(c *fakeCluster) { c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"} },
			want:   want{state: nf.OperationFailed, kind: nf.Failed, live: []string{}},
		},
		"UndoIsTheDefault": {
			reason: "a request that says nothing is undone",
			script: func(c *fakeCluster) { c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"} },
			want:   want{state: nf.OperationFailed, kind: nf.Failed, live: []string{}},
		},
		"KeepOfAFailedObject": {
			reason: "what failed stays for inspection when the request says so",
			policy: nf.Keep,
			script: func(c *fakeCluster) { c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"} },
			want:   want{state: nf.OperationFailed, kind: nf.Failed, live: []string{"db", "web"}, instance: nf.Broken},
		},
		"UndoOfARefusedObject": {
			reason: "an object that the region refuses fails the operation with the region's reason",
			policy: nf.Undo,
			script: func(c *fakeCluster) {
				c.applyErr["web"] = nf.E(nf.Invalid, "apply", "ConfigMap ns/web", nf.Violations{{Object: configMap("web"), Message: "bad"}})
			},
			want: want{state: nf.OperationFailed, kind: nf.Invalid, live: []string{}},
		},
		"UndoOfAStageThatTakesTooLong": {
			reason: "a stage that is not ready within its timeout has failed",
			policy: nf.Undo,
			script: func(c *fakeCluster) { c.status["db"] = health{nf.InProgress, "pending"} },
			want:   want{state: nf.OperationFailed, kind: nf.Timeout, live: []string{}},
		},
		"UndoThatFails": {
			reason: "when the undo fails too, the instance says so and keeps its inventory, so that it can be terminated later",
			policy: nf.Undo,
			script: func(c *fakeCluster) {
				c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"}
				c.finalizer["web"] = true
			},
			want: want{state: nf.OperationFailed, kind: nf.Failed, live: []string{"db", "web"}, instance: nf.Broken},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				tc.script(s.cluster)
				e := s.start()
				op := e.up(t, "db_web", func(r *nf.InstantiateRequest) { r.OnFailure = tc.policy; r.Name = "fw" })
				got := want{state: op.State, kind: op.Failure.Kind, live: s.cluster.live()}
				if in, err := e.Instance(t.Context(), op.Subject.ID); err == nil {
					got.instance = in.State
					if in.Operation != "" || in.Message == "" || len(in.Inventory) != 2 {
						t.Errorf("%s: instance left as %+v", tc.reason, in)
					}
				}
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
				}
				if op.Failure.Message == "" || op.Failure.Step == "" {
					t.Errorf("%s: the failure explains nothing: %+v", tc.reason, op.Failure)
				}
				if tc.want.instance != "" {
					return
				}
				if left := s.records(); len(left) > 0 || len(s.catalog.held()) > 0 || len(s.cluster.madeNamespaces()) > 0 {
					t.Errorf("%s: left behind: records %v, holds %v, namespaces %v", tc.reason, left, s.catalog.held(), s.cluster.madeNamespaces())
				}
			})
		})
	}
}

func TestRefusedRequestsRecordNothing(t *testing.T) {
	valid := func() nf.InstantiateRequest {
		return nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "db"}}
	}
	cases := map[string]struct {
		reason string
		edit   func(*nf.InstantiateRequest)
		script func(*fakeCluster)
		kind   nf.Kind
		field  string
	}{
		"UnknownRegion":   {reason: "the region must be registered", edit: func(r *nf.InstantiateRequest) { r.Region = "nowhere" }, kind: nf.NotFound, field: "cloud_region_id"},
		"BadNamespace":    {reason: "the namespace must be a DNS label", edit: func(r *nf.InstantiateRequest) { r.Namespace = "A_b" }, kind: nf.Invalid, field: "namespace"},
		"BadTimeout":      {reason: "a negative timeout means nothing", edit: func(r *nf.InstantiateRequest) { r.Timeout = -1 }, kind: nf.Invalid, field: "timeout"},
		"BadCheck":        {reason: "only the API server can be asked", edit: func(r *nf.InstantiateRequest) { r.Check = "client" }, kind: nf.Invalid, field: "validate"},
		"SameObjectTwice": {reason: "a package must not have one object twice", edit: func(r *nf.InstantiateRequest) { r.Package = "db_db" }, kind: nf.Invalid},
		"Conflict": {
			reason: "the preflight's refusal is the request's",
			script: func(c *fakeCluster) {
				c.preflight = nf.E(nf.Conflict, "apply", "objects", nf.Violations{{Object: configMap("db"), Message: "was made by kubectl"}})
			},
			kind: nf.Conflict, field: "ConfigMap ns/db",
		},
		"Unreachable": {
			reason: "a region that does not answer cannot take an instance",
			script: func(c *fakeCluster) { c.unreachable = errors.New("connection refused") },
			kind:   nf.Unreachable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				if tc.script != nil {
					tc.script(s.cluster)
				}
				e := s.start()
				req := valid()
				if tc.edit != nil {
					tc.edit(&req)
				}
				_, err := e.Instantiate(t.Context(), req)
				if err == nil || nf.KindOf(err) != tc.kind {
					t.Fatalf("%s: got %v, want kind %s", tc.reason, err, tc.kind)
				}
				if v := nf.ViolationsOf(err); tc.field != "" && (len(v) == 0 || v[0].Place() != tc.field) {
					t.Errorf("%s: violations %v, want one of field %q", tc.reason, v, tc.field)
				}
				if left := s.records(); len(left) > 0 {
					t.Errorf("%s: records left behind: %v", tc.reason, left)
				}
				if ops, _ := e.Operations(t.Context(), ""); len(ops) > 0 {
					t.Errorf("%s: operations left behind: %v", tc.reason, ops)
				}
			})
		})
	}
}

func TestConflictNamesThePlaceInThePackage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.preflight = nf.E(nf.Conflict, "apply", "objects", nf.Violations{{Object: configMap("svc"), Message: "was made by kubectl"}})
		e := s.start()
		s.cluster.preflight = nil
		first := e.up(t, "web-svc")
		_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "svc"}})
		want := nf.Violations{nf.Violation{Object: configMap("svc"), File: "list", Line: 1}.Saying(nf.Textf("belongs to %s", nf.Mention(first.Subject.ID)))}
		if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" {
			t.Errorf("violations (-want +got):\n%s", diff)
		}
	})
}

func TestNamesAreUniqueInANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		op := e.up(t, "a", func(r *nf.InstantiateRequest) { r.Name = "fw" })
		_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Name: "fw", Spec: nf.Spec{Package: "b"}})
		if nf.KindOf(err) != nf.Exists || !strings.Contains(err.Error(), op.Subject.ID) {
			t.Fatalf("a second instance of that name: %v", err)
		}
		if other := e.up(t, "b", func(r *nf.InstantiateRequest) { r.Name = "fw"; r.Namespace = "other" }); other.State != nf.Succeeded {
			t.Errorf("the name in another namespace: %+v", other.Failure)
		}
		gone, err := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, gone)
		if again := e.up(t, "b", func(r *nf.InstantiateRequest) { r.Name = "fw" }); again.State != nf.Succeeded {
			t.Errorf("the name after its instance is gone: %+v", again.Failure)
		}
	})
}

func TestOneChangeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["db"] = health{nf.InProgress, "pending"}
		e := s.start()
		op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, upgrade := e.Upgrade(t.Context(), op.Subject.ID, change("db", "xl"))
		_, terminate := e.Terminate(t.Context(), op.Subject.ID, nf.TerminateRequest{})
		for verb, err := range map[string]error{"upgrade": upgrade, "terminate": terminate} {
			if nf.KindOf(err) != nf.Busy || nf.OperationOf(err) != op.ID {
				t.Errorf("%s while instantiate runs: %v", verb, err)
			}
		}
		s.cluster.script("db", nf.Current, "")
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the first operation: %+v", op.Failure)
		}
	})
}

func TestCancelStopsAndUndoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["web"] = health{nf.InProgress, "pending"}
		e := s.start()
		op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "db_web"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := e.Cancel(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		op = e.end(t, op)
		if op.State != nf.OperationCancelled || len(s.cluster.live()) != 0 {
			t.Errorf("cancelled operation: %s, objects %v", op.State, s.cluster.live())
		}
		if _, err := e.Cancel(t.Context(), op.ID); nf.KindOf(err) != nf.Conflict {
			t.Errorf("cancelling what has ended: %v", err)
		}
	})
}

func TestShutdownInterruptsTheUndoOfACancelledOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["web"] = health{nf.InProgress, "pending"}
		s.cluster.finalizer["web"] = true
		e := s.start()
		op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := e.Cancel(t.Context(), op.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the undo waits for the finalizer
		began := time.Now()
		e.stop()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the shutdown waited %s for the undo", took)
		}
		if op, _ = e.Operation(t.Context(), op.ID); op.State != nf.Running || !op.Undoing {
			t.Errorf("the interrupted undo is recorded as %s", op.State)
		}
		clear(s.cluster.finalizer)
		if op = s.start().end(t, op); op.State != nf.OperationCancelled || len(s.cluster.live()) > 0 {
			t.Errorf("the resumed undo: %s, objects %v", op.State, s.cluster.live())
		}
	})
}

func TestDeadlineEndsAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["db"] = health{nf.InProgress, "pods are pending"}
		e := s.start()
		began := time.Now()
		op := e.up(t, "db", func(r *nf.InstantiateRequest) { r.Timeout = 10 * time.Second })
		if op.State != nf.OperationFailed || op.Failure.Kind != nf.Timeout || !strings.Contains(op.Failure.Message, "pods are pending") {
			t.Errorf("operation: %+v", op.Failure)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the deadline of 10 s came after %s of virtual time", took)
		}
	})
}

func TestPreviewTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db_old")
		before := s.records()
		got, err := e.PreviewUpgrade(t.Context(), first.Subject.ID, change("db_new", "xl"))
		if err != nil {
			t.Fatal(err)
		}
		actions := map[string]nf.Action{}
		for _, c := range got.Changes {
			actions[c.Name] = c.Action
		}
		want := map[string]nf.Action{"db": nf.Configured, "new": nf.Created, "old": nf.Deleted}
		if diff := cmp.Diff(want, actions); diff != "" {
			t.Errorf("preview (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, s.records()); diff != "" {
			t.Errorf("the preview left records (-before +after):\n%s", diff)
		}
	})
}

// TestBurst makes several requests to one region at once: as long as there are
// places, no operation waits for the next look at the list of work.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.Places = 32 })
		start := time.Now()
		var clients sync.WaitGroup
		for i := range 20 {
			clients.Go(func() {
				op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: fmt.Sprintf("ns%d", i), Spec: nf.Spec{Package: "a_b"}})
				if err != nil {
					t.Error(err)
					return
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %+v", op.State, op.Failure)
				}
			})
		}
		clients.Wait()
		if took := time.Since(start); took > 0 {
			t.Errorf("they took %v of waiting", took)
		}
	})
}
