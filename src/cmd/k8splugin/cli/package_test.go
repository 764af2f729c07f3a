package cli

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const createdJSON = `{"csar_id":"fire-wall","project":"edge","state":"created","enabled":false,"name":"A firewall","user_data":{"ticket":"4711"},` +
	`"files":[],"variables":[],"warnings":[],"vnf_instances":[],"created_at":"2026-11-20T09:01:00Z","updated_at":"2026-11-20T09:01:00Z"}`

func TestPackage(t *testing.T) {
	play(t, map[string]commandCase{
		"package-push-folder": {
			reason:  "a folder is packed; the answer is the id, warnings go to standard error",
			args:    []string{"package", "push", "PKG"},
			replies: replies{"POST /v1/packages": {status: 201, body: packageJSON}},
		},
		"package-push-id": {
			reason:  "with an id it is put there",
			args:    []string{"package", "push", "PKG", "--id", "fire-wall"},
			replies: replies{"PUT /v1/packages/fire-wall": {status: 200, body: packageJSON}},
		},
		"package-create": {
			reason:  "a package can exist before its content",
			args:    []string{"package", "create", "--id", "fire-wall", "--name", "A firewall", "--project", "edge", "--user-data", "ticket=4711"},
			replies: replies{"POST /v1/packages": {status: 201, body: createdJSON}},
		},
		"package-disable": {
			reason: "a package can be disabled", args: []string{"package", "disable", "fire-wall"},
			replies: replies{"PATCH /v1/packages/fire-wall": {status: 200, body: createdJSON}},
		},
		"package-enable": {
			reason: "and enabled", args: []string{"package", "enable", "firewall"},
			replies: replies{"PATCH /v1/packages/firewall": {status: 200, body: packageJSON}},
		},
		"package-show-created": {
			reason: "nothing is shown of a content that is not there", args: []string{"package", "show", "fire-wall"},
			replies: one("/v1/packages/fire-wall", createdJSON),
		},
		"package-push-unfit": {
			reason: "a folder that is wrong is never sent",
			args:   []string{"package", "push", "PKG"},
			console: console{lint: func([]byte) (string, []string, error) {
				return "", nil, nf.E(nf.Invalid, "read", "package", nf.Violations{{File: "service.yaml", Line: 7, Message: "mapping values are not allowed here"}})
			}},
		},
		"package-push-refused": {
			reason: "the server names each violation in its text, which is printed once",
			args:   []string{"package", "push", "PKG/metadata.yaml"},
			replies: replies{"POST /v1/packages": problemReply(400, `{"status":400,"detail":"cannot upload package: metadata.yaml:1: not an archive; size: too small","kind":"invalid",`+
				`"errors":[{"file":"metadata.yaml","line":1,"message":"not an archive"},{"field":"size","message":"too small"}]}`)},
		},
		"package-list": {
			reason: "a row for each", args: []string{"package", "list", "-o", "wide"},
			replies: one("/v1/packages", `{"packages":[`+packageJSON+`]}`),
		},
		"package-show": {
			reason: "with variables and files", args: []string{"package", "show", "firewall"},
			replies: one("/v1/packages/firewall", packageJSON),
		},
		"package-pull-stdout": {
			reason: "-o - writes the archive to standard output", args: []string{"package", "pull", "firewall", "-o", "-"},
			replies: one("/v1/packages/firewall/content", "the bytes"),
		},
		"package-lint": {
			reason: "lint prints file:line: message and fails without another word",
			args:   []string{"package", "lint", "PKG"},
			console: console{lint: func([]byte) (string, []string, error) {
				return "", []string{"notes.txt is named by nothing"}, nf.E(nf.Invalid, "read", "package",
					nf.Violations{{File: "service.yaml", Line: 7, Message: "bad\x1b[2J"}, {File: "metadata.yaml", Field: "resources", Message: "is missing"}})
			}},
		},
		"package-lint-json": {
			reason: "programs get the same as JSON, in the form of the server's errors",
			args:   []string{"package", "lint", "PKG/metadata.yaml", "-o", "json"},
			console: console{lint: func([]byte) (string, []string, error) {
				return "", nil, nf.Violations{{
					Object: nf.Ref{Version: "v1", Kind: "Pod", Name: "web"}, Field: "spec", File: "service.yaml", Line: 7,
					Message: "bad", Mentions: []nf.Mentioned{{Instance: "vnf1"}},
				}}
			}},
		},
		"package-push-named": {
			reason: "a folder's id is the name that it declares", args: []string{"package", "push", "PKG"}, console: named("firewall"),
			replies: replies{"PUT /v1/packages/firewall": {status: 201, body: packageJSON}},
		},
		"package-push-exists": {
			reason: "a package is replaced only if its id is given", args: []string{"package", "push", "PKG"}, console: named("firewall"),
			replies: one("/v1/packages/firewall", packageJSON),
		},
		"package-push-exists-json": {
			reason: "programs get an error as a document", args: []string{"package", "push", "PKG", "-o", "json"}, console: named("firewall"),
			replies: one("/v1/packages/firewall", packageJSON),
		},
		"package-push-unfit-json": {
			reason: "with the violations", args: []string{"package", "push", "PKG", "-o", "json"},
			console: console{lint: func([]byte) (string, []string, error) {
				return "", nil, nf.E(nf.Invalid, "read", "package", nf.Violations{{File: "service.yaml", Line: 7, Message: "mapping values are not allowed here"}})
			}},
		},
		"package-show-json": {
			reason: "and the server's problem as it is", args: []string{"package", "show", "none", "-o", "json"},
		},
		"package-lint-here":   {reason: "the folder may be this one", args: []string{"package", "lint", "."}},
		"package-lint-values": {reason: "values to render it with", args: []string{"package", "lint", "PKG", "--set", "size=3", "--set", "a[0]=x"}},
		"package-lint-strict": {reason: "a warning fails it", args: []string{"package", "lint", "PKG", "--set-string", "size=3", "--strict"}},
		"package-lint-good": {
			reason: "nothing wrong, nothing said", args: []string{"package", "lint", "PKG"},
		},
	})
}

// named is a console whose packages declare a name.
func named(name string) console {
	return console{lint: func([]byte) (string, []string, error) { return name, nil, nil }}
}
