package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// update rewrites the answers, and creates the backup of this release if it is missing.
var update = flag.Bool("update", false, "rewrite the answers over the backups of releases, and add the backup of this release")

// The folder of the backups, and the recipient and the identity that encrypt and
// decrypt them. They contain only data of the tests.
const (
	releaseFolder    = "testdata/releases"
	releaseRecipient = "age1qv6tdlfhwqweey6jk4h9kmn5k04474pzrg4awp2epyzwp95wj9xqru5cd0"
	releaseIdentity  = "AGE-SECRET-KEY-14TWG4EH4NR5WYVXRFMLTELFPM86378UVZ4DEC52VZSM84U99WGFQEYPHM6"
)

// TestReadsReleases restores the backup that each release made of a store with records
// of every kind, and makes every request that reads them. The answers must equal those
// in the file next to the backup. If the form of an answer changes, -update rewrites that
// file. The backup of a release is never created again: the service must read it as it is.
func TestReadsReleases(t *testing.T) {
	t.Parallel()
	if *update {
		backUpRelease(t)
	}
	backups, err := filepath.Glob(releaseFolder + "/*.age")
	if err != nil || len(backups) == 0 {
		t.Fatalf("there are no backups: %v", err)
	}
	for _, file := range backups {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden := strings.TrimSuffix(file, ".age") + ".json"
			text, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if len(want) < 90 {
				t.Errorf("there are answers to only %d requests", len(want))
			}
			requests := slices.Sorted(maps.Keys(want))
			got := answersOver(t, file, requests)
			if *update {
				writeJSON(t, golden, got)
				want = answersOver(t, file, requests) // an answer that depends on the present fails
			}
			for _, request := range requests {
				if diff := cmp.Diff(want[request], got[request]); diff != "" {
					t.Errorf("GET %s (-want +got):\n%s", request, diff)
				}
			}
		})
	}
}

// answersOver restores a backup into a new store, and returns the answers of a service
// that runs on it, by request.
func answersOver(t *testing.T, file string, requests []string) map[string]any {
	t.Helper()
	folder := t.TempDir()
	data, identity := filepath.Join(folder, "data"), filepath.Join(folder, "identity")
	if err := os.WriteFile(identity, []byte(releaseIdentity), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, says := runProgram(t, "backup", "restore", file, "--data", data, "--identity-file", identity); code != 0 {
		t.Fatalf("exit code %d: %s", code, says)
	}
	const forever = "876000h" // the records of a backup become old
	p := serveProgram(t, data, "--operation-retention", forever, "--audit-retention", forever)
	out := map[string]any{}
	for _, request := range requests {
		got := p.do(http.MethodGet, request, nil)
		var body any = string(got.body)
		if !utf8.Valid(got.body) {
			body = base64.StdEncoding.EncodeToString(got.body)
		}
		if strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
			if err := json.Unmarshal(got.body, &body); err != nil {
				t.Fatalf("GET %s: %v", request, err)
			}
		}
		out[request] = map[string]any{"status": float64(got.status), "body": withoutState(body)}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.log)
	}
	return out
}

// withoutState removes the current states of regions, and the reasons why the objects in
// them cannot be read.
func withoutState(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, region := v["state"].(map[string]any); region {
			delete(v, "state")
		}
		if v["status"] == "Unknown" {
			delete(v, "message")
		}
		delete(v, "health_message")
		for _, part := range v {
			withoutState(part)
		}
	case []any:
		for _, part := range v {
			withoutState(part)
		}
	}
	return v
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// backUpRelease creates the backup of the present release if it is missing, and the file
// of the answers, which has only the requests at first.
func backUpRelease(t *testing.T) {
	t.Helper()
	version := regexp.MustCompile(`(?m)^  version: (\d+\.\d+\.\d+)$`).FindSubmatch(k8splugin.Swagger)
	name := filepath.Join(releaseFolder, string(version[1]))
	if _, err := os.Stat(name + ".age"); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	w := newAccessWorld(t)
	w.addHistory()
	var text bytes.Buffer
	if err := w.db.Backup(t.Context(), releaseRecipient, &text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(releaseFolder, 0o750), os.WriteFile(name+".age", text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, name+".json", w.readings())
}

// addHistory changes the instances, so that they have revisions and operations, and waits
// for the operations of the sites. It then makes their regions unreachable.
func (w *accessWorld) addHistory() {
	w.t.Helper()
	first, second := "/v1/vnf_instances/"+w.native[0].vars["vnf_id"], "/v1/vnf_instances/"+w.native[1].vars["vnf_id"]
	for _, change := range []struct {
		method, path string
		body         map[string]any
	}{
		{"PATCH", first, map[string]any{"vnf_instance_description": "changed"}},
		{"POST", first + "/rollback", map[string]any{"revision": 1}},
		{"PUT", second + "/amendments/more", map[string]any{"csar_id": "pkg-" + accesstest.ProjectB}},
	} {
		began := w.want(http.StatusOK, w.as(admin, change.method, change.path, change.body, "Idempotency-Key", change.path))
		w.want(http.StatusOK, w.as(admin, "GET", "/v1/operations/"+began.text(w.t, "operation_id")+"/events", nil)) // ends with the operation
	}
	for _, o := range w.native {
		w.as(admin, "GET", "/v1/sites/"+o.vars["site_id"]+"/operations/"+o.vars["site_operation"]+"/events", nil) // ends with the operation
	}
	instance := w.onap[0].vars["instance"]
	w.die(instance, w.subscribed(instance), 1)
	address := regexp.MustCompile(`https://127\.0\.0\.1:\d+`)
	for e, err := range w.db.kv.List(w.t.Context(), "regions/", "") {
		if err == nil {
			_, err = w.db.kv.Put(w.t.Context(), e.Key, address.ReplaceAll(e.Value, []byte("https://127.0.0.1:1")), store.Any)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// volatilePaths are the ends of paths whose answers do not come from records alone, or come
// from records that a service deletes after some weeks.
var volatilePaths = []string{"/events", "/query", "/status", "/audit", "/keys", "/dead"}

// readings returns the requests that read the stored records of the world's objects.
func (w *accessWorld) readings() map[string]any {
	requests := map[string]any{}
	for route, rules := range routeAccess() {
		for _, rule := range rules {
			method, path := rule.target(route)
			if method != http.MethodGet || slices.Contains(volatilePaths, path[strings.LastIndex(path, "/"):]) {
				continue
			}
			for _, o := range slices.Concat(w.native, w.onap) {
				if request := o.filled(path + rule.query); !strings.Contains(request, "{") {
					requests[request] = nil
				}
			}
		}
	}
	return requests
}
