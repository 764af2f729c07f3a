package native_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const shown = `"vnf_id": "vnf-1", "cloud_region_id": "east", "namespace": "edge", "project": "default", "csar_id": "firewall", "vnf_instance_name": "fw-1",
	"vnf_components": {"deployment": ["web"], "service": ["web"]},
	"parameters": {"password": "********", "replicas": 2},
	"oof_parameters": [{"site": "a", "login": {"password": "********"}}],
	"network_parameters": {"oam": {"ip_address": "10.0.0.7"}},
	"labels": {"tenant": "blue"}, "state": "ready", "revision": 1, "operation_id": "op-1",
	"links": {"self": "/v1/vnf_instances/vnf-1", "cloud_region": "/v1/cloud_regions/east", "package": "/v1/packages/firewall", "operation": "/v1/operations/op-1"},
	"created_at": "2026-11-20T12:00:00Z", "updated_at": "2026-11-20T12:00:01Z"`

const asked = `{` + shown + `, "warnings": ["odd.yaml is not named"]}`

const create = `{"cloud_region_id": "east", "csar_id": "firewall"}`

// failed is a stand-in whose operation ends with the failure.
func failed(state nf.OperationState, f *nf.Failure) func(*standIn) {
	return func(s *standIn) { s.versions = []nf.Operation{s.operation, finished(s.operation, state, f)} }
}

func stuck(s *standIn) { s.versions = s.versions[:1] }

func TestCreateInstance(t *testing.T) {
	t.Parallel()
	pull := &nf.Failure{Kind: nf.Failed, Reason: "image-pull", Step: "apply", Message: "Deployment edge/web cannot pull its image"}
	cases := map[string]exchange{
		"Applied": {
			reason: "201 when every object is applied", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create,
			status: 201, want: asked, headers: []string{"Location: /v1/vnf_instances/vnf-1"},
		},
		"FoundingForm": {
			reason: "the body of 2018, every field of ours, and the path with a slash", request: "POST /v1/vnf_instances/", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "csar_id": "firewall", "namespace": "edge", "oof_parameters": [{"a": 1}],
				"network_parameters": {"oam_ip_address": {"ip_address": "10.0.0.7"}}, "vnf_instance_name": "fw-1",
				"vnf_instance_description": "first", "parameters": {"b": [true]}, "labels": {"x": "y"}, "on_failure": "keep", "timeout": "1h30m"}`,
			status: 201, want: asked,
			asked: nf.InstantiateRequest{
				Spec: nf.Spec{Package: "firewall", Labels: map[string]string{"x": "y"}, Description: "first", Inputs: nf.Inputs{
					Parameters: map[string]any{"b": []any{true}}, OOF: []map[string]any{{"a": 1.0}},
					Network: map[string]any{"oam_ip_address": map[string]any{"ip_address": "10.0.0.7"}},
				}},
				Region: "east", Namespace: "edge", Name: "fw-1", Options: nf.Options{OnFailure: nf.Keep, Timeout: 90 * time.Minute},
			},
		},
		"Seconds": {
			reason: "a timeout may be a number of seconds", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "csar_id": "firewall", "timeout": 90}`, status: 201, want: asked,
			asked: nf.InstantiateRequest{Spec: nf.Spec{Package: "firewall"}, Region: "east", Options: nf.Options{Timeout: 90 * time.Second}},
		},
		"Namespaces": {
			reason: "further namespaces are opened", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "csar_id": "firewall", "namespaces": ["kube-system"]}`, status: 201, want: asked,
			asked: nf.InstantiateRequest{Spec: nf.Spec{Package: "firewall", Namespaces: []string{"kube-system"}}, Region: "east"},
		},
		"Async": {
			reason: "respond-async does not wait", arrange: stuck, request: "POST /v1/vnf_instances", header: []string{asJSON, "Prefer: respond-async"},
			body: create, status: 202, want: asked, headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"},
		},
		"Wait": {
			reason: "a bounded wait ends with 202", arrange: stuck, request: "POST /v1/vnf_instances", header: []string{asJSON, "Prefer: wait=0"},
			body: create, status: 202, want: asked, headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: wait=0"},
		},
		"AsyncWait": {
			reason: "with both preferences the wait counts", request: "POST /v1/vnf_instances", header: []string{asJSON, `Prefer: wait="60"; x=y, foo`, "Prefer: respond-async"},
			body: create, status: 201, want: asked,
		},
		"DryRun": {
			reason: "a dry run answers what would change", request: "POST /v1/vnf_instances?dry_run=true", header: []string{asJSON}, body: create,
			status: 200, want: `{"warnings": [], "changes": [{"api_version": "apps/v1", "kind": "Deployment", "namespace": "edge", "name": "web", "action": "configured",
				"fields": [{"path": "spec.replicas", "old": 0, "new": 3}, {"path": "spec.paused", "new": false}]}]}`,
		},
		"Adopt": {
			reason: "objects without an owner are adopted if the request says so", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body: `{"cloud_region_id": "east", "csar_id": "firewall", "adopt": true}`, status: 201, want: asked,
			asked: nf.InstantiateRequest{Spec: nf.Spec{Package: "firewall"}, Region: "east", Adopt: true},
		},
		"DryRunObjects": {
			reason: "and the objects, if they are asked for", request: "POST /v1/vnf_instances?dry_run=true&objects=true", header: []string{asJSON}, body: create,
			status: 200, want: `{"warnings": [], "changes": ["..."], "objects": [{"stage": "deployment", "file": "web.yaml", "line": 1, "object": {"kind": "Deployment"}},
				{"file": "job.yaml", "line": 2, "hook_events": ["pre-install"], "object": {"kind": "Job"}}]}`,
		},
		"DryRunRefused": {
			reason: "a dry run fails as the request would", arrange: failing("PreviewInstantiate", nf.E(nf.Unsupported, "apply", "the package", nf.Violations{{File: "a.yaml", Line: 1, Message: "the region has no kind Foo"}})),
			request: "POST /v1/vnf_instances?dry_run=true", header: []string{asJSON}, body: create, status: 422, want: problem("unsupported"),
		},
		"Undone": {
			reason: "a failure is reported after the undo", arrange: failed(nf.OperationFailed, pull),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 424,
			want: problem("failed", `"reason": "image-pull", "operation": "op-1", "operation_url": "/v1/operations/op-1", "vnf_id": "vnf-1",
				"detail": "cannot instantiate VNF instance vnf-1: Deployment edge/web cannot pull its image"`),
		},
		"AppliedThenUndoing": {
			reason: "what is being taken back has not been applied", arrange: func(s *standIn) {
				undoing := with(s.operation, func(o *nf.Operation) { o.Applied, o.Undoing = noon(2), true })
				s.versions = []nf.Operation{undoing, finished(undoing, nf.OperationFailed, pull)}
			},
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 424, want: problem("failed"),
		},
		"Cancelled": {
			reason: "another client cancelled it", arrange: failed(nf.OperationCancelled, nil),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 409, want: problem("cancelled", `"operation": "op-1"`),
		},
		"FailedUnexplained": {
			reason: "a failure without a record is still one", arrange: failed(nf.OperationFailed, nil),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 424, want: problem("failed"),
		},
		"Deadline": {
			reason: "the operation's deadline is a timeout", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Timeout, Message: "the deadline passed"}),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 504, want: problem("timeout"),
		},
		"Defect": {
			reason: "the response contains the failure of the operation's record", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Internal, Message: "cannot decode the plan"}),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 500,
			want: problem("internal", `"detail": "cannot instantiate VNF instance vnf-1: cannot decode the plan", "operation": "op-1"`),
		},
		"RefusedByCluster": {
			reason: "violations survive the operation's record", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Invalid, Message: "refused", Violations: nf.Violations{{File: "a.yaml", Line: 3, Message: "spec.replicas: must be positive"}}}),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 400,
			want: problem("invalid", `"errors": [{"file": "a.yaml", "line": 3, "message": "spec.replicas: must be positive"}]`),
		},
		"StoreLost": {
			reason: "an operation that cannot be followed is named", arrange: func(s *standIn) {
				stuck(s)
				s.fail["Follow"] = nf.E(nf.Unreachable, "read", "operation", errDisk)
			},
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 502, want: problem("unreachable", `"operation": "op-1", "vnf_id": "vnf-1"`),
		},
		"InstanceLost": {
			reason: "an instance that cannot be read is named", arrange: failing("Instance", nf.E(nf.Unreachable, "read", "VNF instance", errDisk)),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: 502, want: problem("unreachable", `"vnf_id": "vnf-1", "operation": "op-1", "operation_url": "/v1/operations/op-1"`),
		},
		"Mask": {
			reason: "a mask must not become the secret", request: "POST /v1/vnf_instances", header: []string{asJSON},
			body:   `{"cloud_region_id": "east", "csar_id": "firewall", "oof_parameters": [{"login": [{"password": "********"}]}]}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "oof_parameters[0].login[0].password", "message": "<<>>"}]`),
		},
	}
	for kind, status := range map[nf.Kind]int{
		nf.NotFound: 404, nf.Conflict: 409, nf.Exists: 409, nf.Unreachable: 502, nf.Unsupported: 422, nf.Invalid: 400, nf.Internal: 500, nf.TooLarge: 413,
	} {
		cases["Refused "+kind.String()] = exchange{
			reason: "a refusal has its kind's status", arrange: failing("Instantiate", nf.E(kind, "instantiate", "package firewall", errors.New("why"))),
			request: "POST /v1/vnf_instances", header: []string{asJSON}, body: create, status: status, want: problem(kind.String()),
		}
	}
	for name, c := range map[string][2]string{
		"Empty":         {``, `"errors": [{"message": "the body is empty"}]`},
		"NotJSON":       {"{\n  \"csar_id\": x}", `"errors": [{"message": "the body is not JSON: line 2, column 14: <<>>"}]`},
		"NotAnObject":   {`[]`, `"errors": [{"message": "must be an object, not an array"}]`},
		"Missing":       {`{}`, `"errors": [{"field": "csar_id", "message": "is missing"}]`},
		"Unknown":       {`{"cloud_region_id": "e", "csar_id": "f", "colour": 1, "CSAR_ID": "x"}`, `"errors": [{"field": "CSAR_ID", "message": "is not a known field"}, {"field": "colour", "message": "is not a known field"}]`},
		"WrongType":     {`{"cloud_region_id": 7, "csar_id": "f", "oof_parameters": [{}, 1], "labels": {"a": true}}`, `"errors": [{"field": "cloud_region_id", "message": "must be a string, not a number"}, {"field": "labels.a", "message": "must be a string, not a boolean"}, {"field": "oof_parameters[1]", "message": "must be an object, not a number"}]`},
		"BadNamespace":  {`{"cloud_region_id": "e", "csar_id": "f", "namespace": "a|b"}`, `"errors": [{"field": "namespace", "message": "must be 1 to 63 lower-case letters, digits or '-', with a letter or digit at both ends"}]`},
		"BadOnFailure":  {`{"cloud_region_id": "e", "csar_id": "f", "on_failure": "panic"}`, `"errors": [{"field": "on_failure", "message": "must be one of undo, keep"}]`},
		"BadTimeout":    {`{"cloud_region_id": "e", "csar_id": "f", "timeout": "soon"}`, `"errors": [{"field": "timeout", "message": "must be a duration such as 10m, or a number of seconds, of at most 24h"}]`},
		"LongTimeout":   {`{"cloud_region_id": "e", "csar_id": "f", "timeout": "25h"}`, `"errors": [{"field": "timeout", "message": "<<>>"}]`},
		"HugeTimeout":   {`{"cloud_region_id": "e", "csar_id": "f", "timeout": "99999999999999999999"}`, `"errors": [{"field": "timeout", "message": "<<>>"}]`},
		"ZeroTimeout":   {`{"cloud_region_id": "e", "csar_id": "f", "timeout": "0s"}`, `"errors": [{"field": "timeout", "message": "<<>>"}]`},
		"Trailing":      {`{"cloud_region_id": "e", "csar_id": "f"} {}`, `"errors": [{"message": "the body is not JSON: <<>>"}]`},
		"Deep":          {`{"cloud_region_id": "e", "csar_id": "f", "parameters": {"a": ` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`, `"errors": [{"message": "the document nests deeper than 100 levels"}]`},
		"OutOfRange":    {`{"cloud_region_id": "e", "csar_id": "f", "parameters": {"a": 1e999}}`, `"errors": [{"field": "parameters.a", "message": "is a number out of range"}]`},
		"NotAList":      {`{"cloud_region_id": "e", "csar_id": "f", "oof_parameters": {}, "parameters": []}`, `"errors": [{"field": "oof_parameters", "message": "must be an array, not an object"}, {"field": "parameters", "message": "must be an object, not an array"}]`},
		"LongText":      {`{"cloud_region_id": "e", "csar_id": "f", "vnf_instance_description": "` + strings.Repeat("x", 1025) + `"}`, `"errors": [{"field": "vnf_instance_description", "message": "must not be longer than 1024 characters"}]`},
		"NoSeconds":     {`{"cloud_region_id": "e", "csar_id": "f", "timeout": 0}`, `"errors": [{"field": "timeout", "message": "must be a duration such as 10m, or a number of seconds, of at most 24h"}]`},
		"TextLabels":    {`{"cloud_region_id": "e", "csar_id": "f", "labels": "a=b"}`, `"errors": [{"field": "labels", "message": "must be an object, not a string"}]`},
		"NullNamespace": {`{"cloud_region_id": "e", "csar_id": "f", "namespace": null}`, `"errors": [{"field": "namespace", "message": "must not be null"}]`},
	} {
		cases["Body"+name] = exchange{
			reason: "a wrong body is refused with the place and the reason", request: "POST /v1/vnf_instances", header: []string{asJSON}, body: c[0],
			status: 400, want: problem("invalid", c[1]),
		}
	}
	runAll(t, cases)
}

func TestReadInstances(t *testing.T) {
	t.Parallel()
	const inList = `{"vnf_id": "vnf-1", "cloud_region_id": "east", "namespace": "edge", "project": "default", "csar_id": "firewall", "vnf_instance_name": "fw-1",
		"labels": {"tenant": "blue"}, "state": "ready", "health": "healthy", "revision": 1, "operation_id": "op-1", "links": {"...": ""}, "created_at": "<<>>", "updated_at": "<<>>"}`
	const objects = `"objects": [
		{"api_version": "apps/v1", "kind": "Deployment", "namespace": "edge", "name": "web", "status": "Current", "message": "2 of 2"},
		{"api_version": "v1", "kind": "Service", "namespace": "edge", "name": "web", "status": "Current"}]`
	cases := map[string]exchange{
		"Get": {reason: "with the health of each object", request: "GET /v1/vnf_instances/vnf-1", status: 200, want: `{` + shown + `, "health": "healthy", "healthy": true, ` + objects + `}`},
		"GetBusy": {
			reason: "the running operation is named", arrange: func(s *standIn) { s.instance.Operation, s.instance.State = "op-1", nf.Updating },
			request: "GET /v1/vnf_instances/vnf-1", status: 200, want: `{"running_operation_id": "op-1", "state": "updating", "...": ""}`,
		},
		"GetUnhealthy": {
			reason: "one bad object is enough", arrange: func(s *standIn) { s.health[1].Status = nf.InProgress },
			request: "GET /v1/vnf_instances/vnf-1", status: 200, want: `{"healthy": false, "health": "unhealthy", "health_message": "Service edge/web is not ready", "...": ""}`,
		},
		"GetNoObjects": {
			reason: "a ready instance of definitions alone is well", arrange: func(s *standIn) { s.health = nil },
			request: "GET /v1/vnf_instances/vnf-1", status: 200, want: `{"healthy": true, "health": "healthy", "objects": [], "...": ""}`,
		},
		"GetRegionAway": {
			reason: "known data is returned while the region is unreachable", arrange: failing("Health", nf.E(nf.Unreachable, "read", "cloud region east", errors.New("no route"))),
			request: "GET /v1/vnf_instances/vnf-1", status: 200,
			want: `{"healthy": false, "health": "unknown", "objects": [{"kind": "Service", "status": "Unknown", "message": "cannot read cloud region east: no route", "...": ""}, "..."], "...": ""}`,
		},
		"GetPods": {reason: "with the pods and their interfaces", request: "GET /v1/vnf_instances/vnf-1?pods=true", status: 200,
			want: `{"pods": [{"name": "web", "status": "Current", "workload": {"name": "web", "...": ""}, "interfaces": [{"name": "net1", "network": "oam", "ips": ["10.1.0.9"]}], "...": ""}, "..."], "...": ""}`},
		"GetPodsDefect": {reason: "a defect is a defect", arrange: failing("Pods", errDisk), request: "GET /v1/vnf_instances/vnf-1?pods=true", status: 500, want: problem("internal")},
		"GetDefect":     {reason: "a defect is a defect", arrange: failing("Health", errDisk), request: "GET /v1/vnf_instances/vnf-1", status: 500, want: problem("internal")},
		"GetMissing":    {reason: "no instance, no answer", request: "GET /v1/vnf_instances/vnf-2", status: 404, want: problem("not-found")},
		"List":          {reason: "instances are listed as summaries", request: "GET /v1/vnf_instances", status: 200, want: `{"vnf_instances": [` + inList + `]}`},
		"ListUnhealthy": {
			reason: "a list returns the health without a request to the region", request: "GET /v1/vnf_instances", status: 200,
			arrange: func(s *standIn) {
				failing("Health", errDisk)(s)
				s.health[1].Status = nf.Absent
			},
			want: `{"vnf_instances": [{"state": "ready", "health": "unhealthy", "health_message": "Service edge/web is missing", "...": ""}]}`,
		},
		"ListBadHealth": {reason: "a health is one of three", request: "GET /v1/vnf_instances?health=great", status: 400, want: problem("invalid", `"errors": [{"field": "health", "message": "must be one of healthy, unhealthy, unknown"}]`)},
		"ListFails":     {reason: "a failing store fails the list", arrange: failing("Instances", errDisk), request: "GET /v1/vnf_instances", status: 500, want: problem("internal")},
		"ListBadState":  {reason: "a state is one of five", request: "GET /v1/vnf_instances?state=great", status: 400, want: problem("invalid", `"errors": [{"field": "state", "message": "must be one of instantiating, ready, updating, failed, terminating"}]`)},
		"ListBadLimit":  {reason: "a limit is a number", request: "GET /v1/vnf_instances?limit=all", status: 400, want: problem("invalid", `"errors": [{"field": "limit", "message": "must be an integer"}]`)},
		"ListBigLimit":  {reason: "a limit has a limit", request: "GET /v1/vnf_instances?limit=1001", status: 400, want: problem("invalid", `"errors": [{"field": "limit", "message": "must be at most 1000"}]`)},
		"ListUnknown":   {reason: "a misspelt filter would select everything", request: "GET /v1/vnf_instances?region=east", status: 400, want: problem("invalid", `"errors": [{"field": "region", "message": "is not a known query parameter"}]`)},
		"ListBadQuery":  {reason: "half a filter would select everything", request: "GET /v1/vnf_instances?namespace=%zz", status: 400, want: problem("invalid")},
		"ListPages": {
			reason: "pages continue after the marker", arrange: func(s *standIn) { s.more = []string{"vnf-2", "vnf-3"} }, request: "GET /v1/vnf_instances?limit=1&marker=vnf-1&namespace=edge",
			status: 200, want: `{"vnf_instances": [{"vnf_id": "vnf-2", "...": ""}], "next": "vnf-2"}`,
			headers: []string{`Link: </v1/vnf_instances?limit=1&marker=vnf-2&namespace=edge>; rel="next"`},
		},
		"NestedList":          {reason: "the ids of a namespace", request: "GET /v1/vnf_instances/east/edge", status: 200, want: `{"vnf_id_list": ["vnf-1"]}`},
		"NestedListNone":      {reason: "an empty namespace is not found", request: "GET /v1/vnf_instances/east/core", status: 404, want: problem("not-found")},
		"NestedListFails":     {reason: "a failing store fails the list", arrange: failing("Instances", errDisk), request: "GET /v1/vnf_instances/east/edge", status: 500, want: problem("internal")},
		"NestedGet":           {reason: "the same as the flat one", request: "GET /v1/vnf_instances/east/edge/vnf-1", status: 200, want: `{` + shown + `, "health": "healthy", "healthy": true, ` + objects + `}`},
		"NestedGetElsewhere":  {reason: "an instance of another namespace is not here", request: "GET /v1/vnf_instances/east/core/vnf-1", status: 404, want: problem("not-found")},
		"NestedGetOtherPlace": {reason: "nor is one of another region", request: "GET /v1/vnf_instances/west/edge/vnf-1", status: 404, want: problem("not-found")},
		"NestedPut":           {reason: "it was never there", request: "PUT /v1/vnf_instances/east/edge/vnf-1", header: []string{asJSON}, body: "{}", status: 405, want: problem("invalid"), headers: []string{"Allow: GET, DELETE"}},
	}
	for query, hit := range map[string]bool{
		"cloud_region_id=east": true, "cloud_region_id=west": false, "namespace=edge": true, "namespace=core": false,
		"vnf_instance_name=fw-1": true, "vnf_instance_name=fw-2": false, "csar_id=firewall": true, "csar_id=other": false,
		"state=ready": true, "health=healthy": true, "health=unhealthy": false, "state=failed": false, "label=tenant%3Dblue": true, "label=tenant%3Dred": false,
		"label=tenant%3Dblue&label=x%3Dy": false, "cloud_region_id=east&state=failed": false,
		"label=tenant": true, "label=!tenant": false, "label=x": false, "label=!x": true, "label=tenant!%3Dblue": false, "label=tenant!%3Dred": true,
		"label=tenant+in+(red,blue)": true, "label=tenant+in+(blue)": true, "label=tenant+notin+(red,blue)": false, "label=tenant%3D%3Dblue,!x": true,
		"label=tenant%3Dblue,tenant%3Dred": false, "label=x+notin+(y)": true,
	} {
		want := `{"vnf_instances": []}`
		if hit {
			want = `{"vnf_instances": [` + inList + `]}`
		}
		cases["Filter "+query] = exchange{reason: "every filter must match", request: "GET /v1/vnf_instances?" + query, status: 200, want: want}
	}
	runAll(t, cases)
}

func TestChangeInstance(t *testing.T) {
	t.Parallel()
	inputs := newStandIn().instance.Inputs
	replicas := nf.Inputs{Parameters: map[string]any{"password": "s3cret", "replicas": 3.0}, OOF: inputs.OOF, Network: inputs.Network}
	bare := nf.Inputs{Parameters: map[string]any{"password": "s3cret", "replicas": 2.0}, Network: map[string]any{"oam": map[string]any{}}}
	busy := &nf.Error{Kind: nf.Busy, Op: "upgrade", Subject: "VNF instance vnf-1", Operation: "op-9", Err: errors.New("operation op-9 is running on it")}
	runAll(t, map[string]exchange{
		"Applied": {
			reason: "a merge patch changes what it names", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch},
			body: `{"parameters": {"replicas": 3}, "on_failure": "keep", "timeout": "5m"}`, status: 200, want: asked, headers: []string{"Location: "},
			asked: upgrade{nf.Spec{Package: "firewall", Inputs: replicas, Labels: map[string]string{"tenant": "blue"}}, nf.Options{OnFailure: nf.Keep, Timeout: 5 * time.Minute}},
		},
		"Target": {
			reason: "the answer is about what was asked for, which the record does not know yet", arrange: func(s *standIn) {
				target := nf.Revision{Number: 2, Package: "fw2", Inputs: nf.Inputs{Parameters: map[string]any{"pin": "s3cret"}}, Sensitive: []string{"pin"}, Labels: map[string]string{"x": "y"}}
				s.operation.Instance.Target = target
				s.versions = []nf.Operation{with(s.operation, func(o *nf.Operation) { o.Applied = noon(2) })}
			},
			request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{}`, status: 200,
			want: `{"csar_id": "fw2", "parameters": {"pin": "********"}, "labels": {"x": "y"}, "revision": 2, "...": ""}`,
		},
		"Everything": {
			reason: "null takes away, arrays are replaced, objects are merged", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asJSON},
			body:   `{"csar_id": "fw2", "oof_parameters": null, "network_parameters": {"oam": {"ip_address": null}}, "labels": {"tenant": null, "x": "y"}, "vnf_instance_description": "d", "timeout": null}`,
			status: 200, want: asked,
			asked: upgrade{nf.Spec{Package: "fw2", Inputs: bare, Labels: map[string]string{"x": "y"}, Description: "d"}, nf.Options{}},
		},
		"Async": {
			reason: "respond-async does not wait", arrange: stuck, request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch, "Prefer: respond-async"}, body: `{}`,
			status: 202, want: asked, headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"},
		},
		"DryRun": {
			reason: "a dry run returns the changes", request: "PATCH /v1/vnf_instances/vnf-1?dry_run=true", header: []string{asPatch}, body: `{"parameters": {"replicas": 3}}`,
			status: 200, want: `{"changes": [{"action": "configured", "...": ""}], "warnings": []}`,
			asked: upgrade{nf.Spec{Package: "firewall", Inputs: replicas, Labels: map[string]string{"tenant": "blue"}}, nf.Options{}},
		},
		"Busy": {
			reason: "the operation in the way is named", arrange: failing("Upgrade", busy), request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{}`,
			status: 409, want: problem("busy", `"operation": "op-9", "operation_url": "/v1/operations/op-9"`),
		},
		"Failed": {
			reason: "a failed upgrade is reported", arrange: failed(nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Message: "crash loop"}),
			request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{}`, status: 424, want: problem("failed"),
		},
		"Missing":   {reason: "no instance, nothing to change", request: "PATCH /v1/vnf_instances/vnf-2", header: []string{asPatch}, body: `{}`, status: 404, want: problem("not-found")},
		"Mask":      {reason: "a mask sent back is not a new secret", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{"parameters": {"password": "********"}}`, status: 400, want: problem("invalid", `"errors": [{"field": "parameters.password", "message": "<<>>"}]`)},
		"NoPackage": {reason: "an instance has a package", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{"csar_id": null}`, status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "must not be null"}]`)},
		"Region":    {reason: "an instance does not move", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{"cloud_region_id": "west"}`, status: 400, want: problem("invalid", `"errors": [{"field": "cloud_region_id", "message": "is not a known field"}]`)},
		"Timeout":   {reason: "a wrong timeout is refused", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{asPatch}, body: `{"timeout": "48h"}`, status: 400, want: problem("invalid", `"errors": [{"field": "timeout", "message": "<<>>"}]`)},
		"WrongType": {reason: "a patch is JSON", request: "PATCH /v1/vnf_instances/vnf-1", header: []string{"Content-Type: application/json-patch+json"}, body: `[]`, status: 415, want: problem("invalid")},
	})
}

func TestDeleteInstance(t *testing.T) {
	t.Parallel()
	gone := func(s *standIn) { s.versions = []nf.Operation{finished(s.operation, nf.Succeeded, nil)} }
	stays := failed(nf.OperationFailed, &nf.Failure{Kind: nf.Timeout, Message: "a finalizer holds it"})
	const op = `{"operation_id": "op-1", "vnf_id": "vnf-1", "...": ""}`
	runAll(t, map[string]exchange{
		"Gone":      {reason: "204 when it is deleted", arrange: gone, request: "DELETE /v1/vnf_instances/vnf-1?timeout=2m", status: 204, asked: nf.TerminateRequest{Options: nf.Options{Timeout: 2 * time.Minute}}},
		"Seconds":   {reason: "a timeout may be in seconds", arrange: gone, request: "DELETE /v1/vnf_instances/vnf-1?timeout=120", status: 204, asked: nf.TerminateRequest{Options: nf.Options{Timeout: 2 * time.Minute}}},
		"Async":     {reason: "respond-async does not wait", request: "DELETE /v1/vnf_instances/vnf-1", header: []string{"Prefer: respond-async"}, status: 202, want: op, headers: []string{"Location: /v1/operations/op-1", "Preference-Applied: respond-async"}},
		"Applied":   {reason: "to have asked for the removal is not to be gone", request: "DELETE /v1/vnf_instances/vnf-1", header: []string{"Prefer: wait=0"}, status: 202, want: op, headers: []string{"Preference-Applied: wait=0"}},
		"Failed":    {reason: "remaining objects are reported", arrange: stays, request: "DELETE /v1/vnf_instances/vnf-1", status: 504, want: problem("timeout", `"operation": "op-1"`)},
		"Missing":   {reason: "no instance, nothing to delete", request: "DELETE /v1/vnf_instances/vnf-2", status: 404, want: problem("not-found")},
		"Busy":      {reason: "one operation at a time", arrange: failing("Terminate", &nf.Error{Kind: nf.Busy, Op: "terminate", Subject: "VNF instance vnf-1", Operation: "op-9"}), request: "DELETE /v1/vnf_instances/vnf-1", status: 409, want: problem("busy", `"operation": "op-9"`)},
		"BadText":   {reason: "a timeout is a duration", request: "DELETE /v1/vnf_instances/vnf-1?timeout=soon", status: 400, want: problem("invalid", `"errors": [{"field": "timeout", "message": "must be a duration such as 10m, or a number of seconds"}]`)},
		"TooLong":   {reason: "a timeout is at most a day", request: "DELETE /v1/vnf_instances/vnf-1?timeout=25h", status: 400, want: problem("invalid", `"errors": [{"field": "timeout", "message": "<<>>"}]`)},
		"Nested":    {reason: "202 and nothing else, as in 2018", arrange: gone, request: "DELETE /v1/vnf_instances/east/edge/vnf-1", status: 202, headers: []string{"Location: "}},
		"NestedOn":  {reason: "the running operation is named", request: "DELETE /v1/vnf_instances/east/edge/vnf-1", header: []string{"Prefer: wait=0"}, status: 202, headers: []string{"Location: /v1/operations/op-1"}},
		"NestedBad": {reason: "remaining objects are reported", arrange: stays, request: "DELETE /v1/vnf_instances/east/edge/vnf-1", status: 504, want: problem("timeout")},
		"NestedElsewhere": {
			reason: "an instance of another namespace is not deleted", request: "DELETE /v1/vnf_instances/east/core/vnf-1", status: 404, want: problem("not-found"),
		},
		"NestedBusy": {reason: "one operation at a time", arrange: failing("Terminate", nf.E(nf.Busy, "terminate", "VNF instance vnf-1", nil)), request: "DELETE /v1/vnf_instances/east/edge/vnf-1", status: 409, want: problem("busy")},
	})
}
