package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	siteStart = `{"site_id":"edge-1","project":"default","cloud_region_id":"edge-1","driver":"ansible","hosts":[` +
		`{"name":"n1","address":"10.0.0.11","port":22,"user":"debian","host_key":"ssh-ed25519 AAAA","role":"control_plane","state":"present"},` +
		`{"name":"n2","address":"10.0.0.12","port":22,"user":"debian","host_key":"ssh-ed25519 AAAB","role":"worker","state":"joining"}],` +
		`"roles":["flannel","multus"],"parameters":{"kud_artifacts":"https://artifacts.example.com/kud"},"secrets":["registry_password"],` +
		`"operation_id":"0193-5f0c","links":{"self":"/v1/sites/edge-1"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:06:12Z",`
	siteReadyJSON    = siteStart + `"state":"ready","registered":true}`
	siteBuildingJSON = siteStart + `"state":"building","registered":false}`

	siteOpStart = `{"operation_id":"0193-5f0c","subject":{"kind":"site","id":"edge-1"},"site_id":"edge-1","cloud_region_id":"edge-1","project":"default","verb":"build","accepted_at":"2026-11-20T09:00:00Z",` +
		`"started_at":"2026-11-20T09:00:00Z","deadline":"2026-11-20T11:00:00Z","attempts":1,"steps":[{"name":"check hosts","started_at":"2026-11-20T09:00:00Z","finished_at":"2026-11-20T09:00:01Z"}`
	siteOpRunning = siteOpStart + `,{"name":"build cluster","started_at":"2026-11-20T09:00:01Z","message":"kubernetes : init (n1)"}],"state":"running"}`
	siteOpDone    = siteOpStart + `,{"name":"build cluster","started_at":"2026-11-20T09:00:01Z","finished_at":"2026-11-20T09:06:00Z"}],` +
		`"state":"succeeded","finished_at":"2026-11-20T09:06:12Z","warnings":["look at the clock of n2"]}`
	siteOpFailed = siteOpStart + `,{"name":"build cluster","started_at":"2026-11-20T09:00:01Z","finished_at":"2026-11-20T09:01:00Z","failed":true,"message":"kubernetes : init (n1)"}],` +
		`"state":"failed","finished_at":"2026-11-20T09:01:00Z","failure":{"kind":"failed","reason":"task","step":"build cluster","message":"cannot run task \"kubernetes : init\" on host n1: no more room"}}`
	siteOpResumed = siteOpStart + `,{"name":"build cluster","started_at":"2026-11-20T09:00:01Z","finished_at":"2026-11-20T09:01:00Z","failed":true,"message":"the previous process ended; the run starts again"},` +
		`{"name":"check hosts","started_at":"2026-11-20T09:01:00Z","finished_at":"2026-11-20T09:01:01Z","failed":true}],` +
		`"state":"failed","finished_at":"2026-11-20T09:01:01Z","failure":{"kind":"unreachable","step":"check hosts","message":"host n1 cannot be reached"}}`
	siteOpRemoving = `{"operation_id":"0193-5f0c","subject":{"kind":"site","id":"edge-1"},"site_id":"edge-1","cloud_region_id":"edge-1","project":"default","verb":"remove",` +
		`"vnf_instances":["k3x9vq2m","p7"],"keep_hosts":true,"accepted_at":"2026-11-20T09:00:00Z","deadline":"2026-11-20T11:00:00Z","steps":[],"state":"queued"}`
	siteOpBusy = `{"title":"Conflict","status":409,"detail":"cannot change site edge-1: operation 0193-0000 is running","kind":"busy","operation":"0193-0000"}`

	createSite = "POST /v1/sites"
	patchSite  = "PATCH /v1/sites/edge-1"
	getSite    = "GET /v1/sites/edge-1"
	siteEvents = "GET /v1/sites/edge-1/operations/0193-5f0c/events"
)

func siteAccepted() reply {
	return reply{status: 202, location: "/v1/sites/edge-1/operations/0193-5f0c", body: siteBuildingJSON}
}

// siteStream is a stream of an operation's states and events.
func siteStream(states ...string) reply {
	var b strings.Builder
	for _, one := range states {
		name := "operation"
		if strings.HasPrefix(one, `{"number"`) {
			name = "log"
		}
		b.WriteString("event: " + name + "\ndata: " + one + "\n\n")
	}
	return reply{media: "text/event-stream", body: b.String()}
}

func siteEventsJSON() []string {
	event := func(number, rest string) string {
		return `{"number":` + number + `,"time":"2026-11-20T09:00:02Z",` + rest + `}`
	}
	return []string{
		event("1", `"kind":"play","play":"Build the site"`), event("2", `"kind":"task","task":"kubernetes : init"`),
		event("3", `"kind":"changed","task":"kubernetes : init","host":"n1"`), event("4", `"kind":"skipped","task":"kubernetes : join","host":"n1"`),
		event("5", `"kind":"failed","task":"kubernetes : join","host":"n2","message":"no more room"`),
	}
}

const siteYAML = `site_id: edge-1
user: debian
hosts:
  - {name: n1, address: 10.0.0.11, role: control_plane, host_key: ssh-ed25519 AAAA}
credential: {private_key: a key}
roles: [flannel, multus]
`

func TestSite(t *testing.T) {
	e := siteEventsJSON()
	describe := console{stdin: siteYAML}
	play(t, map[string]commandCase{
		"site-create": {
			reason: "what happens is shown to the end", args: []string{"site", "create", "-f", "-", "--timeout", "2h"}, console: describe,
			replies: replies{createSite: siteAccepted(), siteEvents: siteStream(siteOpRunning, e[0], e[1], e[2], e[3], siteOpDone), getSite: {body: siteReadyJSON}},
		},
		"site-create-broken": {
			reason: "a broken stream is opened again, and no event is repeated", args: []string{"site", "create", "-f", "-"}, console: describe,
			replies: replies{createSite: siteAccepted(), getSite: {body: siteReadyJSON}, siteEvents: func() reply {
				first, second := siteStream(siteOpRunning, e[0], e[2]), siteStream(siteOpRunning, e[0], e[2], siteOpDone)
				first.then = &second
				return first
			}()},
		},
		"site-create-failed": {
			reason: "an operation that failed is the command's failure", args: []string{"site", "create", "-f", "-"}, console: describe,
			replies: replies{createSite: siteAccepted(), siteEvents: siteStream(siteOpRunning, e[4], siteOpFailed)},
		},
		"site-create-terminal": {
			reason: "on a terminal the steps are drawn", args: []string{"site", "create", "-f", "-"}, console: console{stdin: siteYAML, terminal: true},
			replies: replies{createSite: siteAccepted(), siteEvents: siteStream(siteOpRunning, e[0], siteOpDone), getSite: {body: siteReadyJSON}},
		},
		"site-create-no-wait":   {reason: "it returns at once", args: []string{"site", "create", "-f", "-", "--no-wait"}, console: describe, replies: replies{createSite: siteAccepted()}},
		"site-create-no-file":   {reason: "a site must be described", args: []string{"site", "create"}},
		"site-create-file-none": {reason: "a file must be there", args: []string{"site", "create", "-f", "-"}, console: console{stdin: "credential: {private_key_file: /nowhere/key}"}},
		"site-create-file-both": {reason: "a text comes from one place", args: []string{"site", "create", "-f", "-"}, console: console{stdin: "credential: {password_file: p, password: x}"}},
		"site-list": {
			reason: "one line each", args: []string{"site", "list", "--state", "ready", "-o", "wide"}, replies: one("/v1/sites?state=ready", `{"sites":[`+siteReadyJSON+`]}`),
		},
		"site-show": {reason: "with its hosts", args: []string{"site", "show", "edge-1", "-o", "wide"}, replies: replies{getSite: {body: siteBuildingJSON}}},
		"site-update": {
			reason: "without a file everything runs again", args: []string{"site", "update", "edge-1"},
			replies: replies{patchSite: siteAccepted(), siteEvents: siteStream(siteOpDone), getSite: {body: siteReadyJSON}},
		},
		"site-update-busy": {reason: "what is in the way is named", args: []string{"site", "update", "edge-1"}, replies: replies{patchSite: problemReply(409, siteOpBusy)}},
		"site-add-worker": {
			reason: "with the user of the others", args: []string{"site", "add-worker", "edge-1", "--host", "n3", "--address", "10.0.0.13", "--host-key", "ssh-ed25519 AAAC root@n3", "--port", "2222", "--no-wait"},
			replies: replies{getSite: {body: siteReadyJSON}, patchSite: siteAccepted()},
		},
		"site-add-worker-incomplete": {reason: "it must be said which", args: []string{"site", "add-worker", "edge-1", "--host", "n3"}},
		"site-remove-worker":         {reason: "by their names", args: []string{"site", "remove-worker", "edge-1", "n2", "n3", "--no-wait"}, replies: replies{patchSite: siteAccepted()}},
		"site-scale":                 {reason: "the service creates or deletes machines", args: []string{"site", "scale", "edge-1", "--workers", "0", "--no-wait"}, replies: replies{patchSite: siteAccepted()}},
		"site-scale-incomplete":      {reason: "the number has no default", args: []string{"site", "scale", "edge-1"}},
		"site-delete": {
			reason: "nothing is left to show", args: []string{"site", "delete", "edge-1", "--cascade", "--timeout", "1h"},
			replies: replies{"DELETE /v1/sites/edge-1?cascade=true&timeout=1h0m0s": {status: 202, location: "/v1/sites/edge-1/operations/0193-5f0c", body: siteOpRunning}, siteEvents: siteStream(siteOpDone)},
		},
		"site-delete-used": {
			reason: "what is in the way is named", args: []string{"site", "delete", "edge-1", "--keep-hosts"},
			replies: replies{"DELETE /v1/sites/edge-1?keep_hosts=true": problemReply(409, `{"status":409,"detail":"cannot remove site edge-1: its region is used by VNF instance vnf-1","kind":"conflict","errors":[{"message":"its region is used by VNF instance vnf-1"}]}`)},
		},
		"site-watch": {reason: "the last operation", args: []string{"site", "watch", "edge-1"}, replies: replies{getSite: {body: siteBuildingJSON}, siteEvents: siteStream(siteOpRunning, e[0], e[2], siteOpDone)}},
		"site-watch-resumed": {
			reason: "a step that succeeded before a restart has not failed, although its repetition has", args: []string{"site", "watch", "edge-1", "0193-5f0c"},
			replies: replies{siteEvents: siteStream(siteOpResumed)},
		},
		"site-watch-json": {reason: "programs get each state", args: []string{"site", "watch", "edge-1", "0193-5f0c", "-o", "json"}, replies: replies{siteEvents: siteStream(siteOpRunning, e[0], siteOpDone)}},
		"site-cancel":     {reason: "it will stop", args: []string{"site", "cancel", "edge-1"}, replies: replies{getSite: {body: siteBuildingJSON}, "POST /v1/sites/edge-1/operations/0193-5f0c/cancel": {status: 202, body: siteOpRunning}}},
	})
}

func TestSiteAnswers(t *testing.T) {
	c := readContract(t)
	for schema, answers := range map[string][]string{"Site": {siteReadyJSON, siteBuildingJSON}, "SiteOperation": {siteOpRunning, siteOpDone, siteOpFailed, siteOpRemoving}, "SiteEvent": siteEventsJSON()} {
		for _, answer := range answers {
			var v any
			if err := json.Unmarshal([]byte(answer), &v); err != nil {
				t.Fatal(err)
			}
			if err := c.doc.Components.Schemas[schema].Value.VisitJSON(v); err != nil {
				t.Errorf("a recorded %s is not what the contract says: %v", schema, err)
			}
		}
	}
}

// TestSiteFiles: what the description names is taken from its own folder.
func TestSiteFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site.yaml": strings.Replace(siteYAML, "private_key: a key", "private_key_file: key, become_password_file: sudo", 1) + "driver: script\nscript: {file: run.sh, options: [--fast]}\n",
		"key":       "a key\n", "sudo": "s3cret\n", "run.sh": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := serve(t, readContract(t), replies{createSite: siteAccepted()})
	if r := (console{}).run(t.Context(), srv.URL, "site", "create", "-f", filepath.Join(dir, "site.yaml"), "--no-wait"); r.code != 0 {
		t.Fatalf("it ended with %d: %s", r.code, r.stderr)
	}
	asked := srv.asked.String()
	for _, part := range []string{`"credential":{"become_password":"s3cret","private_key":"a key\n"}`, `"script":{"content":"#!/bin/sh\n","options":["--fast"]}`} {
		if !strings.Contains(asked, part) {
			t.Errorf("the request lacks %s: %s", part, asked)
		}
	}
}
