package native_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

func amended(s *standIn) {
	s.instance.Amendments = []nf.Amendment{
		{Name: "rules", Package: "fw-rules", Inputs: nf.Inputs{Parameters: map[string]any{"allow": "10.0.0.0/8", "password": "s3cret"}, Overrides: map[string]string{"db.password": "s3cret", "db.size": "3"}}},
		{Name: "logs", Package: "fw-logs"},
	}
}

func TestAmendments(t *testing.T) {
	t.Parallel()
	rules, logs := func() (nf.Amendment, nf.Amendment) {
		s := newStandIn()
		amended(s)
		return s.instance.Amendments[0], s.instance.Amendments[1]
	}()
	const shownAmended = `"amendments": [
		{"name": "rules", "csar_id": "fw-rules", "parameters": {"allow": "10.0.0.0/8", "password": "********"}, "set": {"db.password": "********", "db.size": "3"}},
		{"name": "logs", "csar_id": "fw-logs"}]`
	runAll(t, map[string]exchange{
		"Shown": {reason: "amendments are shown, their secrets are not", arrange: amended, request: "GET /v1/vnf_instances/vnf-1", status: 200, want: `{` + shownAmended + `, "...": ""}`},
		"ShownInRevision": {
			reason: "in revisions, too", arrange: func(s *standIn) { amended(s); s.revisions[0].Amendments = s.instance.Amendments },
			request: "GET /v1/vnf_instances/vnf-1/revisions/1", status: 200, want: `{` + shownAmended + `, "...": ""}`,
		},
		"Add": {
			reason: "a new one comes last", arrange: amended, request: "PUT /v1/vnf_instances/vnf-1/amendments/tuning", header: []string{asJSON},
			body: `{"csar_id": "tune", "parameters": {"level": 3}, "set": {"a.b": "c"}}`, status: 200, want: `{"vnf_id": "vnf-1", "...": ""}`,
			asked: configuration{[]nf.Amendment{rules, logs, {Name: "tuning", Package: "tune", Inputs: nf.Inputs{Parameters: map[string]any{"level": 3.0}, Overrides: map[string]string{"a.b": "c"}}}}, nf.Options{}},
		},
		"Replace": {
			reason: "one that is there is replaced, and keeps its place", arrange: amended, request: "PUT /v1/vnf_instances/vnf-1/amendments/rules", header: []string{asJSON},
			body: `{"csar_id": "fw-rules-2", "on_failure": "keep", "timeout": "5m", "on_unreachable": "wait", "wait": "applied", "confirm": "sha256:of-these"}`, status: 200, want: `{"...": ""}`,
			asked: configuration{[]nf.Amendment{{Name: "rules", Package: "fw-rules-2"}, logs}, nf.Options{OnFailure: nf.Keep, Timeout: 5 * time.Minute, WaitForRegion: true, NoWait: true, Confirm: "sha256:of-these"}},
		},
		"Answer": {
			reason: "the answer is about what was asked for", arrange: func(s *standIn) {
				s.operation.Instance.Target = nf.Revision{Number: 2, Package: "firewall", Release: "fw", Amendments: []nf.Amendment{logs}}
				s.versions = []nf.Operation{with(s.operation, func(o *nf.Operation) { o.Applied = noon(2) })}
			},
			request: "PUT /v1/vnf_instances/vnf-1/amendments/logs", header: []string{asJSON}, body: `{"csar_id": "fw-logs"}`, status: 200,
			want: `{"amendments": [{"name": "logs", "csar_id": "fw-logs"}], "release": "fw", "revision": 2, "...": ""}`,
		},
		"Async": {
			reason: "respond-async does not wait", arrange: stuck, request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON, "Prefer: respond-async"},
			body: `{"csar_id": "p"}`, status: 202, want: asked, headers: []string{"Location: /v1/operations/op-1"},
		},
		"Failed": {
			reason: "a failed one is reported", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Message: "crash loop"}),
			request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON}, body: `{"csar_id": "p"}`, status: 424, want: problem("failed"),
		},
		"Busy": {
			reason: "one operation at a time", arrange: failing("Configure", &nf.Error{Kind: nf.Busy, Op: "configure", Subject: "VNF instance vnf-1", Operation: "op-9"}),
			request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON}, body: `{"csar_id": "p"}`, status: 409, want: problem("busy", `"operation": "op-9"`),
		},
		"Previewed": {
			reason: "a dry run starts nothing", arrange: amended, request: "PUT /v1/vnf_instances/vnf-1/amendments/tuning?dry_run=true", header: []string{asJSON}, body: `{"csar_id": "fw-tuning"}`,
			status: 200, want: `{"changes": [{"name": "web", "...": ""}], "warnings": []}`,
		},
		"Removal previewed": {
			reason: "that of a removal, too", arrange: amended, request: "DELETE /v1/vnf_instances/vnf-1/amendments/rules?dry_run=true", status: 200, want: `{"changes": [{"name": "web", "...": ""}], "warnings": []}`,
		},
		"NoPackage": {reason: "an amendment is a package", request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON}, body: `{}`, status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "is missing"}]`)},
		"Mask":      {reason: "a mask is no secret", request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON}, body: `{"csar_id": "p", "set": {"db.password": "********"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "set.db.password", "message": "<<>>"}]`)},
		"BadName":   {reason: "a name is a path segment", request: "PUT /v1/vnf_instances/vnf-1/amendments/-a", header: []string{asJSON}, body: `{"csar_id": "p"}`, status: 400, want: problem("invalid")},
		"BadWait":   {reason: "there are two ways to wait", request: "PUT /v1/vnf_instances/vnf-1/amendments/a", header: []string{asJSON}, body: `{"csar_id": "p", "wait": "never"}`, status: 400, want: problem("invalid", `"errors": [{"field": "wait", "message": "must be one of ready, applied"}]`)},
		"Missing":   {reason: "no instance, nothing to amend", request: "PUT /v1/vnf_instances/vnf-2/amendments/a", header: []string{asJSON}, body: `{"csar_id": "p"}`, status: 404, want: problem("not-found")},
		"Remove": {
			reason: "the others stay", arrange: amended, request: "DELETE /v1/vnf_instances/vnf-1/amendments/rules?timeout=2m&on_failure=keep&confirm=sha256:x&wait=applied&on_unreachable=wait", status: 200, want: `{"vnf_id": "vnf-1", "...": ""}`,
			asked: configuration{[]nf.Amendment{logs}, nf.Options{OnFailure: nf.Keep, Timeout: 2 * time.Minute, Confirm: "sha256:x", NoWait: true, WaitForRegion: true}},
		},
		"RemoveBraked":  {reason: "what deletes must be confirmed", arrange: func(s *standIn) { amended(s); s.fail["Configure"] = brake }, request: "DELETE /v1/vnf_instances/vnf-1/amendments/rules", status: 409, want: problem("conflict", braked)},
		"RemoveMissing": {reason: "what is not there cannot go", arrange: amended, request: "DELETE /v1/vnf_instances/vnf-1/amendments/tuning", status: 404, want: problem("not-found")},
		"RemoveBadTime": {reason: "a timeout is a duration", request: "DELETE /v1/vnf_instances/vnf-1/amendments/a?timeout=soon", status: 400, want: problem("invalid")},
		"NestedStill":   {reason: "what is read there is the nested path's", request: "GET /v1/vnf_instances/east/amendments/vnf-1", status: 404, want: problem("not-found")},
	})
}

// tested is a stand-in whose tests have gone so far.
func tested(state nf.OperationState, f *nf.Failure, steps ...nf.Step) func(*standIn) {
	return func(s *standIn) {
		s.operation.Verb, s.operation.Instance.Revision, s.operation.Steps = nf.Test, 0, steps
		s.versions = []nf.Operation{s.operation}
		if state.Final() {
			s.versions = []nf.Operation{finished(s.operation, state, f)}
		}
	}
}

func step(s nf.Step, began, ended int, failure string) nf.Step {
	s.Started, s.Message, s.Failed = noon(began), failure, failure != ""
	if ended > 0 {
		s.Finished = noon(ended)
	}
	return s
}

func TestTests(t *testing.T) {
	t.Parallel()
	good := []nf.Step{step(northboundtest.HookStep(nf.PhaseHookDeleteOld, nf.TestRun, [2]int{1, 2}, nf.Ref{Kind: "Pod", Name: "web-test"}), 1, 1, ""), step(northboundtest.HookStep(nf.PhaseHookCreate, nf.TestRun, [2]int{1, 2}, nf.Ref{Kind: "Pod", Name: "web-test"}), 1, 2, ""), step(northboundtest.HookStep(nf.PhaseHookWait, nf.TestRun, [2]int{1, 2}, nf.Ref{Kind: "Pod", Name: "web-test"}), 2, 3, "")}
	second := []nf.Step{step(northboundtest.HookStep(nf.PhaseHookCreate, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 4, 5, ""), step(northboundtest.HookStep(nf.PhaseHookWait, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 5, 6, ""), step(nf.Step{StepID: nf.StepID{Phase: nf.PhaseDeleteTestObjects}}, 7, 8, ""), step(nf.Step{StepID: nf.StepID{Phase: nf.PhaseFinish}}, 8, 8, "")}
	bad := []nf.Step{step(northboundtest.HookStep(nf.PhaseHookCreate, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 4, 5, ""), step(northboundtest.HookStep(nf.PhaseHookWait, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 5, 6, "Job edge/load: it failed"), step(nf.Step{StepID: nf.StepID{Phase: nf.PhaseDeleteTestObjects}}, 7, 8, ""), step(nf.Step{StepID: nf.StepID{Phase: nf.PhaseFinish}}, 8, 8, "")}
	unmade := []nf.Step{step(northboundtest.HookStep(nf.PhaseHookCreate, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 4, 5, "Job edge/load was refused"), step(northboundtest.HookStep(nf.PhaseHookWait, nf.TestRun, [2]int{2, 2}, nf.Ref{Kind: "Job", Name: "load"}), 5, 6, "")}
	const first = `{"kind": "Pod", "name": "web-test", "passed": true, "started_at": "2026-11-20T12:00:01Z", "finished_at": "2026-11-20T12:00:03Z"}`
	failure := &nf.Failure{Kind: nf.Failed, Step: "finish", Message: "cannot test VNF instance vnf-1: wait for test 2/2 Job load: it failed"}
	all := func(first, second []nf.Step) []nf.Step { return slices.Concat(first, second) }
	runAll(t, map[string]exchange{
		"Passed": {
			reason: "200 when every test has passed", arrange: tested(nf.Succeeded, nil, all(good, second)...), request: "POST /v1/vnf_instances/vnf-1/tests", status: 200,
			want: `{"verb": "test", "state": "succeeded", "passed": true, "tests": [` + first + `,
				{"kind": "Job", "name": "load", "passed": true, "started_at": "2026-11-20T12:00:04Z", "finished_at": "2026-11-20T12:00:06Z"}], "...": ""}`,
			headers: []string{"Location: /v1/operations/op-1"}, asked: nf.TestRequest{},
		},
		"NotPassed": {
			reason: "and when one has not: that was asked for", arrange: tested(nf.OperationFailed, failure, all(good, bad)...), request: "POST /v1/vnf_instances/vnf-1/tests", status: 200,
			want: `{"state": "failed", "passed": false, "tests": [` + first + `,
				{"kind": "Job", "name": "load", "passed": false, "message": "Job edge/load: it failed", "started_at": "<<>>", "finished_at": "<<>>"}],
				"failure": {"kind": "failed", "...": ""}, "...": ""}`,
		},
		"NotMade": {
			reason: "a test that cannot be made has failed", arrange: tested(nf.OperationFailed, failure, all(good, unmade)...), request: "POST /v1/vnf_instances/vnf-1/tests", status: 200,
			want: `{"passed": false, "tests": [` + first + `, {"name": "load", "passed": false, "message": "Job edge/load was refused", "...": ""}], "...": ""}`,
		},
		"Steps": {
			reason: "the step says that it failed, and the operation went on", arrange: tested(nf.OperationFailed, failure, bad...), request: "POST /v1/vnf_instances/vnf-1/tests", status: 200,
			want: `{"steps": [{"name": "create test 2/2 Job load", "started_at": "<<>>", "finished_at": "<<>>"}, {"name": "wait for test 2/2 Job load", "failed": true, "message": "Job edge/load: it failed", "...": ""}, "..."], "...": ""}`,
		},
		"Options": {
			reason: "options are handed on", arrange: tested(nf.Succeeded, nil), request: "POST /v1/vnf_instances/vnf-1/tests", header: []string{asJSON},
			body: `{"timeout": "5m", "on_unreachable": "wait"}`, status: 200, want: `{"tests": [], "...": ""}`, asked: nf.TestRequest{Options: nf.Options{Timeout: 5 * time.Minute, WaitForRegion: true}},
		},
		"Async": {
			reason: "respond-async does not wait", arrange: tested(nf.Running, nil, good[:2]...), request: "POST /v1/vnf_instances/vnf-1/tests", header: []string{"Prefer: respond-async"}, status: 202,
			want:    `{"state": "running", "tests": [{"kind": "Pod", "name": "web-test", "started_at": "2026-11-20T12:00:01Z"}], "...": ""}`,
			headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"},
		},
		"Broken": {
			reason: "a test that was not run is no verdict", arrange: tested(nf.OperationFailed, &nf.Failure{Kind: nf.Unreachable, Message: "the region is away"}, bad[:2]...),
			request: "POST /v1/vnf_instances/vnf-1/tests", status: 502, want: problem("unreachable", `"operation": "op-1"`),
		},
		"Cancelled": {reason: "nor is one that was stopped", arrange: tested(nf.OperationCancelled, nil, good[:2]...), request: "POST /v1/vnf_instances/vnf-1/tests", status: 409, want: problem("cancelled")},
		"None":      {reason: "a package without tests", arrange: failing("Test", nf.E(nf.Conflict, "test", "VNF instance vnf-1", errors.New("its package has no test hooks"))), request: "POST /v1/vnf_instances/vnf-1/tests", status: 409, want: problem("conflict")},
		"Missing":   {reason: "no instance, no tests", request: "POST /v1/vnf_instances/vnf-2/tests", status: 404, want: problem("not-found")},
		"Unknown":   {reason: "there is nothing to undo", request: "POST /v1/vnf_instances/vnf-1/tests", header: []string{asJSON}, body: `{"on_failure": "undo"}`, status: 400, want: problem("invalid")},
		"Read": {
			reason: "the operation reports it later, too", arrange: func(s *standIn) {
				tested(nf.Running, nil, all(good, bad)...)(s)
				s.operation = finished(s.operation, nf.OperationFailed, failure)
			}, request: "GET /v1/operations/op-1", status: 200, want: `{"verb": "test", "passed": false, "tests": [{"...": ""}, {"...": ""}], "...": ""}`,
		},
		"NestedStill": {reason: "a namespace may be named tests", request: "GET /v1/vnf_instances/east/tests", status: 404, want: problem("not-found")},
	})
}

func TestChartInstances(t *testing.T) {
	t.Parallel()
	chart := func(s *standIn) {
		s.instance.Release, s.instance.Annotations = "web", map[string]string{"x": "y"}
		s.instance.Inputs = nf.Inputs{
			Overrides:   map[string]string{"image.tag": "1.4", "db.password": "s3cret", `users[0].password`: "s3cret", "passwords": "shown"},
			KubeVersion: "v1.30.0", ObjectLabels: map[string]string{"a": "b"},
		}
		amended(s)
	}
	runAll(t, map[string]exchange{
		"Create": {
			reason: "a chart has a release, and values by their paths", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "csar_id": "web", "release": "web", "set": {"image.tag": "1.4", "list": "{a,b}"}, "wait": "applied"}`,
			status: 201, want: asked,
			asked: nf.InstantiateRequest{
				Spec:   nf.Spec{Package: "web", Release: "web", Inputs: nf.Inputs{Overrides: map[string]string{"image.tag": "1.4", "list": "{a,b}"}}},
				Region: "east", Options: nf.Options{NoWait: true},
			},
		},
		"CreateReady":    {reason: "to wait until it is ready is to say nothing", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: `{"cloud_region_id": "east", "csar_id": "web", "wait": "ready"}`, status: 201, want: asked, asked: nf.InstantiateRequest{Spec: nf.Spec{Package: "web"}, Region: "east"}},
		"CreateRelease":  {reason: "a release has a name of Helm's", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: `{"cloud_region_id": "east", "csar_id": "web", "release": "Web"}`, status: 400, want: problem("invalid", `"errors": [{"field": "release", "message": "must be 1 to 53 lower-case letters, digits or '-', with a letter or digit at both ends"}]`)},
		"CreateSetTyped": {reason: "Helm's --set has texts", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: `{"cloud_region_id": "east", "csar_id": "web", "set": {"a": 3}}`, status: 400, want: problem("invalid", `"errors": [{"field": "set.a", "message": "must be a string, not a number"}]`)},
		"CreateSetMask":  {reason: "a mask is no secret", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: `{"cloud_region_id": "east", "csar_id": "web", "set": {"a": "********"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "set.a", "message": "<<>>"}]`)},
		"Get": {
			reason: "what is on the way to a sensitive name is masked", arrange: chart, request: "GET /v1/vnf_instances/vnf-1", status: 200,
			want: `{"release": "web", "set": {"image.tag": "1.4", "db.password": "********", "users[0].password": "********", "passwords": "shown"}, "...": ""}`,
		},
		"Patch": {
			reason: "values are merged, and what the patch cannot speak of stays", arrange: chart, request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch},
			body: `{"set": {"image.tag": null, "replicas": "3"}, "wait": "applied"}`, status: 200, want: `{"...": ""}`,
			asked: upgrade{
				func() nf.Spec {
					s := newStandIn()
					chart(s)
					return nf.Spec{
						Package: "firewall", Labels: s.instance.Labels, Release: "web", Amendments: s.instance.Amendments, Annotations: map[string]string{"x": "y"},
						Inputs: nf.Inputs{
							Overrides:   map[string]string{"replicas": "3", "db.password": "s3cret", "users[0].password": "s3cret", "passwords": "shown"},
							KubeVersion: "v1.30.0", ObjectLabels: map[string]string{"a": "b"},
						},
					}
				}(), nf.Options{NoWait: true},
			},
		},
		"PatchRelease":  {reason: "a release keeps its name", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{"release": "other"}`, status: 400, want: problem("invalid")},
		"RollbackWait":  {reason: "a return can be waited for likewise", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"wait": "applied"}`, status: 200, want: asked, asked: nf.RollbackRequest{Options: nf.Options{NoWait: true}}},
		"OperationWait": {reason: "the operation says so", arrange: func(s *standIn) { s.operation.Instance.NoWait = true }, request: "GET /v1/operations/op-1", status: 200, want: `{"wait": "applied", "...": ""}`},
	})
}
