package bare_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cmd/sandbox/bare"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) }))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	cluster := fmt.Sprintf("{cluster: {server: %s, certificate-authority-data: %s}}", server.URL, ca)
	tests := map[string]struct {
		reason     string
		kubeconfig string
		want       string // of the error; none when empty
	}{
		"Sandbox": {"the sandbox's has one cluster and one user", "{clusters: [" + cluster + "], users: [{user: {token: t}}]}", ""},
		"Two":     {"it would not be known which is meant", "{clusters: [" + cluster + "," + cluster + "], users: [{user: {token: t}}]}", "not the sandbox's"},
		"Nobody":  {"nobody would be asking", "{clusters: [" + cluster + "]}", "not the sandbox's"},
		"Text":    {"what is no YAML is said to be none", "{", "cannot read the kubeconfig"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(tc.kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := bare.Open(file)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("%s: the error is %v, want one of %q", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := ask(t, s); got != "Bearer t" || s.Kubeconfig != tc.kubeconfig {
				t.Errorf("%s: the server was told %q, want the token", tc.reason, got)
			}
		})
	}
}

func ask(t *testing.T, s *bare.Server) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: s}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || req.Header.Get("Authorization") != "" {
		t.Fatalf("the answer: %v; the caller's request: %v", err, req.Header)
	}
	return string(body)
}
