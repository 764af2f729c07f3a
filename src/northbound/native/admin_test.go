package native_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	const outcome = `{"id": "a-2", "phase": "outcome", "time": "2026-11-20T12:00:03Z", "replica": "r-1", "request_id": "q-1", "identity_kind": "user", "identity": "ann",
		"remote_address": "10.0.0.9", "method": "POST", "route": "/v1/vnf_instances", "permission": "instance:instantiate", "project": "blue", "region": "east", "subjects": ["vnf-1"],
		"status": 201, "outcome": "accepted", "operation_id": "op-1", "digest": "sha256:abc", "suppressed": 2}`
	const intent = `{"id": "a-2", "phase": "intent", "time": "2026-11-20T12:00:02Z", "method": "POST", "route": "/v1/vnf_instances"}`
	const refusal = `{"id": "a-1", "phase": "refusal", "time": "2026-11-20T12:00:01Z", "method": "GET", "route": "/v1/keys", "status": 403, "outcome": "forbidden"}`
	const place = "2026-11-20T12%2F00%3A02.000000000-a-2-intent"
	runAll(t, map[string]exchange{
		"All":   {reason: "the newest first", request: "GET /v1/audit", status: 200, want: `{"entries": [` + outcome + `, ` + intent + `, ` + refusal + `]}`},
		"None":  {reason: "an empty list is []", request: "GET /v1/audit?identity=bob", status: 200, want: `{"entries": []}`},
		"Page":  {reason: "in pages", request: "GET /v1/audit?limit=2", status: 200, want: `{"entries": [` + outcome + `, ` + intent + `], "next": "2026-11-20T12/00:02.000000000-a-2-intent"}`, headers: []string{"Link: </v1/audit?limit=2&marker=" + place + `>; rel="next"`}},
		"Next":  {reason: "they continue after the previous one", request: "GET /v1/audit?limit=2&marker=" + place, status: 200, want: `{"entries": [` + refusal + `]}`},
		"Exact": {reason: "a page that holds all is the last", request: "GET /v1/audit?limit=3", status: 200, want: `{"entries": ["..."]}`},
		"Filters": {
			reason:  "every filter is handed on",
			request: "GET /v1/audit?since=2026-11-20T12:00:02Z&until=2026-11-20T14:00:03.5%2B02:00&identity=ann&identity_kind=user&project=blue&region=east", status: 200, want: `{"entries": [` + outcome + `]}`,
			asked: nf.AuditFilter{From: noon(2), To: noon(3).Add(500 * time.Millisecond).In(time.FixedZone("", 2*60*60)), Kind: "user", Identity: "ann", Project: "blue", Region: "east"},
		},
		"BadTime":  {reason: "a time is one", request: "GET /v1/audit?since=yesterday", status: 400, want: problem("invalid", `"errors": [{"field": "since", "message": "must be a time such as 2026-11-20T09:00:00Z"}]`)},
		"NoTime":   {reason: "also when it looks like one", request: "GET /v1/audit?until=2026-13-41T99:00:00Z", status: 400, want: problem("invalid", `"errors": [{"field": "until", "message": "must be a time such as 2026-11-20T09:00:00Z"}]`)},
		"Fails":    {reason: "a log that cannot be read fails the answer", arrange: failing("Entries", errDisk), request: "GET /v1/audit", status: 500, want: problem("internal")},
		"BadLimit": {reason: "a page has an item at least", request: "GET /v1/audit?limit=0", status: 400, want: problem("invalid")},
	})
}

func TestStoreAdmin(t *testing.T) {
	t.Parallel()
	const keys = `{"primary": "k2", "records": {"k1": 3, "k2": 7}}`
	const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	runAll(t, map[string]exchange{
		"Keys":        {reason: "the names of keys and what they seal", request: "GET /v1/keys", status: 200, want: keys},
		"Version":     {reason: "clients compare it with theirs", request: "GET /v1/version", status: 200, want: `{"version": "v1.2.3"}`},
		"KeysEmpty":   {reason: "nothing sealed is {}", arrange: func(s *standIn) { s.keys.Records = nil }, request: "GET /v1/keys", status: 200, want: `{"primary": "k2", "records": {}}`},
		"KeysFail":    {reason: "a failing store fails the answer", arrange: failing("KeyStatus", errDisk), request: "GET /v1/keys", status: 500, want: problem("internal")},
		"Reseal":      {reason: "and then the same", request: "POST /v1/keys/reencrypt", status: 200, want: keys, asked: "reseal"},
		"ResealFails": {reason: "a missing key is reported", arrange: failing("Reseal", nf.E(nf.Conflict, "open", "record x", errors.New("no key k0"))), request: "POST /v1/keys/reencrypt", status: 409, want: problem("conflict")},
		"BackupWords": {reason: "a recipient is one", request: "POST /v1/backup", header: []string{asJSON}, body: `{"recipient": "me"}`, status: 400, want: problem("invalid", `"errors": [{"field": "recipient", "message": "must be an age recipient, age1…"}]`)},
		"BackupNone":  {reason: "it could not be decrypted", request: "POST /v1/backup", header: []string{asJSON}, body: `{}`, status: 400, want: problem("invalid")},
		"BackupFails": {
			reason: "an early failure is reported", arrange: func(s *standIn) {
				s.backup = ""
				s.fail["Backup"] = nf.E(nf.Invalid, "take", "a backup", nf.Violations{{Field: "recipient", Message: "is no recipient"}})
			},
			request: "POST /v1/backup", header: []string{asJSON}, body: `{"recipient": "` + recipient + `"}`, status: 400, want: problem("invalid"), asked: recipient,
		},
	})
	s := newStandIn()
	got := serve(t, s).ask(t, "POST /v1/backup", `{"recipient": "`+recipient+`"}`, asJSON)
	if got.StatusCode != 200 || string(got.body) != "everything" || got.Header.Get("Content-Type") != "application/octet-stream" ||
		got.Header.Get("Content-Disposition") != `attachment; filename="k8splugin-backup.age"` || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the backup is %s %v %q", got.Status, got.Header, got.body)
	}
}

// TestBackupCutOff checks that half a backup does not look like a whole one.
func TestBackupCutOff(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.fail["Backup"] = errDisk
	log := &syncBuffer{}
	site := serve(t, s, func(c *native.Config) { c.Logger = logger(log) })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.url+"/v1/backup", strings.NewReader(`{"recipient": "age1x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err == nil {
		res.Body.Close()
		t.Errorf("a backup that failed is answered %s", res.Status)
	}
	if !strings.Contains(log.String(), "failed to send a backup") {
		t.Errorf("nothing in the log says so: %s", log)
	}
}

// TestWithout asks an API that was made without what may be left out.
func TestWithout(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	site := serve(t, s, func(c *native.Config) { c.Conditions, c.Audit, c.StoreAdmin = nil, nil, nil })
	for name, e := range map[string]exchange{
		"Audit":  {reason: "no log, no entries", request: "GET /v1/audit", status: 404, want: problem("not-found")},
		"Keys":   {reason: "no keys, no names", request: "GET /v1/keys", status: 404, want: problem("not-found")},
		"Reseal": {reason: "nothing to seal", request: "POST /v1/keys/reencrypt", status: 404, want: problem("not-found")},
		"Backup": {reason: "nothing to back up", request: "POST /v1/backup", header: []string{asJSON}, body: `{"recipient": "age1x"}`, status: 404, want: problem("not-found")},
		"Region": {reason: "the regions are not monitored", request: "GET /v1/cloud_regions/east", status: 200, want: `{"state": {"condition": "unknown", "breaker": "closed"}, "...": ""}`},
	} {
		t.Run(name, func(t *testing.T) { e.run(t, s, site) })
	}
}

// TestContractOfAll holds what every operation of the API has.
func TestContractOfAll(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(k8splugin.Swagger)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if strings.HasPrefix(path, "/v1/") {
				for _, status := range []string{"401", "403", "429"} {
					if op.Responses.Value(status) == nil {
						t.Errorf("%s %s does not say that it may answer %s", method, path, status)
					}
				}
			}
			if slices.ContainsFunc(op.Tags, func(tag string) bool { return strings.HasSuffix(tag, ")") }) { // (ONAP), (Tacker), (ETSI)
				continue // as its clients know it
			}
			if path == "/v1/notifications/dead/{notification_id}/resend" {
				continue // a letter dies once: what is asked for a second time no longer exists
			}
			if path == "/v1/vnf_instances/{vnf_id}/aai/sync" {
				continue // a second comparison is the same
			}
			if method == http.MethodPost && op.Parameters.GetByInAndName(openapi3.ParameterInHeader, "Idempotency-Key") == nil {
				t.Errorf("%s %s does not say that it may be repeated", method, path)
			}
		}
	}
}
