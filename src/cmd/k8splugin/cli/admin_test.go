package cli

import "testing"

func TestAdministration(t *testing.T) {
	play(t, map[string]commandCase{
		"audit-list": {
			reason: "who asked for what, a page unless more is wanted", args: []string{"audit", "list", "-o", "wide"},
			replies: one("/v1/audit?limit=100", auditJSON),
		},
		"audit-list-filters": {
			reason:  "every filter becomes a parameter; a time may be how long ago",
			args:    []string{"audit", "list", "--since", "2h", "--until", "2026-11-20T10:00:00+01:00", "--identity", "ann", "--project", "blue", "--region", "east", "--limit", "2", "--marker", "m"},
			replies: one("/v1/audit?identity=ann&limit=2&marker=m&project=blue&region=east&since=2026-11-20T07%3A30%3A00Z&until=2026-11-20T10%3A00%3A00%2B01%3A00", auditJSON),
		},
		"audit-list-bad-time": {reason: "a time is one", args: []string{"audit", "list", "--since", "yesterday"}},
		"audit-list-forbidden": {
			reason: "what one may not has its own exit code", args: []string{"audit", "list"},
			replies: replies{"GET /v1/audit?limit=100": problemReply(403, `{"status":403,"detail":"cannot read the audit log: ann may not","kind":"forbidden"}`)},
		},
		"keys-status": {reason: "which keys there are", args: []string{"keys", "status"}, replies: one("/v1/keys", keysJSON)},
		"keys-status-new": {
			reason: "a key that seals nothing yet is one", args: []string{"keys", "status"}, replies: one("/v1/keys", `{"primary":"k3","records":{"k2":7}}`),
		},
		"keys-reencrypt": {reason: "and then the same", args: []string{"keys", "reencrypt"}, replies: replies{"POST /v1/keys/reencrypt": {body: keysJSON}}},
		"version":        {reason: "of both programs", args: []string{"version"}, replies: one("/v1/version", `{"version":"v0.1.1"}`)},
		"version-client": {reason: "without a server", args: []string{"version", "--client", "--server", "http://127.0.0.1:1"}},
		"version-json":   {reason: "both in one document", args: []string{"version", "-o", "json"}, replies: one("/v1/version", `{"version":"v0.1.1"}`)},
		"version-old":    {reason: "a server may be too old to say it", args: []string{"version"}},
		"version-denied": {
			reason: "the client's version is known without the server's", args: []string{"version"},
			replies: replies{"GET /v1/version": problemReply(401, `{"status":401,"detail":"the request has no credentials","kind":"unauthenticated"}`)},
		},
		"package-push-project": {
			reason: "a package belongs to a project", args: []string{"package", "push", "PKG", "--project", "blue"},
			replies: replies{"POST /v1/packages?project=blue": {status: 201, body: packageJSON}},
		},
		"token-literal":     {reason: "other users can read a command line; the value is not repeated", args: []string{"region", "list", "--token", "the-secret"}},
		"password-literal":  {reason: "so for passwords", args: []string{"region", "list", "--user", "ann", "--password=the-secret"}},
		"password-in-url":   {reason: "and for URLs", args: []string{"region", "list", "--server", "http://ann:the-secret@127.0.0.1:1"}},
		"password-missing":  {reason: "a name alone proves nothing", args: []string{"region", "list", "--user", "ann"}},
		"password-alone":    {reason: "nor does a password", args: []string{"region", "list", "--password-file", "KUBE/token"}},
		"token-empty":       {reason: "an empty file holds no token", args: []string{"region", "list", "--token-file", "KUBE/empty"}},
		"token-missing":     {reason: "nor does one that is not there", args: []string{"region", "list", "--token-file", "nowhere/token"}},
		"token-and-user":    {reason: "who is it?", args: []string{"region", "list", "--token-file", "KUBE/token", "--user", "ann"}},
		"token-or-user":     {reason: "who is it?", args: []string{"region", "list"}, console: console{env: map[string]string{"K8SPLUGIN_TOKEN": "t", "K8SPLUGIN_USER": "ann"}}},
		"certificate-alone": {reason: "a certificate needs its key", args: []string{"region", "list", "--server", "https://127.0.0.1:1", "--client-certificate", "c.pem"}},
		"certificate-http":  {reason: "http knows no certificates", args: []string{"region", "list", "--certificate-authority", "c.pem"}},
		"certificate-none":  {reason: "a file without a certificate is rejected", args: []string{"region", "list", "--server", "https://127.0.0.1:1", "--certificate-authority", "KUBE/token"}},
	})
}
