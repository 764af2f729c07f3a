package onap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	const checks = "/v1/instance/id1/healthcheck"
	step := func(s nf.Step, failed bool, finished time.Time) nf.Step {
		s.Started, s.Finished, s.Failed = noon(1), finished, failed
		return s
	}
	probe := func(phase nf.Phase, index, of int, kind, name string) nf.Step {
		return northboundtest.HookStep(phase, nf.TestRun, [2]int{index, of}, nf.Ref{Kind: kind, Name: name})
	}
	test := func(status, name, completed string) string {
		return `{"started_at": "2026-11-20T12:00:01Z", "completed_at": "` + completed + `", "status": "` + status + `", "name": "` + name + `"}`
	}
	cases := map[string]struct {
		reason  string
		op      nf.Operation
		status  string
		done    string
		results string
	}{
		"Running": {
			"one test is over, the other is not",
			nf.Operation{ID: "op-b", State: nf.Running, Steps: []nf.Step{
				step(probe(nf.PhaseHookDeleteOld, 1, 2, "Pod", "a"), false, noon(2)), step(probe(nf.PhaseHookCreate, 1, 2, "Pod", "a"), false, noon(2)), step(probe(nf.PhaseHookWait, 1, 2, "Pod", "a"), false, noon(3)),
				step(probe(nf.PhaseHookCreate, 2, 2, "Job", "b"), false, noon(4)),
			}},
			"Running", "", test("Succeeded", "a", "2026-11-20T12:00:03Z") + "," + test("Running", "b", ""),
		},
		"Succeeded": {
			"all are over", nf.Operation{ID: "op-b", State: nf.Succeeded, Finished: noon(5), Steps: []nf.Step{step(probe(nf.PhaseHookCreate, 1, 1, "Pod", "a"), false, noon(2)), step(probe(nf.PhaseHookWait, 1, 1, "Pod", "a"), false, noon(3)), step(nf.Step{StepID: nf.StepID{Phase: nf.PhaseFinish}}, false, noon(5))}},
			"Succeeded", "2026-11-20T12:00:05Z", test("Succeeded", "a", "2026-11-20T12:00:03Z"),
		},
		"Failed": {
			"one has failed, and one could not be made",
			nf.Operation{ID: "op-b", State: nf.OperationFailed, Finished: noon(5), Failure: &nf.Failure{Step: "finish"}, Steps: []nf.Step{
				step(probe(nf.PhaseHookCreate, 1, 2, "Pod", "a"), false, noon(2)), step(probe(nf.PhaseHookWait, 1, 2, "Pod", "a"), true, noon(3)), step(probe(nf.PhaseHookCreate, 2, 2, "Pod", "b"), true, noon(4)), step(probe(nf.PhaseHookWait, 2, 2, "Pod", "b"), true, noon(4)),
			}},
			"Failed", "2026-11-20T12:00:05Z", test("Failed", "a", "2026-11-20T12:00:03Z") + "," + test("Failed", "b", "2026-11-20T12:00:04Z"),
		},
		"Cancelled": {
			"nobody knows what would have come of it",
			nf.Operation{ID: "op-b", State: nf.OperationCancelled, Finished: noon(5), Steps: []nf.Step{step(probe(nf.PhaseHookCreate, 1, 1, "Pod", "a"), false, noon(2)), step(probe(nf.PhaseHookWait, 1, 1, "Pod", "a"), false, time.Time{})}},
			"Unknown", "2026-11-20T12:00:05Z", test("Unknown", "a", ""),
		},
		"Forgotten": {"operations are kept for a while only", nf.Operation{}, "Unknown", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.create(t)
			w.hold = true
			w.want(t, "a run begins", "POST "+checks, "", 201, `{"healthcheck-id": "id3", "status": "Running"}`)
			w.edit(func(e *engine) {
				delete(e.operations, "op-b")
				if tc.op.ID != "" {
					e.operations["op-b"] = tc.op
				}
			})
			w.want(t, tc.reason, "GET "+checks+"/id3", "", 200, `{"instance-id": "id1", "healthcheck-id": "id3", "status": "`+tc.status+`", "test-suite":
				{"StartedAt": "2026-11-20T12:00:09Z", "CompletedAt": "`+tc.done+`", "Results": [`+tc.results+`]}}`)
			w.want(t, "it is in the list", "GET "+checks, "", 200, `{"instance-id": "id1", "healthcheck-summary": [{"healthcheck-id": "id3", "status": "`+tc.status+`"}], "hooks": null}`)
			w.want(t, "and goes", "DELETE "+checks+"/id3", "", 202, "")
			if cancelled := w.last() == "cancel op-b"; cancelled != (tc.status == "Running") {
				t.Errorf("its operation is cancelled: %t", cancelled)
			}
			w.want(t, "once", "DELETE "+checks+"/id3", "", 500,
				"Error querying Healthcheck status: Error retrieving Healthcheck data: Error finding master table: mongo: no documents in result")
			w.want(t, "there is none any more", "GET "+checks, "", 200, `{"instance-id": "id1", "healthcheck-summary": [], "hooks": null}`)
		})
	}
}

func TestHealthcheckRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.create(t)
	w.fail["Test"] = nf.E(nf.Unreachable, "test", "VNF instance id1", errors.New("region away"))
	w.want(t, "a run that cannot begin is an error", "POST /v1/instance/id1/healthcheck", "", 500, "Starting healthcheck: cannot test VNF instance id1: region away")
	w.want(t, "and none", "GET /v1/instance/id1/healthcheck", "", 200, `{"instance-id": "id1", "healthcheck-summary": [], "hooks": null}`)
	delete(w.fail, "Test")
	w.want(t, "a run", "POST /v1/instance/id1/healthcheck", "", 201, `{"healthcheck-id": "id3", "status": "Running"}`)
	w.rights[nf.ChangeInstance] = true
	if got := w.ask(t, "DELETE /v1/instance/id1/healthcheck/id3", ""); got.status != 403 {
		t.Errorf("whoever may not change the instance removes a run: %d %s", got.status, got.body)
	}
}

func TestServiceHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.want(t, "all is well", "GET /v1/healthcheck", "", 200, "")
	w.checks["store"] = func(context.Context) error { return errors.New("at an address") }
	w.want(t, "the store is not", "GET /v1/healthcheck", "", 500, "Healthcheck of store failed")
}
