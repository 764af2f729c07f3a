package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestTemplate checks packages that are rendered without a server.
func TestTemplate(t *testing.T) {
	t.Parallel()
	chart := rendertest.Zip(map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": "db_password: \"\"\nsize: 1\n",
		"templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: \"{{ .Values.size }}\", url: \"x:{{ .Values.db_password }}@y\"}\n",
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: early, annotations: {helm.sh/hook: pre-install}}\n",
	})
	manifests := rendertest.Zip(map[string]string{
		"metadata.yaml": "variables:\n- {name: count, type: integer}\nresources:\n- configMap: [cm.yaml]\n",
		"cm.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: $vnf_name, namespace: $namespace}\ndata: {count: \"$count\", id: $vnf_id}\n",
	})
	request := func(values map[string]any) nf.InstantiateRequest {
		return nf.InstantiateRequest{Namespace: "edge", Name: "fw", Spec: nf.Spec{Release: "rel", Inputs: nf.Inputs{Parameters: values}}}
	}
	cases := map[string]struct {
		reason  string
		archive []byte
		values  map[string]any
		secrets bool
		want    []string // of the manifests, as JSON
		fails   string
	}{
		"Chart":     {"its hook comes last", chart, map[string]any{"size": json.RawMessage("12345678")}, false, []string{`"size":"12345678"`, `"Stage":""`, `"pre-install"`}, ""},
		"Masked":    {"secrets are not printed", chart, map[string]any{"db_password": "hunter2"}, false, []string{`"url":"********"`}, ""},
		"Shown":     {"unless they are asked for", chart, map[string]any{"db_password": "hunter2"}, true, []string{`"url":"x:hunter2@y"`}, ""},
		"Manifests": {"with the names of an instance", manifests, map[string]any{"count": json.RawMessage("2")}, false, []string{`"name":"fw"`, `"namespace":"edge"`, `"count":"2"`, `"id":"vnf-id"`, `"File":"cm.yaml","Line":1`}, ""},
		"Missing":   {"a value that is missing is said", manifests, nil, false, nil, "count"},
		"NoPackage": {"an archive that is none", []byte("PK"), nil, false, nil, "archive"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := template(t.Context(), tc.archive, request(tc.values), tc.secrets)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: got error %v, want one about %s", tc.reason, err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got.Manifests)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s: %s is not in %s", tc.reason, want, text)
				}
			}
		})
	}
}

// TestNoValuesInLibraryLog runs the program with a chart whose values Helm cannot merge: it
// prints the values to the standard logger.
func TestNoValuesInLibraryLog(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	chart := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "values.yaml": "db: {auth: {password: hunter2}}\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {auth: \"{{ .Values.db.auth }}\"}\n",
	} {
		path := filepath.Join(chart, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "package", "template", chart, "--set", "db.auth=false")
	cmd.Env = append(os.Environ(), actAsProgram+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "kind: ConfigMap") || strings.Contains(string(out), "hunter2") {
		t.Errorf("%v, the program prints %s", err, out)
	}
}
