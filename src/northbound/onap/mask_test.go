package onap_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// planted is in every secret of these tests.
const planted = "hunter2"

// secretive is a request with a secret, which is in its labels, too, as in those of SO's
// adapter. In masked, the mask was sent back for both; maskedLabel has one in a label.
var (
	secretive   = strings.NewReplacer(`"a.b": "x"`, `"db.password": "hunter2-a"`, `"stack-name"`, `"db.password": "hunter2-a", "stack-name"`).Replace(fwRequest)
	masked      = strings.ReplaceAll(secretive, "hunter2-a", nf.Masked)
	maskedLabel = strings.Replace(secretive, "hunter2-a", nf.Masked, 1)
)

// TestSecretsAreMasked plants secrets in an instance and its configuration, and
// looks for them wherever either is shown.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.sensitive = []string{"password"}
	const one, template = "/v1/instance/id1", `{"config-name": "c", "template-name": "ssh", "values": `
	for _, tc := range []struct {
		reason, request, body string
		status                int
		shows                 string // empty: nothing to mask
	}{
		{"a new instance", "POST /v1/instance", secretive, 201, `"db.password":"********"`},
		{"the list", "GET /v1/instance", "", 200, `"db.password":"********"`},
		{"an instance", "GET " + one, "", 200, `"db.password":"********"`},
		{"all of it", "GET " + one + "?full=true", "", 200, `"db.password":"********"`},
		{"its status", "GET " + one + "/status", "", 200, `"db.password":"********"`},
		{"a query of its objects", "GET " + one + "/query?ApiVersion=v1&Kind=ConfigMap", "", 200, `"db.password":"********"`},
		{"a new configuration", "POST " + configs, template + `{"login": [{"password": "hunter2-b"}], "big": 12345678901234567890, "a": "<&>"}}`, 201, ""},
		{"a configuration", "GET " + configs + "/c", "", 200, `"login":[{"password":"********"}]`},
		{"what else it has stays as it is", "GET " + configs + "/c", "", 200, `"big":12345678901234567890`},
		{"configurations", "GET " + configs, "", 200, `"password":"********"`},
		{"versions", "GET " + configs + "/c/version", "", 200, `"password":"********"`},
		{"a version", "GET " + configs + "/c/version/1", "", 200, `"password":"********"`},
		{"a tag", "POST " + configs + "/c/tagit", `{"tag-name": "x"}`, 200, ""},
		{"what has a tag", "GET " + configs + "/c/tag/x", "", 200, `"password":"********"`},
		{"a change", "PUT " + configs + "/c", `{"values": {"login": [{"password": "hunter2-c"}]}}`, 201, ""},
		{"what has changed", "GET " + configs + "/c", "", 200, `"password":"********"`},
		{"a return", "POST " + configs + "/c/rollback", `{"config-version": 1}`, 200, ""},
		{"a deletion", "POST " + configs + "/c/delete", "", 200, ""},
		{"all versions", "GET " + configs + "/c/version", "", 200, `"config-version":4`},
		{"the version that is deleted", "GET " + configs + "/c/version/4", "", 200, `"password":"********"`},
		{"an upgrade", "POST " + one + "/upgrade", strings.ReplaceAll(secretive, "-a", "-d"), 201, `"db.password":"********"`},
		{"what it has become", "GET " + one, "", 200, `"db.password":"********"`},
		{"what has moved", "POST " + one + "/upgrade", strings.Replace(secretive, "east", "west", 1), 201, `"db.password":"********"`},
	} {
		got := w.ask(t, tc.request, tc.body)
		if got.status != tc.status || strings.Contains(got.body, planted) || !strings.Contains(got.body, tc.shows) {
			t.Errorf("%s: %s answers %d: %s", tc.reason, tc.request, got.status, got.body)
		}
	}
}

// TestMaskSentBack checks that a mask never becomes the value: it stands for what
// is there, where something is.
func TestMaskSentBack(t *testing.T) {
	t.Parallel()
	const config = `{"config-name": "c", "template-name": "ssh", "values": `
	overrides := func(spec nf.Spec) any { return spec.Inputs.Overrides["db.password"] }
	parameters := func(spec nf.Spec) any { return spec.Amendments[0].Inputs.Parameters }
	cases := map[string]struct {
		reason, request, body string
		status                int
		tells                 string
		keeps                 func(nf.Spec) any
		want                  any
	}{
		"Create":       {"a new instance has nothing yet", "POST /v1/instance", masked, 422, `override-values: "db.password" is the mask of a hidden value`, nil, nil},
		"Upgrade":      {"an instance keeps its value", "POST /v1/instance/id1/upgrade", strings.Replace(masked, `"1"}`, `"2"}`, 1), 201, `"image.tag":"2"`, overrides, "hunter2-a"},
		"UpgradeNew":   {"where it has none, there is nothing to keep", "POST /v1/instance/id1/upgrade", strings.ReplaceAll(masked, "db.password", "db.other"), 422, `override-values: "db.other" is the mask of a hidden value`, nil, nil},
		"CreateLabel":  {"a label of a new instance has nothing yet", "POST /v1/instance", maskedLabel, 422, `labels: "db.password" is the mask of a hidden value`, nil, nil},
		"UpgradeLabel": {"a label keeps only its own value", "POST /v1/instance/id1/upgrade", strings.Replace(maskedLabel, "db.password", "a.b", 1), 422, `labels: "a.b" is the mask of a hidden value`, nil, nil},
		"Move":         {"it takes its value along", "POST /v1/instance/id1/upgrade", strings.Replace(masked, "east", "west", 1), 201, `"cloud-region":"west"`, nil, nil},
		"Workload":     {"a workload has nothing yet", "POST /acme/east/infra_workload", strings.Replace(stackRequest, `"b", "attribute_value": "user"`, `"db.password", "attribute_value": "********"`, 1), 422, `override-values: "db.password" is the mask of a hidden value`, nil, nil},
		"Config":       {"a new configuration has nothing yet", "POST " + configs, `{"config-name": "d", "template-name": "ssh", "values": {"a": ["********"]}}`, 422, "values.a[0] is the mask of a hidden value", nil, nil},
		"ChangeConfig": {"a configuration keeps its values", "PUT " + configs + "/c", config + `{"login": [{"password": "********"}], "n": 2}}`, 201, `"config-version":2`, parameters, map[string]any{"login": []any{map[string]any{"password": "hunter2-b"}}, "n": 2.0}},
		"ConfigNew":    {"where it has none, there is nothing to keep", "PUT " + configs + "/c", config + `{"login": [{"password": "a"}, {"password": "********"}]}}`, 422, "values.login[1].password is the mask of a hidden value", nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.sensitive = []string{"password"}
			w.ask(t, "POST /v1/instance", secretive)
			w.ask(t, "POST "+configs, config+`{"login": [{"password": "hunter2-b"}]}}`)
			got := w.ask(t, tc.request, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.tells) || strings.Contains(got.body, planted) {
				t.Errorf("%s: %d %s", tc.reason, got.status, got.body)
			}
			for id, in := range w.instances {
				if in.Inputs.Overrides["db.password"] != "hunter2-a" {
					t.Errorf("%s: of %s, the value has become %q", tc.reason, id, in.Inputs.Overrides["db.password"])
				}
				if request := in.Annotations["onap/request"]; !strings.Contains(request, `"labels":{"db.password":"hunter2-a"`) {
					t.Errorf("%s: of %s, the request has become %s", tc.reason, id, request)
				}
			}
			if tc.keeps == nil {
				return
			}
			if diff := cmp.Diff(tc.want, tc.keeps(w.last().(nf.Spec))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
