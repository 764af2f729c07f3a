package native_test

import (
	"errors"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestRepairs(t *testing.T) {
	t.Parallel()
	const body = `{"operation_id": "op-1", "state": "running", "...": ""}`
	gone := func(s *standIn) {
		s.operation.Verb, s.operation.Applied = nf.Terminate, noon(2)
		s.versions = []nf.Operation{s.operation, finished(s.operation, nf.Succeeded, nil)}
	}
	runAll(t, map[string]exchange{
		"Retry": {
			reason: "answered with the new operation when every object is applied", request: "POST /v1/operations/op-1/retry", status: 200, want: body,
			headers: []string{"Location: /v1/operations/op-1"}, asked: repair{"retry", "op-1", nf.Options{}},
		},
		"RetryOptions": {
			reason: "every option is handed on", request: "POST /v1/operations/op-1/retry", header: []string{asJSON},
			body: `{"on_failure": "keep", "timeout": 60, "on_unreachable": "wait", "confirm": "sha256:of-these"}`, status: 200, want: body,
			asked: repair{"retry", "op-1", nf.Options{OnFailure: nf.Keep, Timeout: time.Minute, WaitForRegion: true, Confirm: "sha256:of-these"}},
		},
		"RetryAsync": {
			reason: "respond-async does not wait", arrange: stuck, request: "POST /v1/operations/op-1/retry", header: []string{"Prefer: respond-async"}, status: 202, want: body,
			headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"},
		},
		"RetryRemoval": {
			reason: "a removal is waited for to its end", arrange: gone, request: "POST /v1/operations/op-1/retry", status: 200,
			want: `{"verb": "terminate", "state": "succeeded", "...": ""}`,
		},
		"RetryFails": {
			reason: "a second failure is reported", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Message: "crash loop"}),
			request: "POST /v1/operations/op-1/retry", status: 424, want: problem("failed", `"operation": "op-1", "vnf_id": "vnf-1"`),
		},
		"RetryNothing": {
			reason: "an operation that did not fail is not retried", arrange: failing("Retry", nf.E(nf.Conflict, "retry", "operation op-1", errors.New("it succeeded"))),
			request: "POST /v1/operations/op-1/retry", status: 409, want: problem("conflict"),
		},
		"RetryMissing": {reason: "no operation, nothing to retry", request: "POST /v1/operations/op-2/retry", status: 404, want: problem("not-found")},
		"RetryUnknown": {reason: "unknown fields are refused", request: "POST /v1/operations/op-1/retry", header: []string{asJSON}, body: `{"revision": 1}`, status: 400, want: problem("invalid")},
		"RetryBadTime": {reason: "a timeout is a duration", request: "POST /v1/operations/op-1/retry", header: []string{asJSON}, body: `{"timeout": "soon"}`, status: 400, want: problem("invalid")},
		"RetryDry": {
			reason: "a dry run starts nothing", request: "POST /v1/operations/op-1/retry?dry_run=true", header: []string{asJSON}, body: `{"on_failure": "undo"}`,
			status: 200, want: `{"changes": [{"name": "web", "...": ""}], "warnings": []}`, asked: repair{"preview retry", "op-1", nf.Options{OnFailure: nf.Undo}},
		},
		"UndoDry": {
			reason: "likewise", request: "POST /v1/operations/op-1/undo?dry_run=true", status: 200, want: `{"changes": [{"name": "web", "...": ""}], "warnings": []}`,
			asked: repair{"preview undo", "op-1", nf.Options{}},
		},
		"UndoDryMissing": {reason: "it fails as the request does", request: "POST /v1/operations/op-2/undo?dry_run=true", status: 404, want: problem("not-found")},
		"Undo": {
			reason: "likewise", request: "POST /v1/operations/op-1/undo", header: []string{asJSON}, body: `{"timeout": "1m"}`, status: 200, want: body,
			asked: repair{"undo", "op-1", nf.Options{Timeout: time.Minute}},
		},
		"UndoPolicy":  {reason: "an undo is not undone", request: "POST /v1/operations/op-1/undo", header: []string{asJSON}, body: `{"on_failure": "undo"}`, status: 400, want: problem("invalid")},
		"UndoBraked":  {reason: "the brake holds it, too", arrange: failing("Undo", brake), request: "POST /v1/operations/op-1/undo", status: 409, want: problem("conflict", braked)},
		"UndoMissing": {reason: "no operation, nothing to undo", request: "POST /v1/operations/op-2/undo", status: 404, want: problem("not-found")},
	})
}

func TestOperationsTellAll(t *testing.T) {
	t.Parallel()
	everything := func(s *standIn) {
		s.operation.Project, s.operation.WaitForRegion, s.operation.Instance.Orphan, s.operation.Instance.Repeats = "blue", true, true, "op-0"
		s.operation.Instance.Volumes = true
		s.operation.Attempts, s.operation.UndoBy, s.operation.Undoing = 2, noon(30), true
		s.operation.Waiting = &nf.Wait{Since: noon(2), Reason: "tcp", For: "cloud region east is unreachable", Next: noon(9)}
		s.operation.Claim, s.operation.Request = "s3cret", nf.RequestKey{Client: "user:ann", Key: "s3cret", Digest: "sha256:s3cret"}
	}
	const all = `"project": "blue", "on_unreachable": "wait", "orphan": true, "claims": "delete", "retry_of": "op-0", "attempts": 2, "undo_deadline": "2026-11-20T12:00:30Z", "undoing": true,
		"waiting": {"since": "2026-11-20T12:00:02Z", "reason": "tcp", "message": "cloud region east is unreachable", "next_attempt_at": "2026-11-20T12:00:09Z"}`
	const rest = `"operation_id": "op-1", "subject": {"kind": "vnf_instance", "id": "vnf-1"}, "vnf_id": "vnf-1", "cloud_region_id": "east", "namespace": "edge", "verb": "instantiate", "state": "running", "revision": 1,
		"on_failure": "undo", "steps": ["..."], "warnings": ["..."], "accepted_at": "<<>>", "started_at": "<<>>", "deadline": "<<>>"`
	runAll(t, map[string]exchange{
		"List": {reason: "claims and keys are internal", arrange: everything, request: "GET /v1/operations", status: 200, want: `{"operations": [{` + all + `, ` + rest + `}]}`},
		"Get":  {reason: "the same", arrange: everything, request: "GET /v1/operations/op-1", status: 200, want: `{` + all + `, ` + rest + `, "changes": ["..."]}`},
	})
}
