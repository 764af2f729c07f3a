package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// vaultChart is a chart without a schema. Its ConfigMap shows the password, so
// that comparisons do, and its test's arguments have it.
func vaultChart(name string) map[string]string {
	return map[string]string{
		name + "/Chart.yaml":  "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		name + "/values.yaml": "size: s\napiKey: planted-default\ndb: {user: admin, password: planted-inner}\n",
		name + "/templates/open.yaml": "{{ if eq .Values.db.password \"planted-weak\" }}{{ fail (printf \"%s is too weak\" .Values.db.password) }}{{ end }}\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-open\n  labels: {size: {{ .Values.size | quote }}}\n" +
			"data:\n  url: \"http://admin:{{ .Values.db.password }}@db\"\n  token: {{ .Values.token | default \"\" | quote }}\n",
		name + "/templates/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-test\n  annotations: {helm.sh/hook: test}\n" +
			"spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/t, args: [{{ .Values.db.password | quote }}]}]}\n",
	}
}

// TestSecretsOfChartsAreMasked plants secrets under names that sound so, in a
// chart that has no schema, and looks for them in every answer and in the log.
// The objects of the region, which ONAP's status shows as they are, are no place
// of the inputs.
func TestSecretsOfChartsAreMasked(t *testing.T) {
	t.Parallel()
	p, ns := serveProgram(t, t.TempDir()), clustertest.Namespace(t)
	p.client = &http.Client{}
	p.want(http.StatusCreated, p.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	m := &masking{program: p, ns: ns}
	m.native()
	m.onap()
	if strings.Contains(p.log.String(), "planted") {
		t.Errorf("the log shows a secret: %s", p.log)
	}
}

// masking asks, and looks for what is planted.
type masking struct {
	*program

	ns string
}

// place is a place where inputs are shown. It says the text given, a mask unless
// there is one; "-" is none.
type place struct {
	reason, request string
	body            any
	status          int
	says            string
}

func (m *masking) ask(places ...place) (last answer) {
	m.t.Helper()
	for _, at := range places {
		method, path, _ := strings.Cut(at.request, " ")
		last = m.do(method, path, at.body)
		says := at.says
		if says == "" {
			says = nf.Masked
		}
		text := string(last.body)
		if last.status != at.status || strings.Contains(text, "planted") || says != "-" && !strings.Contains(text, says) {
			m.t.Errorf("%s: %s: %d %s", at.reason, at.request, last.status, text)
		}
	}
	return last
}

func (m *masking) native() {
	m.t.Helper()
	m.ask(
		place{"an upload", "PUT /v1/packages/vault", archive(vaultChart("vault")), 201, ""},
		place{"a package", "GET /v1/packages/vault", nil, 200, `"sensitive":true`},
		place{"all packages", "GET /v1/packages", nil, 200, ""},
	)
	body := func(password, size string) map[string]any {
		return map[string]any{
			"cloud_region_id": "sandbox", "csar_id": "vault", "namespace": m.ns, "vnf_instance_name": "v",
			"parameters": map[string]any{"db": map[string]any{"password": password}}, "set": map[string]any{"token": "planted-set", "size": size},
		}
	}
	m.ask(
		place{"a dry run", "POST /v1/vnf_instances?dry_run=true", body("planted-a", "s"), 200, "created"},
		place{"the objects of a dry run, with a hook's", "POST /v1/vnf_instances?dry_run=true&objects=true", body("planted-a", "s"), 200, `"hook_events":["test"]`},
		place{"what the chart says of it", "POST /v1/vnf_instances", body("planted-weak", "s"), 400, nf.Masked + " is too weak"},
		place{"what the region says of it", "POST /v1/vnf_instances", body("!planted-b", "!planted-b"), 400, "-"},
	)
	made := m.ask(place{"a new instance", "POST /v1/vnf_instances", body("planted-a", "s"), 201, ""})
	one := "/v1/vnf_instances/" + made.text(m.t, "vnf_id")
	m.operation(made.text(m.t, "operation_id"))
	patch := map[string]any{"parameters": map[string]any{"db": map[string]any{"password": "planted-c"}}}
	m.ask(
		place{"an instance", "GET " + one, nil, 200, ""},
		place{"all instances", "GET /v1/vnf_instances", nil, 200, "-"},
		place{"a comparison", "PATCH " + one + "?dry_run=true", patch, 200, `"new":"********"`},
	)
	changed := m.ask(place{"a change", "PATCH " + one, patch, 200, ""})
	m.operation(changed.text(m.t, "operation_id"))
	amended := m.ask(place{"an amendment", "PUT " + one + "/amendments/a", map[string]any{
		"csar_id": "vault", "parameters": map[string]any{"db": map[string]any{"password": "planted-d"}}, "set": map[string]any{"users[0].apiKey": "planted-e"},
	}, 200, ""})
	m.operation(amended.text(m.t, "operation_id"))
	m.ask(
		place{"an amended instance", "GET " + one, nil, 200, `"users[0].apiKey":"********"`},
		place{"revisions", "GET " + one + "/revisions", nil, 200, ""},
		place{"a revision", "GET " + one + "/revisions/1", nil, 200, ""},
		place{"a return, tried", "POST " + one + "/rollback?dry_run=true", map[string]any{"revision": 1}, 200, ""},
		place{"operations", "GET /v1/operations", nil, 200, "-"},
		place{"an operation", "GET /v1/operations/" + amended.text(m.t, "operation_id"), nil, 200, "-"},
	)
	back := m.ask(place{"a return", "POST " + one + "/rollback", map[string]any{"revision": 1}, 200, ""})
	m.operation(back.text(m.t, "operation_id"))
	m.ask(place{"a removal", "DELETE " + one, nil, 204, "-"})
}

func (m *masking) onap() {
	m.t.Helper()
	const definition = "/v1/rb/definition/vault/1"
	request := map[string]any{
		"rb-name": "vault", "rb-version": "1", "profile-name": "p", "cloud-region": "sandbox",
		"override-values": map[string]string{"db.password": "planted-f", "token": "planted-g", "size": "s"},
	}
	with := func(size string) map[string]any {
		return map[string]any{
			"rb-name": "vault", "rb-version": "1", "profile-name": "p", "cloud-region": "sandbox",
			"override-values": map[string]string{"db.password": nf.Masked, "token": "planted-h", "size": size},
		}
	}
	m.ask(
		place{"a definition", "POST /v1/rb/definition", map[string]any{"rb-name": "vault", "rb-version": "1"}, 201, "-"},
		place{"its chart", "POST " + definition + "/content", rendertest.TarGz(vaultChart("vault")), 200, "-"},
		place{"a profile", "POST " + definition + "/profile", map[string]any{"profile-name": "p", "namespace": m.ns, "rb-name": "vault", "rb-version": "1"}, 201, "-"},
		place{"its values", "POST " + definition + "/profile/p/content", rendertest.TarGz(map[string]string{
			"manifest.yaml": "version: v1\ntype:\n  values: o.yaml\n", "o.yaml": "apiKey: planted-i\ndb: {password: planted-j}\n",
		}), 200, "-"},
	)
	made := m.ask(place{"a new instance", "POST /v1/instance", request, 201, `"db.password":"********"`})
	one := "/v1/instance/" + made.text(m.t, "id")
	m.ask(
		place{"what it is made of", "GET /v1/packages", nil, 200, ""},
		place{"instances", "GET /v1/instance", nil, 200, `"token":"********"`},
		place{"an instance", "GET " + one, nil, 200, ""},
		place{"all of it", "GET " + one + "?full=true", nil, 200, "p-test"},
		place{"as the native API has it", "GET /v1/vnf_instances/" + made.text(m.t, "id"), nil, 200, ""},
		place{"an upgrade by what was shown", "POST " + one + "/upgrade", with("m"), 201, `"db.password":"********"`},
		place{"one that the region refuses", "POST " + one + "/upgrade", with("!planted-h"), 500, "-"},
		place{"a template", "POST " + definition + "/config-template", map[string]any{"template-name": "t"}, 201, "-"},
		place{"a configuration", "POST " + one + "/config", map[string]any{"config-name": "c", "template-name": "t", "values": map[string]any{"token": "planted-k"}}, 201, "-"},
		place{"as it is shown", "GET " + one + "/config/c", nil, 200, `"token":"********"`},
		place{"in the list", "GET " + one + "/config", nil, 200, ""},
		place{"its versions", "GET " + one + "/config/c/version", nil, 200, ""},
		place{"its first version", "GET " + one + "/config/c/version/1", nil, 200, ""},
		place{"the instance with it", "GET /v1/vnf_instances/" + made.text(m.t, "id"), nil, 200, ""},
		place{"its revisions", "GET /v1/vnf_instances/" + made.text(m.t, "id") + "/revisions", nil, 200, ""},
		place{"operations", "GET /v1/operations", nil, 200, "-"},
		place{"a removal", "DELETE " + one, nil, 202, "-"},
	)
}
