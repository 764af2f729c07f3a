package native_test

import (
	"errors"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestRevisions(t *testing.T) {
	t.Parallel()
	const first = `{"number": 1, "active": true, "state": "active", "csar_id": "firewall", "package_digest": "sha256:abc", "vnf_instance_description": "first",
		"parameters": {"password": "********", "replicas": 2}, "labels": {"tenant": "blue"}, "operation_id": "op-1", "created_at": "2026-11-20T12:00:00Z"}`
	const second = `{"number": 2, "active": false, "state": "failed", "restored_revision": 1, "csar_id": "firewall", "package_digest": "sha256:abc", "operation_id": "op-2", "created_at": "2026-11-20T12:00:01Z"}`
	runAll(t, map[string]exchange{
		"List":       {reason: "in order, with what is hidden masked", request: "GET /v1/vnf_instances/vnf-1/revisions", status: 200, want: `{"revisions": [` + first + `, ` + second + `]}`},
		"ListPage":   {reason: "in pages", request: "GET /v1/vnf_instances/vnf-1/revisions?limit=1", status: 200, want: `{"revisions": [` + first + `], "next": "<<>>"}`, headers: []string{`Link: </v1/vnf_instances/vnf-1/revisions?limit=1&marker=0000000001>; rel="next"`}},
		"ListNext":   {reason: "a page continues after the previous one", request: "GET /v1/vnf_instances/vnf-1/revisions?limit=1&marker=0000000001", status: 200, want: `{"revisions": [` + second + `]}`},
		"ListNone":   {reason: "no instance, no revisions", request: "GET /v1/vnf_instances/vnf-2/revisions", status: 404, want: problem("not-found")},
		"ListFails":  {reason: "a failing store fails the list", arrange: failing("Revisions", errDisk), request: "GET /v1/vnf_instances/vnf-1/revisions", status: 500, want: problem("internal")},
		"Get":        {reason: "one of them", request: "GET /v1/vnf_instances/vnf-1/revisions/2", status: 200, want: second},
		"GetMissing": {reason: "one that is not kept", request: "GET /v1/vnf_instances/vnf-1/revisions/3", status: 404, want: problem("not-found")},
		"GetNone":    {reason: "no instance, no revision", request: "GET /v1/vnf_instances/vnf-2/revisions/1", status: 404, want: problem("not-found")},
		"GetZero":    {reason: "revisions count from 1", request: "GET /v1/vnf_instances/vnf-1/revisions/0", status: 400, want: problem("invalid", `"errors": [{"field": "number", "message": "must be at least 1"}]`)},
		"GetHuge":    {reason: "and not so far", request: "GET /v1/vnf_instances/vnf-1/revisions/99999999999999999999", status: 400, want: problem("invalid", `"errors": [{"field": "number", "message": "<<>>"}]`)},
		"GetWord":    {reason: "a revision is a number", request: "GET /v1/vnf_instances/vnf-1/revisions/first", status: 400, want: problem("invalid", `"errors": [{"field": "number", "message": "must be an integer"}]`)},
		"NestedDelete": {
			reason: "the nested paths of a namespace with this name are there still", request: "DELETE /v1/vnf_instances/east/revisions/vnf-1", status: 404, want: problem("not-found"),
		},
	})
}

// brake is a refusal that a confirmation lifts.
var brake = &nf.Error{
	Kind: nf.Conflict, Op: "rollback", Subject: "VNF instance vnf-1", Reason: nf.ReasonConfirm, Confirm: "sha256:of-these",
	Err: nf.Violations{{Field: "Service edge/web", Message: "would be deleted"}, {Field: "Service edge/db", Message: "would be deleted"}},
}

const braked = `"reason": "confirmation-required", "confirm": "sha256:of-these", "errors": [
	{"field": "Service edge/web", "message": "would be deleted"}, {"field": "Service edge/db", "message": "would be deleted"}]`

func TestRollback(t *testing.T) {
	t.Parallel()
	target := func(s *standIn) {
		s.operation.Verb, s.operation.Instance.Target = nf.Rollback, nf.Revision{Number: 3, Restores: 1, Package: "firewall", Inputs: nf.Inputs{Parameters: map[string]any{"pin": "s3cret"}}, Sensitive: []string{"pin"}}
		s.versions = []nf.Operation{with(s.operation, func(o *nf.Operation) { o.Applied = noon(2) })}
	}
	runAll(t, map[string]exchange{
		"Before": {
			reason: "without a body it is the revision before", arrange: target, request: "POST /v1/vnf_instances/vnf-1/rollback", status: 200,
			want: `{"vnf_id": "vnf-1", "revision": 3, "parameters": {"pin": "********"}, "...": ""}`, headers: []string{"Location: "},
			asked: nf.RollbackRequest{},
		},
		"Everything": {
			reason: "every option is handed on", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON, "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
			body:   `{"revision": 1, "confirm": "sha256:of-these", "on_failure": "keep", "timeout": "5m", "on_unreachable": "wait"}`,
			status: 200, want: asked,
			asked: nf.RollbackRequest{Revision: 1, Options: nf.Options{
				OnFailure: nf.Keep, Timeout: 5 * time.Minute, WaitForRegion: true, Confirm: "sha256:of-these",
				Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			}},
		},
		"Async": {
			reason: "respond-async does not wait", arrange: stuck, request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{"Prefer: respond-async"},
			status: 202, want: asked, headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"},
		},
		"DryRun": {
			reason: "a dry run returns the changes and their confirmation", arrange: func(s *standIn) { s.preview.Confirm = "sha256:of-these" },
			request: "POST /v1/vnf_instances/vnf-1/rollback?dry_run=true", header: []string{asJSON}, body: `{"revision": 1}`,
			status: 200, want: `{"changes": [{"action": "configured", "...": ""}], "warnings": [], "confirm": "sha256:of-these"}`,
			asked: nf.RollbackRequest{Revision: 1},
		},
		"Braked":   {reason: "each object that would go is named, and what would confirm it", arrange: failing("Rollback", brake), request: "POST /v1/vnf_instances/vnf-1/rollback", status: 409, want: problem("conflict", braked)},
		"Failed":   {reason: "a failure is reported", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Message: "crash loop"}), request: "POST /v1/vnf_instances/vnf-1/rollback", status: 424, want: problem("failed")},
		"Busy":     {reason: "one operation at a time, and when to ask again", arrange: failing("Rollback", &nf.Error{Kind: nf.Busy, Op: "rollback", Subject: "VNF instance vnf-1", Operation: "op-9", RetryAfter: 1500 * time.Millisecond}), request: "POST /v1/vnf_instances/vnf-1/rollback", status: 409, want: problem("busy", `"operation": "op-9"`), headers: []string{"Retry-After: 2"}},
		"Gone":     {reason: "a revision that is not kept", arrange: failing("Rollback", nf.E(nf.NotFound, "get", "revision 1", nil)), request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"revision": 1}`, status: 404, want: problem("not-found")},
		"Missing":  {reason: "no instance, nothing to roll back", request: "POST /v1/vnf_instances/vnf-2/rollback", status: 404, want: problem("not-found")},
		"Zero":     {reason: "revisions count from 1", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"revision": 0}`, status: 400, want: problem("invalid", `"errors": [{"field": "revision", "message": "must be at least 1"}]`)},
		"Unknown":  {reason: "unknown fields are refused", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"to": 1}`, status: 400, want: problem("invalid", `"errors": [{"field": "to", "message": "is not a known field"}]`)},
		"BadWord":  {reason: "there are two ways when the region is away", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"on_unreachable": "hope"}`, status: 400, want: problem("invalid", `"errors": [{"field": "on_unreachable", "message": "must be one of fail, wait"}]`)},
		"BadTime":  {reason: "a timeout is a duration", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{asJSON}, body: `{"timeout": "25h"}`, status: 400, want: problem("invalid", `"errors": [{"field": "timeout", "message": "<<>>"}]`)},
		"BadTrace": {reason: "what is no trace is none", request: "POST /v1/vnf_instances/vnf-1/rollback", header: []string{"Traceparent: x"}, status: 200, want: asked, asked: nf.RollbackRequest{}},
	})
}

// TestNewOptions checks the options of requests.
func TestNewOptions(t *testing.T) {
	t.Parallel()
	gone := func(s *standIn) { s.versions = []nf.Operation{finished(s.operation, nf.Succeeded, nil)} }
	blue := func(s *standIn) { s.instance.Project, s.operation.Project, s.pkg.Project = "blue", "blue", "blue" }
	runAll(t, map[string]exchange{
		"Create": {
			reason: "a project, and patience", arrange: blue, request: "POST /v1/vnf_instances", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "csar_id": "firewall", "project": "blue", "on_unreachable": "wait"}`,
			status: 201, want: `{"project": "blue", "...": ""}`,
			asked: nf.InstantiateRequest{Spec: nf.Spec{Package: "firewall"}, Region: "east", Project: "blue", Options: nf.Options{WaitForRegion: true}},
		},
		"CreateConfirm": {
			reason: "what is new needs no confirmation", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "csar_id": "firewall", "confirm": "x"}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "confirm", "message": "is not a known field"}]`),
		},
		"Update": {
			reason: "the options are no part of what is patched", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch},
			body: `{"confirm": "sha256:of-these", "on_unreachable": "wait"}`, status: 200, want: asked,
			asked: upgrade{
				nf.Spec{Package: "firewall", Inputs: newStandIn().instance.Inputs, Labels: map[string]string{"tenant": "blue"}},
				nf.Options{WaitForRegion: true, Confirm: "sha256:of-these"},
			},
		},
		"UpdateBraked": {reason: "the brake holds a change", arrange: failing("Upgrade", brake), request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{}`, status: 409, want: problem("conflict", braked)},
		"Orphan": {
			reason: "the objects may stay", arrange: gone, request: "DELETE /v1/vnf_instances/vnf-1?orphan=true&on_unreachable=wait", status: 204,
			asked: nf.TerminateRequest{Orphan: true, Options: nf.Options{WaitForRegion: true}},
		},
		"Warned": {
			reason:  "a response without a body has the operation's warnings in its header, each on one line",
			arrange: func(s *standIn) { s.operation.Warnings = []string{"claim \"a\" stays", "one\ntwo"}; gone(s) },
			request: "DELETE /v1/vnf_instances/vnf-1", status: 204,
			asked: nf.TerminateRequest{}, headers: []string{`Warning: 299 - "claim \"a\" stays"`, `Warning: 299 - "one two"`, "Location: /v1/operations/op-1"},
		},
		"Claims": {
			reason: "volume claims may go, too", arrange: gone, request: "DELETE /v1/vnf_instances/vnf-1?claims=delete", status: 204,
			asked: nf.TerminateRequest{Claims: nf.ClaimsDelete},
		},
		"ClaimsKept": {reason: "as they do not unasked", arrange: gone, request: "DELETE /v1/vnf_instances/vnf-1?claims=keep", status: 204, asked: nf.TerminateRequest{Claims: nf.ClaimsKeep}},
		"ClaimsWord": {reason: "one or the other", request: "DELETE /v1/vnf_instances/vnf-1?claims=perhaps", status: 400, want: problem("invalid", `"errors": [{"field": "claims", "message": "<<>>"}]`)},
		"RemoveDryRun": {
			reason: "a dry run starts no operation", arrange: failing("Terminate", errDisk), request: "DELETE /v1/vnf_instances/vnf-1?claims=delete&dry_run=true", status: 200,
			want: `{"warnings": [], "changes": ["..."]}`, asked: nf.TerminateRequest{Claims: nf.ClaimsDelete},
		},
		"OrphanWord":       {reason: "yes or no", request: "DELETE /v1/vnf_instances/vnf-1?orphan=perhaps", status: 400, want: problem("invalid", `"errors": [{"field": "orphan", "message": "must be a boolean"}]`)},
		"List":             {reason: "of a project", arrange: blue, request: "GET /v1/vnf_instances?project=blue", status: 200, want: `{"vnf_instances": [{"project": "blue", "...": ""}]}`},
		"ListDefault":      {reason: "what names no project belongs to the default one", request: "GET /v1/vnf_instances?project=default", status: 200, want: `{"vnf_instances": [{"project": "default", "...": ""}]}`},
		"ListOther":        {reason: "of another one", arrange: blue, request: "GET /v1/vnf_instances?project=default", status: 200, want: `{"vnf_instances": []}`},
		"Operations":       {reason: "so are operations", arrange: blue, request: "GET /v1/operations?project=blue", status: 200, want: `{"operations": [{"project": "blue", "...": ""}]}`},
		"OperationsOther":  {reason: "of another one", arrange: blue, request: "GET /v1/operations?project=red", status: 200, want: `{"operations": []}`},
		"Packages":         {reason: "and packages", arrange: blue, request: "GET /v1/packages?project=blue", status: 200, want: `{"packages": [{"project": "blue", "...": ""}]}`},
		"PackagesOther":    {reason: "of another one", arrange: blue, request: "GET /v1/packages?project=default", status: 200, want: `{"packages": []}`},
		"Upload":           {reason: "a package belongs to a project", request: "PUT /v1/packages/mine?project=blue", header: []string{asZip}, body: "archive", status: 201, want: `{"project": "blue", "...": ""}`, asked: upload{nf.Package{ID: "mine", Project: "blue"}, "archive"}},
		"UploadForm":       {reason: "that a part of the form may name", request: "POST /v1/packages", header: []string{asForm}, body: part("project", "blue") + part("file", "archive") + "--x--\n", status: 201, want: `{"project": "blue", "...": ""}`, asked: upload{nf.Package{Project: "blue"}, "archive"}},
		"UploadTwo":        {reason: "but not two", request: "POST /v1/packages?project=red", header: []string{asForm}, body: part("project", "blue") + part("file", "archive") + "--x--\n", status: 400, want: problem("invalid", `"errors": [{"field": "project", "message": "differs from the query"}]`)},
		"UploadBadProject": {reason: "a project is an id", request: "POST /v1/packages", header: []string{asForm}, body: part("project", "-") + part("file", "archive") + "--x--\n", status: 400, want: problem("invalid", `"errors": [{"field": "project", "message": "<<>>"}]`)},
		"DeleteDoubled": {
			reason: "what failed is said once", arrange: failed(nf.OperationFailed, nf.FailureOf("finish", nf.E(nf.Timeout, "instantiate", "VNF instance vnf-1", errors.New("its deadline has passed")))),
			request: "DELETE /v1/vnf_instances/vnf-1?timeout=1ms", status: 504, want: problem("timeout", `"detail": "cannot instantiate VNF instance vnf-1: its deadline has passed"`),
		},
		"RegionAway": {
			reason: "the time of the next attempt is reported", arrange: failing("Instantiate", &nf.Error{Kind: nf.Unreachable, Op: "reach", Subject: "cloud region east", Reason: "breaker", RetryAfter: 20 * time.Second, Err: errors.New("no route")}),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 502,
			want: problem("unreachable", `"reason": "breaker", "detail": "cannot reach cloud region east: no route; next attempt in 20s"`), headers: []string{"Retry-After: 20"},
		},
	})
}
