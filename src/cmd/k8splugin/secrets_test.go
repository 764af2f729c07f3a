package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// The secrets that TestNoSecretGetsOut plants.
const (
	plantedParameter = "Plant-parameter_7hQ2-x9"
	plantedChanged   = "Plant-changed_41kd-pp0"
	plantedLiteral   = "plant-literal-in-package-83jf"
)

// recordedTransport keeps every answer, headers included.
type recordedTransport struct {
	next http.RoundTripper
	log  *syncBuffer
}

func (r recordedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Header.Write(r.log)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, r.log), resp.Body}
	return resp, nil
}

// TestNoSecretGetsOut plants secrets wherever they come in, lets the service do
// all that it does, and looks for them wherever anything comes out: in the files
// of the store, in the log, and in every answer.
func TestNoSecretGetsOut(t *testing.T) {
	t.Parallel()
	data, ns := t.TempDir(), clustertest.Namespace(t)
	p := serveProgram(t, data, "--log-level", "debug")
	answers := &syncBuffer{}
	p.client.Transport = recordedTransport{p.client.Transport, answers}

	p.want(http.StatusCreated, p.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "sandbox", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	files := map[string]string{
		"metadata.yaml": "variables:\n  password: {type: string, required: true, sensitive: true}\n  label: {type: string, default: fine}\n  replicas: {type: integer, default: 1}\n" +
			"resources:\n- secret: [secret.yaml]\n- configmap: [map.yaml]\n- deployment: [web.yaml]\n",
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\nstringData:\n  password: \"$password\"\n  fixed: " + plantedLiteral + "\n",
		"map.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\n  labels: {label: \"$label\"}\ndata:\n  a: b\n",
		"web.yaml":    deployment("web", goodImage),
	}
	p.upload("secretive", files)
	body := map[string]any{
		"cloud_region_id": "sandbox", "csar_id": "secretive", "namespace": ns, "vnf_instance_name": "secretive",
		"parameters": map[string]any{"password": plantedParameter},
	}
	p.want(http.StatusOK, p.do("POST", "/v1/vnf_instances?dry_run=true", body))
	made := p.want(http.StatusCreated, p.do("POST", "/v1/vnf_instances", body))
	id := "/v1/vnf_instances/" + made.text(t, "vnf_id")
	p.operation(made.text(t, "operation_id"))
	change := func(parameters map[string]any) map[string]any {
		return map[string]any{"parameters": parameters, "timeout": "60s"}
	}
	p.do("PATCH", id+"?dry_run=true", change(map[string]any{"password": plantedChanged}))
	changed := p.want(http.StatusOK, p.do("PATCH", id, change(map[string]any{"password": plantedChanged})))
	p.operation(changed.text(t, "operation_id"))
	// The API server repeats a label's value that it rejects, and so does every
	// report of the error.
	refused := p.do("PATCH", id, change(map[string]any{"password": "!" + plantedChanged, "label": "!" + plantedChanged}))
	if refused.status < 400 {
		t.Errorf("a label that cannot be was taken: %s", refused.body)
	}
	p.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "sandbox", "csar_id": "secretive", "parameters": map[string]any{"passwort": plantedParameter}})
	p.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": "wrong", "kubeconfig": base64.StdEncoding.EncodeToString([]byte("token: " + plantedLiteral))})
	rolled := p.want(http.StatusOK, p.do("POST", id+"/rollback", map[string]any{"revision": 1}))
	p.operation(rolled.text(t, "operation_id"))
	for _, path := range []string{
		id, id + "/revisions", id + "/revisions/1", "/v1/vnf_instances", "/v1/operations", "/v1/operations/" + rolled.text(t, "operation_id"),
		"/v1/cloud_regions", "/v1/cloud_regions/sandbox", "/v1/packages", "/v1/packages/secretive", "/v1/keys", "/metrics", "/readyz", "/healthz",
	} {
		p.do("GET", path, nil)
	}
	p.want(http.StatusOK, p.do("POST", "/v1/keys/reencrypt", nil))
	p.want(http.StatusNoContent, p.do("DELETE", id, nil))
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	places := map[string]string{"the answers": answers.String(), "the log": p.log.String()}
	for name, content := range filesOf(t, data) {
		places["the store's file "+name] = content
	}
	if len(places) < 5 || len(answers.String()) < 10_000 || len(p.log.String()) < 10_000 {
		t.Fatalf("there is little to look at: %d places", len(places))
	}
	secrets := append(secretsOf(string(clustertest.Kubeconfig(t))), plantedParameter, plantedChanged, plantedLiteral)
	if len(secrets) < 4 {
		t.Fatal("the sandbox's kubeconfig has no token to look for")
	}
	for where, content := range places {
		for _, secret := range secrets {
			for _, trace := range traces(secret) {
				if at := strings.Index(content, trace); at >= 0 {
					t.Errorf("%s has a secret, as %q: …%q…", where, trace, content[max(0, at-200):min(len(content), at+len(trace)+40)])
				}
			}
		}
	}
}

// filesOf returns all files below a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		out[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// traces returns the forms in which a secret may be found: as it is, in a URL,
// and in base64, wherever in its groups of three it begins.
func traces(secret string) []string {
	out := []string{secret, url.QueryEscape(secret)}
	for shift := range 3 {
		coded := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte{'x'}, shift), secret...))
		// What comes before and after takes part in the first and last characters.
		out = append(out, coded[4:len(coded)-4])
	}
	return out
}

func TestTracesAreFound(t *testing.T) {
	for _, before := range []string{"", "a", "ab", "abc"} {
		text := base64.StdEncoding.EncodeToString([]byte(before + plantedParameter + "tail"))
		found := false
		for _, trace := range traces(plantedParameter) {
			found = found || strings.Contains(text, trace)
		}
		if !found {
			t.Errorf("%q hides the secret", text)
		}
	}
}
