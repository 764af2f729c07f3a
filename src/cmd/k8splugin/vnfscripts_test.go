package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/site/sitetest"
)

// TestVNFScripts runs the samples of scripts: as a Job in the cloud region, over SSH on a host,
// and as a signed request to a webhook.
func TestVNFScripts(t *testing.T) {
	t.Parallel()
	s := vnfs{startService(t, func(c *Config) { c.CallbackAllow = "127.0.0.1" }), t}
	host := sitetest.New(t)
	ssh := hostOf(host)
	ssh["password"] = sitetest.Password
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	webhook, printed := startReceiver(t, "csar", "--secret-file", secret)
	cases := map[string]struct {
		vnfd       string
		parameters map[string]any
	}{
		"job":     {"4f4b9a2e-6a0c-4f3d-9c51-0d2f6c1e7a02", map[string]any{"script_image": "registry.example.com/bash:1"}},
		"ssh":     {"4f4b9a2e-6a0c-4f3d-9c51-0d2f6c1e7a03", map[string]any{"script_hosts": []any{ssh}}},
		"webhook": {"4f4b9a2e-6a0c-4f3d-9c51-0d2f6c1e7a04", map[string]any{"webhook_secret": "s3cret"}},
	}
	for name, tc := range cases {
		files := sample(t, "csar/"+name)
		if name == "webhook" {
			files["Scripts/notify.url"] = webhook + "/vnf\n"
		}
		s.upload("script-"+name, files)
		v := s.create(tc.vnfd)
		tc.parameters["namespace"] = clustertest.Namespace(t)
		o := s.begin(v+"/instantiate", map[string]any{
			"flavourId": "simple", "vimConnectionInfo": map[string]any{"vim1": map[string]any{"vimId": nf.Region{ID: "sandbox"}.VIMID(), "vimType": "ETSINFV.KUBERNETES.V_1"}},
			"additionalParams": tc.parameters,
		}, nf.OccurrenceCompleted)
		if strings.Contains(string(o.body), "s3cret") || strings.Contains(string(o.body), sitetest.Password) {
			t.Errorf("the occurrence shows a credential: %s", o.body)
		}
		s.begin(v+"/terminate", map[string]any{"terminationType": "GRACEFUL"}, nf.OccurrenceCompleted)
	}
	if text, err := os.ReadFile(filepath.Join(host.Home, "vnf.json")); err != nil || !strings.Contains(string(text), `"operation":"instantiate_end"`) {
		t.Errorf("the script on the host got %s: %v", text, err)
	}
	if body, err := printed.ReadString('\n'); err != nil || !strings.Contains(body, `"inputs": {"mode": "first"}`) || strings.Contains(body, "s3cret") {
		t.Errorf("the webhook got %s: %v", body, err)
	}
	forged, err := http.NewRequestWithContext(t.Context(), http.MethodPost, webhook, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	forged.Header.Set(outbox.TimestampHeader, "1")
	forged.Header.Set(outbox.SignatureHeader, outbox.Sign([]byte("s3cret"), "1", []byte("{}")))
	answer, err := http.DefaultClient.Do(forged)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("an old request gets status %d, want 401", answer.StatusCode)
	}
	ops := s.want(http.StatusOK, s.do("GET", "/v1/operations?subject=vnf", nil))
	if !strings.Contains(string(ops.body), "run script instantiate_end") {
		t.Errorf("the operations do not show the scripts: %s", ops.body)
	}
}
