package cli

import "testing"

func TestRegion(t *testing.T) {
	play(t, map[string]commandCase{
		"region-add": {
			reason:  "only the chosen context is sent, in base64",
			args:    []string{"region", "add", "east", "--kubeconfig", "KUBE/config", "--kube-context", "west", "--owner", "acme", "--label", "site=east", "--description", "d"},
			replies: replies{"POST /v1/cloud_regions": {status: 201, body: regionJSON}},
		},
		"region-add-stdin": {
			reason:  "- reads the kubeconfig from standard input",
			args:    []string{"region", "add", "east", "--kubeconfig", "-"},
			console: console{stdin: twoContexts},
			replies: replies{"POST /v1/cloud_regions": {status: 201, body: regionJSON}},
		},
		"region-add-access": {
			reason:  "an access needs no kubeconfig",
			args:    []string{"region", "add", "east", "--access", "-", "--default-namespace", "edge"},
			console: console{stdin: "server: https://10.0.0.1:6443\nca: |\n  -----BEGIN CERTIFICATE-----\ntoken: a-token\n"},
			replies: replies{"POST /v1/cloud_regions": {status: 201, body: regionJSON}},
		},
		"region-add-rotate": {
			reason:  "the service renews the token of the kubeconfig",
			args:    []string{"region", "add", "east", "--kubeconfig", "KUBE/config", "--rotate", "token"},
			replies: replies{"POST /v1/cloud_regions": {status: 201, body: regionJSON}},
		},
		"region-update-rotate": {
			reason:  "the present certificate rotates",
			args:    []string{"region", "update", "east", "--rotate", "certificate"},
			replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-update-lifetime": {
			reason:  "the renewed certificates live for a week",
			args:    []string{"region", "update", "east", "--rotate", "certificate", "--credential-lifetime", "168h"},
			replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-add-lifetime-alone": {
			reason: "nothing is renewed that could have a lifetime",
			args:   []string{"region", "add", "east", "--kubeconfig", "KUBE/config", "--credential-lifetime", "2h"},
		},
		"region-add-lifetime-fraction": {
			reason: "a lifetime has whole seconds",
			args:   []string{"region", "add", "east", "--kubeconfig", "KUBE/config", "--rotate", "token", "--credential-lifetime", "3600500ms"},
		},
		"region-add-both": {
			reason: "which of the two?",
			args:   []string{"region", "add", "east", "--access", "KUBE/one.yaml", "--kubeconfig", "KUBE/config"},
		},
		"region-add-unreachable": {
			reason: "a region that cannot be reached has its own exit code",
			args:   []string{"region", "add", "east", "--kubeconfig", "KUBE/config"},
			replies: replies{"POST /v1/cloud_regions": problemReply(502, `{"title":"The region cannot be reached","status":502,`+
				`"detail":"cannot register cloud region east: the API server rejects the credentials","kind":"unreachable","reason":"unauthorized","request_id":"R1"}`)},
		},
		"region-add-nothing": {
			reason: "without a kubeconfig there is nothing to register",
			args:   []string{"region", "add", "east"},
		},
		"region-list": {
			reason: "the pages of a list are read to the end",
			args:   []string{"region", "list"},
			replies: replies{
				"GET /v1/cloud_regions":             {body: `{"cloud_regions":[` + regionJSON + `],"next":"east"}`},
				"GET /v1/cloud_regions?marker=east": {body: `{"cloud_regions":[{"cloud_region_id":"west","cloud_owner":"acme","created_at":"2026-11-10T09:00:00Z"}]}`},
			},
		},
		"region-list-wide": {
			reason:  "wide has more columns",
			args:    []string{"region", "list", "-o", "wide"},
			replies: one("/v1/cloud_regions", `{"cloud_regions":[`+regionJSON+`]}`),
		},
		"region-list-json": {
			reason:  "json is what the server said, to the byte",
			args:    []string{"region", "list", "-o", "json"},
			replies: one("/v1/cloud_regions", `{"cloud_regions": [ {"cloud_region_id":"east", "new_field": 1e2} ] }`),
		},
		"region-list-json-pages": {
			reason: "json of several pages is one list",
			args:   []string{"region", "list", "-o", "json"},
			replies: replies{
				"GET /v1/cloud_regions":             {body: `{"cloud_regions":[{"cloud_region_id":"a"}],"next":"a"}`},
				"GET /v1/cloud_regions?marker=a":    {body: `{"cloud_regions":[{"cloud_region_id":"b"}]}`},
				"GET /v1/cloud_regions?marker=east": {body: `{"cloud_regions":[]}`},
			},
		},
		"region-show": {
			reason: "every field that is known", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", regionJSON),
		},
		"region-show-expiring": {
			reason: "a credential that soon is none deserves a warning", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", expiringJSON),
		},
		"region-show-unrenewed": {
			reason: "the service renews the token, so there is nothing to replace", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", unrenewedJSON),
		},
		"region-show-rotating": {
			reason: "a credential that is renewed needs no warning", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", rotatingJSON),
		},
		"region-show-unapproved": {
			reason: "an operator must approve the request", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", unapprovedJSON),
		},
		"region-show-away": {
			reason: "what is wrong, since when, and when it is tried again", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", awayJSON),
		},
		"region-list-condition": {
			reason: "regions that need attention", args: []string{"region", "list", "--condition", "unreachable", "-o", "wide"},
			replies: one("/v1/cloud_regions?condition=unreachable", `{"cloud_regions":[`+awayJSON+`]}`),
		},
		"region-show-aai": {
			reason: "A&AI knows the region, and has no credentials that can be used",
			args:   []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", `{"cloud_region_id":"east","cloud_owner":"k8s","type":"kubernetes","origin":"aai","server":"","kubernetes_version":"","apis":[],`+
				`"aai":{"cloud_owner":"k8s","resource_version":"17","reason":"A&AI has no credentials that can be used: esr-system-info 1: service-url, password: service-url is missing"},`+
				`"state":{"condition":"unreachable","reason":"no-access","message":"A&AI has no credentials that can be used: esr-system-info 1: service-url, password: service-url is missing","breaker":"closed"},`+
				`"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`),
		},
		"region-show-vanished": {
			reason: "A&AI no longer has the region",
			args:   []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", `{"cloud_region_id":"east","cloud_owner":"k8s","type":"kubernetes","origin":"aai","server":"https://10.0.0.1:6443","kubernetes_version":"v1.37.1","apis":["v1"],`+
				`"aai":{"cloud_owner":"k8s","resource_version":"17","place":"esr-system-info 1: password","vanished_at":"2026-11-20T09:10:00Z"},`+
				`"state":{"condition":"available","breaker":"closed"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:00:00Z"}`),
		},
		"region-show-yaml": {
			reason: "yaml is the server's answer translated", args: []string{"region", "show", "east", "-o", "yaml"},
			replies: one("/v1/cloud_regions/east", regionJSON),
		},
		"region-show-missing": {
			reason: "what does not exist has its own exit code", args: []string{"region", "show", "north"},
		},
		"region-update": {
			reason:  "a merge patch with what was named; a label that ends with - goes away",
			args:    []string{"region", "update", "east", "--label", "site=west", "--label", "old-", "--description", ""},
			replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-add-cni": {
			reason:  "plugins are declared as there or absent",
			args:    []string{"region", "add", "east", "--kubeconfig", "KUBE/one.yaml", "--cni", "macvlan", "--cni", "dhcp=false"},
			replies: replies{"POST /v1/cloud_regions": {status: 201, body: regionJSON}},
		},
		"region-update-cni": {
			reason:  "a declaration is added, changed or removed",
			args:    []string{"region", "update", "east", "--cni", "macvlan", "--cni", "dhcp=false", "--cni", "ptp-"},
			replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-update-parent": {
			reason:  "its Cluster is in another region now",
			args:    []string{"region", "update", "east", "--parent", "west"},
			replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-cni-wrong": {
			reason: "a plugin is there or absent", args: []string{"region", "update", "east", "--cni", "macvlan=perhaps"},
		},
		"region-capabilities": {
			reason: "what a region offers, and the rules that its account lacks", args: []string{"region", "capabilities", "east"},
			replies: one("/v1/cloud_regions/east/capabilities", capabilitiesJSON),
		},
		"region-capabilities-wide": {
			reason: "wide has the kinds, and refresh reads the region", args: []string{"region", "capabilities", "east", "--refresh", "-o", "wide"},
			replies: one("/v1/cloud_regions/east/capabilities?refresh=true", capabilitiesJSON),
		},
		"region-capabilities-json": {
			reason: "json is the server's answer", args: []string{"region", "capabilities", "east", "-o", "jsonpath=.nodes.usable"},
			replies: one("/v1/cloud_regions/east/capabilities", capabilitiesJSON),
		},
		"region-update-nothing": {
			reason: "an update of nothing is a mistake", args: []string{"region", "update", "east"},
		},
		"region-grant": {
			reason:  "what is granted comes on top of what was, and every field is named",
			args:    []string{"region", "grant", "east", "blue", "--namespace", "mon-*", "--cluster-kind", "ClusterRole.rbac.authorization.k8s.io"},
			replies: replies{"GET /v1/cloud_regions/east": {body: grantedJSON}, "PATCH /v1/cloud_regions/east": {body: grantedJSON}},
		},
		"region-grant-nothing": {
			reason: "a grant of nothing is a mistake", args: []string{"region", "grant", "east", "blue"},
		},
		"region-revoke": {
			reason:  "what is named is taken back",
			args:    []string{"region", "revoke", "east", "blue", "--namespace", "logs"},
			replies: replies{"GET /v1/cloud_regions/east": {body: grantedJSON}, "PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-revoke-all": {
			reason:  "or everything",
			args:    []string{"region", "revoke", "east", "blue"},
			replies: replies{"GET /v1/cloud_regions/east": {body: grantedJSON}, "PATCH /v1/cloud_regions/east": {body: regionJSON}},
		},
		"region-show-tenants": {
			reason: "the grants of each project", args: []string{"region", "show", "east"},
			replies: one("/v1/cloud_regions/east", grantedJSON),
		},
		"region-delete": {
			reason: "every one is tried; a region in use remains, and the error names its users",
			args:   []string{"region", "delete", "east", "west", "north"},
			replies: replies{
				"DELETE /v1/cloud_regions/west": {status: 204},
				"DELETE /v1/cloud_regions/east": problemReply(409, `{"status":409,"detail":"cannot remove cloud region east: is used by VNF instance k3x9vq2m",`+
					`"kind":"conflict","errors":[{"message":"is used by VNF instance k3x9vq2m"}]}`),
			},
		},
	})
}
