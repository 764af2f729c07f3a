package main

import (
	"crypto/tls"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestAccess proves the files on a real TLS server that trusts nothing else: it
// has the sandbox's serving certificate and knows only the tokens of the file.
func TestAccess(t *testing.T) {
	dir := t.TempDir()
	server := newServer(t, dir)
	if err := writeAccess(dir, server.URL, identities(0)); err != nil {
		t.Fatal(err)
	}
	users := readTokens(t, tokenPath(dir))
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := users[r.Header.Get("Authorization")]
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"user":"` + user + `"}`))
	})
	for _, id := range identities(0) {
		t.Run(id.file, func(t *testing.T) {
			client, err := dial(kubeconfigPath(dir, id.file))
			if err != nil {
				t.Fatal(err)
			}
			var answer struct{ User string }
			if err := client.get(t.Context(), "/", &answer); err != nil {
				t.Fatal(err)
			}
			if answer.User != id.user {
				t.Errorf("the API server sees %q, want %q", answer.User, id.user)
			}
		})
	}
}

func TestAccessIsPrivate(t *testing.T) {
	dir := t.TempDir()
	server := newServer(t, dir)
	if err := writeAccess(dir, server.URL, identities(0)); err != nil {
		t.Fatal(err)
	}
	paths := []string{tokenPath(dir)}
	for _, id := range identities(0) {
		paths = append(paths, kubeconfigPath(dir, id.file))
	}
	for _, path := range paths {
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := file.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, mode)
		}
	}
}

func TestTokenStaysHome(t *testing.T) {
	dir := t.TempDir()
	server := newServer(t, dir)
	if err := writeAccess(dir, server.URL, identities(0)); err != nil {
		t.Fatal(err)
	}
	var sent string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
	}))
	defer other.Close()
	client, err := dial(adminKubeconfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.get(t.Context(), other.URL+"/health", nil); err != nil {
		t.Fatal(err)
	}
	if sent != "" {
		t.Errorf("a server that is not the API server was sent %q", sent)
	}
}

func TestReadKubeconfigRefuses(t *testing.T) {
	cases := map[string]struct{ reason, content string }{
		"Empty":     {"a file of nothing is no kubeconfig", ""},
		"NoCluster": {"there is nothing to connect to", `{"users":[{"name":"a","user":{"token":"t"}}]}`},
		"Truncated": {"a half-written file must not be taken for a whole one", `{"clusters":[{"name":"a"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readKubeconfig(path); err == nil {
				t.Errorf("%s: no error", tc.reason)
			}
		})
	}
}

// newServer returns a server with the serving certificate of a sandbox's
// folder; its handler is set later.
func newServer(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	keys := pkiIn(dir)
	if err := keys.ensure(); err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(keys.serving, keys.servingKey)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// readTokens reads a token file as the API server does: token, user, uid,
// groups.
func readTokens(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	users := make(map[string]string)
	for _, line := range lines {
		users["Bearer "+line[0]] = line[1]
	}
	return users
}
