package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// pendingPods returns n pods that are not ready.
func pendingPods(n int, says string) []nf.Health {
	var out []nf.Health
	for i := range n {
		out = append(out, nf.Health{Ref: nf.Ref{Version: "v1", Kind: "Pod", Namespace: "ns", Name: fmt.Sprint("db-", i)}, Status: nf.InProgress, Message: says})
	}
	return out
}

// TestTimeoutSaysWhatIsNotReady lets the time of a stage, a hook or an operation
// run out.
func TestTimeoutSaysWhatIsNotReady(t *testing.T) {
	cases := map[string]struct {
		reason  string
		pkg     string
		timeout time.Duration // of the operation
		script  func(*fakeCluster)
		message string
		asked   []string // about pods
	}{
		"Stage": {
			reason: "the stage's timeout, and each pod with its own words", pkg: "db_web",
			script: func(c *fakeCluster) { c.unready = pendingPods(2, "Pending; container c is waiting: ContainerCreating") },
			message: "cannot make all objects ready: timed out after 1m0s: list:1: ConfigMap ns/db: is not ready: pods are pending; " +
				"Pod ns/db-0: Pending; container c is waiting: ContainerCreating; Pod ns/db-1: Pending; container c is waiting: ContainerCreating",
			asked: []string{"unready [db]"},
		},
		"Operation": {
			reason: "the operation's timeout, when that is shorter", pkg: "db_web", timeout: 10 * time.Second,
			script: func(c *fakeCluster) { c.unready = pendingPods(1, "Pending") },
			message: "cannot make all objects ready: timed out after 10s: list:1: ConfigMap ns/db: is not ready: pods are pending; " +
				"Pod ns/db-0: Pending",
			asked: []string{"unready [db]"},
		},
		"ManyPods": {
			reason: "no more than a few pods are quoted", pkg: "db",
			script: func(c *fakeCluster) { c.unready = pendingPods(7, "Pending") },
			message: "cannot make all objects ready: timed out after 1m0s: list:1: ConfigMap ns/db: is not ready: pods are pending; " +
				"Pod ns/db-0: Pending; Pod ns/db-1: Pending; Pod ns/db-2: Pending; Pod ns/db-3: Pending; Pod ns/db-4: Pending; and 2 more pods are not ready",
			asked: []string{"unready [db]"},
		},
		"Secret": {
			reason: "the secrets of the instance are masked in what pods say", pkg: "db",
			script:  func(c *fakeCluster) { c.unready = pendingPods(1, "Pending; cannot pull with token s3cr3t-value") },
			message: "cannot make all objects ready: timed out after 1m0s: list:1: ConfigMap ns/db: is not ready: pods are pending; Pod ns/db-0: Pending; cannot pull with token " + nf.Masked,
			asked:   []string{"unready [db]"},
		},
		"Forbidden": {
			reason: "a region that does not let its pods be read changes nothing else", pkg: "db",
			script:  func(c *fakeCluster) { c.unreadyErr = nf.E(nf.Failed, "list", "Pod objects", errors.New("forbidden")) },
			message: "cannot make all objects ready: timed out after 1m0s: list:1: ConfigMap ns/db: is not ready: pods are pending",
			asked:   []string{"unready [db]"},
		},
		"Hook": {
			reason: "a hook that does not end is reported before it is deleted", pkg: "early.eonce_web",
			script: func(c *fakeCluster) {
				c.status["eonce"] = health{nf.InProgress, "it runs"}
				c.unready = pendingPods(1, "Running")
			},
			message: "cannot make all objects ready: timed out after 20s: list:1: Job ns/eonce: is not ready: it runs; Pod ns/db-0: Running",
			asked:   []string{"unready [eonce]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.status["db"] = health{nf.InProgress, "pods are pending"}
				tc.script(s.cluster)
				e := s.start()
				op := e.up(t, tc.pkg, func(r *nf.InstantiateRequest) {
					r.Timeout = tc.timeout
					r.Annotations = map[string]string{nf.HookTimeoutAnnotation + "pre-install": "20s"}
					r.Inputs.Parameters = map[string]any{"secret": "s3cr3t-value"}
				})
				if diff := cmp.Diff(tc.message, op.Failure.Message); diff != "" {
					t.Errorf("%s: message (-want +got):\n%s", tc.reason, diff)
				}
				if op.Failure.Kind != nf.Timeout || op.State != nf.OperationFailed || len(s.cluster.live()) > 0 {
					t.Errorf("%s: %s with kind %s, and left are %v", tc.reason, op.State, op.Failure.Kind, s.cluster.live())
				}
				if len(tc.asked) > 0 {
					if diff := cmp.Diff(tc.asked, s.cluster.asked("unready")); diff != "" {
						t.Errorf("%s: pods asked about (-want +got):\n%s", tc.reason, diff)
					}
				}
			})
		})
	}
}

// TestTimeoutOfARemoval leaves an object that does not go: its pods are not what
// it waits for.
func TestTimeoutOfARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		first := e.up(t, "db")
		s.cluster.finalizer["db"] = true
		op, err := e.Terminate(t.Context(), first.Subject.ID, nf.TerminateRequest{Options: nf.Options{Timeout: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		op = e.end(t, op)
		want := "cannot delete all objects: timed out after 30s: ConfigMap ns/db: is not gone: a finalizer holds it"
		if op.Failure == nil || op.Failure.Message != want || len(s.cluster.asked("unready")) > 0 {
			t.Errorf("failure %+v, want %q; asked about pods: %v", op.Failure, want, s.cluster.asked("unready"))
		}
	})
}

// TestFailedStepsAreMarked reads the steps of operations that fail.
func TestFailedStepsAreMarked(t *testing.T) {
	cases := map[string]struct {
		reason string
		script func(*fakeCluster)
		want   []string // steps that failed
	}{
		"Undone": {
			reason: "the step that failed, and none of those that undo it",
			script: func(c *fakeCluster) { c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"} },
			want:   []string{"wait 2/2 s1"},
		},
		"UndoFails": {
			reason: "and the one in which undoing it failed",
			script: func(c *fakeCluster) {
				c.status["web"] = health{nf.StatusFailed, "ImagePullBackOff"}
				c.finalizer["web"] = true
			},
			want: []string{"wait 2/2 s1", "undo: delete stage 2"},
		},
		"TimedOut": {
			reason: "a step whose time ran out failed",
			script: func(c *fakeCluster) { c.status["db"] = health{nf.InProgress, "pending"} },
			want:   []string{"wait 1/2 s0"},
		},
		"None": {reason: "no step of an operation that succeeds", script: func(*fakeCluster) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				tc.script(s.cluster)
				e := s.start()
				op := e.up(t, "db_web")
				var got []string
				for _, step := range op.Steps {
					if step.Finished.IsZero() {
						t.Errorf("%s: step %s has not ended", tc.reason, step.Title())
					}
					if !step.Failed {
						continue
					}
					if got = append(got, step.Title()); !strings.Contains(op.Failure.Message, step.Message) || step.Message == "" {
						t.Errorf("%s: step %s says %q, the operation %q", tc.reason, step.Title(), step.Message, op.Failure.Message)
					}
					if !step.InFailure {
						t.Errorf("%s: step %s does not say that the operation's failure contains its message", tc.reason, step.Title())
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: failed steps (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
