package native_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	const created = `{"csar_id": "<<>>", "project": "default", "state": "created", "enabled": true, "name": "Mine", "user_data": {"ticket": 4711}, "files": [], "variables": [],
		"warnings": [], "created_at": "<<>>", "updated_at": "<<>>"}`
	const pkg = `{"csar_id": "<<>>", "project": "default", "state": "onboarded", "enabled": true, "name": "firewall", "kind": "manifest", "digest": "sha256:abc", "size": 7, "media_type": "application/zip",
		"files": ["metadata.yaml"], "variables": [
			{"name": "password", "type": "string", "default": "********", "required": false, "sensitive": true},
			{"name": "replicas", "type": "integer", "default": 0, "required": false, "sensitive": false}],
		"warnings": [], "created_at": "<<>>", "updated_at": "<<>>"}`
	form := "Content-Type: multipart/form-data; boundary=x"
	file := "--x\nContent-Disposition: form-data; name=\"file\"; filename=\"fw.zip\"\n\narchive\n"
	id := func(id string) string { return "--x\nContent-Disposition: form-data; name=\"csar_id\"\n\n" + id + "\n" }
	bad := nf.E(nf.Invalid, "upload", "package firewall", nf.Violations{{File: "service.yaml", Line: 7, Message: "is not YAML"}})
	replaces := func(s *standIn) { s.created = false }
	runAll(t, map[string]exchange{
		"Create": {
			reason: "without an id there is a new one", request: "POST /v1/packages", header: []string{asZip}, body: "archive",
			status: 201, want: pkg, headers: []string{"Location: /v1/packages/new-1"}, asked: upload{nf.Package{}, "archive"},
		},
		"CreateUntyped": {
			reason: "a body that does not say what it is counts as an archive", request: "POST /v1/packages", body: "archive",
			status: 201, want: pkg,
		},
		"CreateEmpty": {
			reason: "a package can exist before its content", request: "POST /v1/packages", header: []string{asJSON},
			body: `{"csar_id": "mine", "name": "Mine", "user_data": {"ticket": 4711}}`, status: 201, want: created,
			headers: []string{"Location: /v1/packages/mine"}, asked: nf.Package{ID: "mine", Name: "Mine", UserData: map[string]any{"ticket": 4711.0}},
		},
		"CreateEmptyTaken": {
			reason: "creating never replaces", arrange: failing("CreatePackage", nf.E(nf.Exists, "create", "package firewall", nil)),
			request: "POST /v1/packages", header: []string{asJSON}, body: `{"csar_id": "firewall"}`, status: 409, want: problem("already-exists"),
		},
		"CreateEmptyBadData": {
			reason: "user data is an object", request: "POST /v1/packages", header: []string{asJSON}, body: `{"user_data": [1]}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "user_data", "message": "<<>>"}]`),
		},
		"CreateForm": {
			reason: "the archive can be a part of a form, with an id after it", request: "POST /v1/packages", header: []string{form},
			body: file + id("mine") + "--x--\n", status: 201, want: pkg,
			headers: []string{"Location: /v1/packages/mine"}, asked: upload{nf.Package{ID: "mine"}, "archive"},
		},
		"CreateFormTaken": {
			reason: "creating never replaces", request: "POST /v1/packages", header: []string{form},
			body: file + id("firewall") + "--x--\n", status: 409, want: problem("already-exists", `"errors": [{"field": "csar_id", "message": "<<>>"}]`),
		},
		"CreateFormBadID": {
			reason: "an id is a path segment", request: "POST /v1/packages", header: []string{form},
			body: file + id("../x") + "--x--\n", status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "<<>>"}]`),
		},
		"CreateFormNoFile": {
			reason: "no archive, no package", request: "POST /v1/packages", header: []string{form}, body: id("mine") + "--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "file", "message": "is missing"}]`),
		},
		"CreateFormUnknown": {
			reason: "unknown fields are refused", request: "POST /v1/packages", header: []string{form},
			body:   "--x\nContent-Disposition: form-data; name=\"colour\"\n\nred\n--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "colour", "message": "is not a known field"}]`),
		},
		"CreateInvalid": {
			reason: "file and line are reported", arrange: failing("Upload", bad), request: "POST /v1/packages", header: []string{asZip}, body: "x",
			status: 400, want: problem("invalid", `"errors": [{"file": "service.yaml", "line": 7, "message": "is not YAML"}]`),
		},
		"CreateTooLarge": {
			reason: "the limit holds before the archive is read", request: "POST /v1/packages", header: []string{asZip},
			body: strings.Repeat("x", uploadLimit+1), status: 413, want: problem("too-large"),
		},
		"CreateLargerThanADocument": {
			reason: "an archive may be larger than a document", request: "POST /v1/packages", header: []string{asZip},
			body: strings.Repeat("x", uploadLimit), status: 201, want: pkg,
		},
		"CreateFormTooLarge": {
			reason: "the limit holds for a form", request: "POST /v1/packages", header: []string{form},
			body: "--x\nContent-Disposition: form-data; name=\"file\"\n\n" + strings.Repeat("x", uploadLimit) + "\n--x--\n", status: 413, want: problem("too-large"),
		},
		"CreateWrongType": {
			reason: "a package is an archive", request: "POST /v1/packages", header: []string{"Content-Type: text/plain"}, body: "{}",
			status: 415, want: `{"type": "/docs#problem-invalid", "title": "Unsupported Media Type", "...": ""}`,
		},
		"Put": {
			reason: "a package gets the id of its path", request: "PUT /v1/packages/mine", header: []string{asZip}, body: "archive",
			status: 201, want: pkg, headers: []string{"Location: /v1/packages/mine"}, asked: upload{nf.Package{ID: "mine"}, "archive"},
		},
		"PutReplaces": {
			reason: "replacing is not creating", arrange: replaces, request: "PUT /v1/packages/firewall", header: []string{"Content-Type: application/octet-stream"},
			body: "archive", status: 200, want: pkg, headers: []string{"Location: "},
		},
		"PutForm": {
			reason: "the id may be said twice", request: "PUT /v1/packages/mine", header: []string{form}, body: id("mine") + file + "--x--\n",
			status: 201, want: pkg,
		},
		"PutFormOther": {
			reason: "but not two ids", request: "PUT /v1/packages/mine", header: []string{form}, body: id("other") + file + "--x--\n",
			status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "differs from the path"}]`),
		},
		"PutBadID": {
			reason: "an id is 1 to 128 letters and digits", request: "PUT /v1/packages/-x", header: []string{asZip}, body: "archive",
			status: 400, want: problem("invalid", `"errors": [{"field": "csar_id", "message": "<<>>"}]`),
		},
		"PutInvalid": {
			reason: "the check is the same", arrange: failing("Upload", bad), request: "PUT /v1/packages/mine", header: []string{asZip}, body: "x",
			status: 400, want: problem("invalid"),
		},
		"List": {reason: "all packages are listed", request: "GET /v1/packages", status: 200, want: `{"packages": [` + pkg + `]}`},
		"ListPages": {
			reason: "a page is as long as asked", arrange: func(s *standIn) { s.more = []string{"gateway"} }, request: "GET /v1/packages?limit=1",
			status: 200, want: `{"packages": [` + pkg + `], "next": "firewall"}`, headers: []string{`Link: </v1/packages?limit=1&marker=firewall>; rel="next"`},
		},
		"ListFails": {reason: "an unreachable store is said", arrange: failing("Packages", nf.E(nf.Unreachable, "list", "packages", errDisk)), request: "GET /v1/packages", status: 502, want: problem("unreachable")},
		"GetUsed": {
			reason: "of very many instances some are listed", arrange: func(s *standIn) { s.users = 101 }, request: "GET /v1/packages/firewall", status: 200,
			want: `{"vnf_instances": ["vnf-more-000", "..."], "more_vnf_instances": true, "...": ""}`,
		},
		"Get": {reason: "a package is read", request: "GET /v1/packages/firewall", status: 200, want: strings.Replace(pkg, "{", `{"vnf_instances": [], `, 1)},
		"GetMissing": {
			reason: "no package, no answer", request: "GET /v1/packages/other",
			status: 404, want: problem("not-found", `"instance": "/v1/packages/other", "status": 404, "detail": "cannot get package other: it does not exist"`),
		},
		"ContentMissing": {reason: "no package, no content", request: "GET /v1/packages/other/content", status: 404, want: problem("not-found")},
		"Disable": {
			reason: "a package can be disabled", request: "PATCH /v1/packages/firewall", header: []string{asPatch}, body: `{"enabled": false}`,
			status: 200, want: strings.Replace(pkg, `"enabled": true`, `"enabled": false`, 1), asked: map[string]any(nil),
		},
		"Enable": {
			reason: "and enabled", arrange: func(s *standIn) { s.pkg.Disabled = true }, request: "PATCH /v1/packages/firewall", header: []string{asPatch},
			body: `{"enabled": true}`, status: 200, want: pkg,
		},
		"PatchData": {
			reason: "user data is merged, and nothing else changes", arrange: func(s *standIn) { s.pkg.Disabled, s.pkg.UserData = true, map[string]any{"a": 1.0, "b": 2.0} },
			request: "PATCH /v1/packages/firewall", header: []string{asPatch}, body: `{"user_data": {"b": null, "c": "x"}}`,
			status: 200, want: `{"enabled": false, "...": ""}`, asked: map[string]any{"a": 1.0, "c": "x"},
		},
		"PatchNull": {
			reason: "a package is enabled or it is not", request: "PATCH /v1/packages/firewall", header: []string{asPatch}, body: `{"enabled": null}`,
			status: 400, want: problem("invalid", `"errors": [{"field": "enabled", "message": "<<>>"}]`),
		},
		"PatchMissing": {reason: "no package, nothing to change", request: "PATCH /v1/packages/other", header: []string{asPatch}, body: `{}`, status: 404, want: problem("not-found")},
		"ContentEarly": {
			reason:  "what was not uploaded cannot be downloaded",
			arrange: failing("Package", &nf.Error{Kind: nf.Conflict, Op: "use", Subject: "package firewall", Reason: nf.ReasonNoContent}),
			request: "GET /v1/packages/firewall/content", status: 409, want: problem("conflict", `"reason": "no-content"`),
		},
		"ContentKnown": {
			reason: "what the client has is not sent", request: "GET /v1/packages/firewall/content", header: []string{`If-None-Match: "other", W/"sha256:abc"`},
			status: 304, headers: []string{`ETag: "sha256:abc"`},
		},
		"Delete":        {reason: "a package is removed", request: "DELETE /v1/packages/firewall", status: 204},
		"DeleteMissing": {reason: "no package, nothing to remove", request: "DELETE /v1/packages/other", status: 404, want: problem("not-found")},
		"DeleteUsed": {
			reason: "a package in use stays", arrange: failing("RemovePackage", nf.E(nf.Conflict, "remove", "package firewall", nf.Violations{{Message: "is used by VNF instance vnf-1"}})),
			request: "DELETE /v1/packages/firewall", status: 409, want: problem("conflict", `"errors": [{"message": "is used by VNF instance vnf-1"}]`),
		},
	})
}

func TestContent(t *testing.T) {
	t.Parallel()
	site := serve(t, newStandIn())
	got := site.ask(t, "GET /v1/packages/firewall/content", "", `If-None-Match: "sha256:other"`)
	if got.StatusCode != 200 || string(got.body) != "archive" {
		t.Errorf("the content is %s %q, want 200 and the archive byte for byte", got.Status, got.body)
	}
	for name, want := range map[string]string{
		"ETag": `"sha256:abc"`, "Content-Type": "application/zip", "Content-Length": "7",
		"Content-Disposition": `attachment; filename="firewall.zip"`,
	} {
		if have := got.Header.Get(name); have != want {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
}
