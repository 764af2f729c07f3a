package onap_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestBusy(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		w, status := newWorld(t, strict), 500
		if strict {
			status = 409
		}
		w.create(t)
		w.edit(func(e *engine) {
			in := e.instances["id1"]
			in.Operation = "op-z"
			e.instances["id1"] = in
			e.operations["op-z"] = nf.Operation{ID: "op-z", Verb: nf.Upgrade, State: nf.Running}
		})
		busy := "cannot change VNF instance id1: operation op-z is running"
		w.want(t, "the operation in the way is named", "DELETE /v1/instance/id1", "", status, "Error deleting instance: "+busy)
		w.want(t, "to whoever wants to change it", "POST /v1/instance/id1/upgrade", strings.Replace(fwRequest, `"x"`, `"y"`, 1), status, "Upgrade Instance: "+busy)
		w.want(t, "to configure it", "POST /v1/instance/id1/config", `{"config-name": "c", "template-name": "ssh"}`, status, "Apply Config failed: "+busy)
		w.want(t, "or to test it", "POST /v1/instance/id1/healthcheck", "", status, "Starting healthcheck: "+busy)
	}
}

// TestPatience checks that a change waits for one whose client already has the
// response that it is done.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		w.hold = true
		w.create(t)
		w.hold = false
		begun := time.Now()
		if got := w.ask(t, "DELETE /v1/instance/id1", ""); got.status != 500 || time.Since(begun) != 30*time.Second {
			t.Errorf("after %s of one that does not end: %d %s", time.Since(begun), got.status, got.body)
		}
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		go func() {
			timer := time.NewTimer(7 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
				w.release("op-a")
			case <-ctx.Done():
			}
		}()
		begun = time.Now()
		if got := w.ask(t, "DELETE /v1/instance/id1", ""); got.status != 202 || time.Since(begun) > 8*time.Second {
			t.Errorf("after %s of one that ends: %d %s", time.Since(begun), got.status, got.body)
		}
	})
}

// TestLongOperation checks that a request ends before its operation does, when
// that takes too long.
func TestLongOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		w.hold = true
		w.create(t)
		w.edit(func(e *engine) {
			op := e.operations["op-a"]
			op.Applied = time.Time{}
			e.operations["op-a"] = op
			in := e.instances["id1"]
			in.Operation = ""
			e.instances["id1"] = in
		})
		w.want(t, "it is told so", "POST /v1/instance/id1/config", `{"config-name": "c", "template-name": "ssh"}`, 500,
			"Apply Config failed: cannot configure VNF instance id1: operation op-b takes longer than the request may wait, and continues")
		w.release("op-b")
	})
}

// TestDeleteStopsOperations checks that a removal does not wait for what it makes useless.
func TestDeleteStopsOperations(t *testing.T) {
	t.Parallel()
	subject := nf.Subject{Kind: nf.InstanceSubject, ID: "id1"}
	noWait := nf.InstanceTask{NoWait: true}
	hooks := []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseHookWait, Event: nf.PostUpgrade}}}
	cases := map[string]struct {
		reason string
		op     nf.Operation
		claims nf.ClaimPolicy // of the instance
		status int
		asked  []string
	}{
		"Test":    {reason: "a test", op: nf.Operation{Verb: nf.Test}, status: 202, asked: []string{"cancel op-t", "terminate"}},
		"Hooks":   {reason: "an upgrade of which only hooks are left", op: nf.Operation{Verb: nf.Upgrade, Applied: noon(1), Instance: noWait, Steps: hooks}, status: 202, asked: []string{"cancel op-t", "terminate"}},
		"Pruning": {reason: "not one that still deletes objects", op: nf.Operation{Verb: nf.Upgrade, Applied: noon(1), Instance: noWait}, status: 500},
		"Waiting": {reason: "nor one that would be undone", op: nf.Operation{Verb: nf.Upgrade, Applied: noon(1), Steps: hooks}, status: 500},
		"Instantiation": {
			reason: "an instantiation, whose undoing deletes the instance", op: nf.Operation{Verb: nf.Instantiate, OnFailure: nf.Undo, Instance: noWait},
			status: 202, asked: []string{"cancel op-t"},
		},
		"Undoing": {
			reason: "one that is being undone already", op: nf.Operation{Verb: nf.Instantiate, OnFailure: nf.Undo, Undoing: true},
			status: 202,
		},
		"Kept": {reason: "not one that would be kept", op: nf.Operation{Verb: nf.Instantiate, OnFailure: nf.Keep}, status: 500},
		"Claims": {
			reason: "nor one whose claims are to be deleted, because its undoing keeps them", op: nf.Operation{Verb: nf.Instantiate, OnFailure: nf.Undo}, claims: nf.ClaimsDelete,
			status: 500,
		},
	}
	for name, tc := range cases {
		for _, path := range []string{"/v1/instance/id1", "/acme/east/infra_workload/id1"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, false)
					w.create(t)
					before := len(w.asked)
					w.edit(func(e *engine) {
						in := e.instances["id1"]
						in.Operation, in.LastOperation, in.Claims = "op-t", "op-t", tc.claims
						e.instances["id1"] = in
						op := tc.op // the test of another path has it, too
						op.ID, op.Subject, op.State = "op-t", subject, nf.Running
						e.operations["op-t"] = op
					})
					w.stops = !tc.op.Undoing
					if tc.op.Undoing {
						time.AfterFunc(time.Second, func() {
							w.edit(func(e *engine) { e.end("op-t", &nf.Failure{Kind: nf.Failed, Message: "no room"}, nil) })
						})
					}
					if got := w.ask(t, "DELETE "+path, ""); got.status != tc.status {
						t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
					}
					var asked []string
					for _, request := range w.asked[before:] {
						switch request := request.(type) {
						case string:
							asked = append(asked, request)
						case nf.TerminateRequest:
							asked = append(asked, "terminate")
						}
					}
					if diff := cmp.Diff(tc.asked, asked); diff != "" {
						t.Errorf("%s: the engine is asked (-want +got):\n%s", tc.reason, diff)
					}
				})
			})
		}
	}
}
