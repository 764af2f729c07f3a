package native_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	const fields = `"operation_id": "op-1", "subject": {"kind": "vnf_instance", "id": "vnf-1"}, "vnf_id": "vnf-1", "cloud_region_id": "east", "namespace": "edge", "project": "default", "verb": "instantiate", "state": "running",
		"revision": 1, "on_failure": "undo", "steps": [{"name": "apply 1/1 all", "started_at": "2026-11-20T12:00:01Z", "objects": 2, "current": 1}],
		"warnings": ["odd.yaml is not named"], "accepted_at": "2026-11-20T12:00:00Z", "started_at": "2026-11-20T12:00:01Z", "deadline": "2026-11-20T12:00:59Z"`
	ended := func(s *standIn) {
		s.operation = finished(s.operation, nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Reason: "quota", Step: "apply", Message: "m", Violations: nf.Violations{{File: "a.yaml", Line: 1, Message: "v"}}})
	}
	runAll(t, map[string]exchange{
		"Get": {
			reason: "with its changes", request: "GET /v1/operations/op-1", status: 200,
			want: `{` + fields + `, "changes": [{"api_version": "v1", "kind": "Service", "namespace": "edge", "name": "web", "action": "created"}]}`,
		},
		"GetNoChanges": {
			reason: "no change is an empty list", arrange: func(s *standIn) { s.changes = nil }, request: "GET /v1/operations/op-1",
			status: 200, want: `{"changes": [], "...": ""}`,
		},
		"GetFailedStep": {
			reason: "a step says that it failed, and whether the failure says why", arrange: func(s *standIn) {
				ended(s)
				s.operation = with(s.operation, func(o *nf.Operation) {
					o.Steps = []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseReserve}, Started: noon(1), Finished: noon(2), Failed: true, InFailure: true, Message: "m"}}
				})
			}, request: "GET /v1/operations/op-1", status: 200,
			want: `{"steps": [{"name": "reserve resources", "started_at": "2026-11-20T12:00:01Z", "finished_at": "2026-11-20T12:00:02Z", "message": "m", "failed": true, "in_failure": true}], "...": ""}`,
		},
		"GetFailed": {
			reason: "the failure is all there", arrange: ended, request: "GET /v1/operations/op-1", status: 200,
			want: `{"state": "failed", "finished_at": "2026-11-20T12:00:03Z", "failure": {"kind": "failed", "reason": "quota", "step": "apply", "message": "m", "errors": [{"file": "a.yaml", "line": 1, "message": "v"}]}, "...": ""}`,
		},
		"GetMissing":    {reason: "no operation, no answer", request: "GET /v1/operations/op-2", status: 404, want: problem("not-found")},
		"GetUnreadable": {reason: "changes that cannot be read fail the answer", arrange: failing("Changes", errDisk), request: "GET /v1/operations/op-1", status: 500, want: problem("internal")},
		"List":          {reason: "without changes", request: "GET /v1/operations", status: 200, want: `{"operations": [{` + fields + `}]}`},
		"ListPages":     {reason: "in pages", arrange: func(s *standIn) { s.more = []string{"op-2"} }, request: "GET /v1/operations?limit=1", status: 200, want: `{"operations": [{` + fields + `}], "next": "op-1"}`},
		"ListByVNF":     {reason: "by instance", request: "GET /v1/operations?vnf_id=vnf-2", status: 200, want: `{"operations": []}`},
		"ListByState":   {reason: "by state", request: "GET /v1/operations?state=failed", status: 200, want: `{"operations": []}`},
		"ListByBoth":    {reason: "by both", request: "GET /v1/operations?state=running&vnf_id=vnf-1", status: 200, want: `{"operations": ["<<>>"]}`},
		"ListFails":     {reason: "a failing store fails the list", arrange: failing("Operations", errDisk), request: "GET /v1/operations", status: 500, want: problem("internal")},
		"Cancel":        {reason: "the request is accepted", request: "POST /v1/operations/op-1/cancel", status: 202, want: `{` + fields + `, "cancel_requested": true}`, headers: []string{"Location: /v1/operations/op-1"}},
		"CancelEnded":   {reason: "what has ended cannot stop", arrange: failing("Cancel", nf.E(nf.Conflict, "cancel", "operation op-1", errors.New("it has ended"))), request: "POST /v1/operations/op-1/cancel", status: 409, want: problem("conflict")},
		"CancelMissing": {reason: "no operation, nothing to stop", request: "POST /v1/operations/op-2/cancel", status: 404, want: problem("not-found")},
		"EventsMissing": {reason: "no operation, no events", request: "GET /v1/operations/op-2/events", header: []string{"Last-Event-ID: 7"}, status: 404, want: problem("not-found")},
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.versions = append(s.versions, s.versions[1], finished(s.versions[1], nf.Succeeded, nil))
	got := serve(t, s).ask(t, "GET /v1/operations/op-1/events", "", "Last-Event-ID: 7")
	if ct := got.Header.Get("Content-Type"); got.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("the stream is %s %s", got.Status, ct)
	}
	events := strings.Split(strings.TrimSuffix(string(got.body), "\n\n"), "\n\n")
	if len(events) != 3 {
		t.Fatalf("there are %d events, want 3: a version that is the same is not sent again\n%s", len(events), got.body)
	}
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"running", "running", "succeeded"} {
		lines := strings.Split(events[i], "\n")
		if want := "id: " + string(rune('1'+i)); len(lines) != 3 || lines[0] != "event: operation" || lines[1] != want {
			t.Fatalf("event %d is %q", i, events[i])
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[2], "data: ")), &data); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if err := doc.Components.Schemas["Operation"].Value.VisitJSON(data); err != nil || data["state"] != state {
			t.Errorf("event %d is not the operation in state %s: %v\n%s", i, state, err, events[i])
		}
	}
}

// TestEventsHead asks for the header of a stream that would not end.
func TestEventsHead(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	stuck(s)
	got := serve(t, s).ask(t, "HEAD /v1/operations/op-1/events", "")
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/event-stream" || len(got.body) > 0 {
		t.Errorf("the header of the stream is %s %v, with %d bytes", got.Status, got.Header, len(got.body))
	}
}

func TestEventsHeartbeat(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	site := serve(t, s, func(c *native.Config) { c.Heartbeat = time.Millisecond })
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.url+"/v1/operations/op-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := site.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// The two versions are sent again and again by a stand-in that does not
	// remember; what matters is that the comment comes through a running stream.
	lines := bufio.NewScanner(res.Body)
	beats := 0
	for beats < 2 && lines.Scan() {
		if lines.Text() == ": still here" {
			beats++
		}
	}
	if beats < 2 {
		t.Errorf("the stream ended after %d heartbeats: %v", beats, lines.Err())
	}
	leave()
}

func TestEventsCutOff(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.fail["Follow"] = errDisk
	site := serve(t, s)
	got := site.ask(t, "GET /v1/operations/op-1/events", "")
	if got.StatusCode != 200 || strings.Contains(string(got.body), "problem") {
		t.Errorf("a stream that breaks off just ends; it is %s\n%s", got.Status, got.body)
	}
}

// TestWaitEnds has the wait end while the operation continues.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	stuck(s)
	got := serve(t, s, func(c *native.Config) { c.Wait = time.Millisecond }).ask(t, "POST /v1/vnf_instances", create, asJSON)
	if got.StatusCode != 202 || got.Header.Get("Location") != "/v1/operations/op-1" || got.Header.Get("Preference-Applied") != "" {
		t.Errorf("the longest wait ended with %s %v, want 202 and the operation", got.Status, got.Header)
	}
}

func TestNewRefusesHalfAnAPI(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	if _, err := native.New(native.Config{Regions: s, Packages: s, Usage: s, Instances: s, Inspector: s, History: s, Operations: s}); err == nil {
		t.Error("an API without repairs was made")
	}
	whole := native.Config{Regions: s, Packages: s, Usage: s, Instances: s, Inspector: s, History: s, Operations: s, Repairs: s, Staging: s.stage}
	if _, err := native.New(whole); err != nil {
		t.Errorf("an API without volumes is whole: %v", err)
	}
	whole.Volumes = struct{ native.Shared }{}
	if _, err := native.New(whole); err == nil {
		t.Error("an API whose volumes have no status was made")
	}
}
