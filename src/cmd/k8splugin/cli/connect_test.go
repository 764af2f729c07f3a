package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/multicloud-k8s/k8splugin/api/client"
)

func TestCredentials(t *testing.T) {
	files := folder(t, map[string]string{"token": "from-file\n", "password": "p w"})
	token, password := filepath.Join(files, "token"), filepath.Join(files, "password")
	env := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		stdin  string
		want   string
	}{
		"None":         {reason: "no credentials are given"},
		"Token":        {reason: "a token of the environment", env: env("K8SPLUGIN_TOKEN", "from-env"), want: "Bearer from-env"},
		"TokenFile":    {reason: "a file comes first", args: []string{"--token-file", token}, env: env("K8SPLUGIN_TOKEN", "from-env"), want: "Bearer from-file"},
		"TokenStdin":   {reason: "or standard input", args: []string{"--token-file", "-"}, stdin: "from-stdin\r\n", want: "Bearer from-stdin"},
		"User":         {reason: "a name and a password of the environment", env: env("K8SPLUGIN_USER", "ann", "K8SPLUGIN_PASSWORD", "pw"), want: "Basic YW5uOnB3"},
		"UserFlag":     {reason: "a name that is given comes before a token that lies about", args: []string{"--user", "ann", "--password-file", password}, env: env("K8SPLUGIN_TOKEN", "t"), want: "Basic YW5uOnAgdw=="},
		"PasswordOnly": {reason: "a name here, a password there", args: []string{"--user", "ann"}, env: env("K8SPLUGIN_PASSWORD", "pw"), want: "Basic YW5uOnB3"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.Header.Get("Authorization")
				_, _ = io.WriteString(w, `{"cloud_regions":[]}`)
			}))
			defer srv.Close()
			r := console{env: c.env, stdin: c.stdin}.run(t.Context(), srv.URL, append([]string{"region", "list"}, c.args...)...)
			if r.code != 0 {
				t.Fatalf("%s: got exit code %d\n%s", c.reason, r.code, r.stderr)
			}
			if got := <-asked; got != c.want {
				t.Errorf("%s: got exit code %d and %q, want %q\n%s", c.reason, r.code, got, c.want, r.stderr)
			}
			if strings.Contains(r.stderr, "warning") {
				t.Errorf("%s: on this machine nobody listens: %s", c.reason, r.stderr)
			}
		})
	}
}

// TestCaution warns of what others can listen to, which is no failure.
func TestCaution(t *testing.T) {
	for url, warns := range map[string]bool{
		"http://k8splugin.example.com:9015": true, "http://10.0.0.1": true, "https://10.0.0.1": false, "http://localhost:9015": false, "http://[::1]:9015": false,
	} {
		to := connection{getenv: func(name string) string {
			return map[string]string{"K8SPLUGIN_SERVER": url, "K8SPLUGIN_TOKEN": "the-secret"}[name]
		}}
		c, err := to.client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said := &strings.Builder{}
		c.warnInsecure(&printer{stderr: said})
		if got := said.String(); warns != strings.Contains(got, "warning: credentials are sent to") || strings.Contains(got, "the-secret") {
			t.Errorf("%s: the warning is %q", url, got)
		}
	}
}

// TestRedirect keeps credentials from servers that the server redirects to.
func TestRedirect(t *testing.T) {
	asked := make(chan string, 9)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	r := console{env: map[string]string{"K8SPLUGIN_TOKEN": "t"}}.run(t.Context(), srv.URL, "region", "list")
	if path := <-asked; path != "/v1/cloud_regions" || len(asked) > 0 || r.code != exitNoServer {
		t.Errorf("got exit code %d; asked for %s and then %d more", r.code, path, len(asked))
	}
}

func TestCertificates(t *testing.T) {
	cert, key := certificate(t)
	files := folder(t, map[string]string{"cert.pem": cert, "key.pem": key})
	at := func(name string) string { return filepath.Join(files, name) }
	peers := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer := ""
		if len(r.TLS.PeerCertificates) > 0 {
			peer = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		peers <- peer
		_, _ = io.WriteString(w, `{"cloud_regions":[]}`)
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(folder(t, map[string]string{
		"ca.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})),
	}), "ca.pem")
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		code   int
		peer   string
		stderr string
	}{
		"Unknown":  {reason: "a stranger is not spoken to", code: exitNoServer, stderr: "certificate"},
		"Trusted":  {reason: "a server with a trusted certificate is trusted", args: []string{"--certificate-authority", ca}},
		"Insecure": {reason: "any server is trusted, with a warning", args: []string{"--insecure-skip-verify"}, stderr: "warning: the certificate of 127.0.0.1"},
		"Client":   {reason: "a certificate identifies the client", args: []string{"--certificate-authority", ca, "--client-certificate", at("cert.pem"), "--client-key", at("key.pem")}, peer: "ann"},
		"KeyOfTheStore": {
			reason: "the variable is another command's", args: []string{"--certificate-authority", ca},
			env: map[string]string{"K8SPLUGIN_ENCRYPTION_KEY_FILE": at("key.pem")},
		},
		"Mixed": {reason: "a key of another certificate is none", args: []string{"--certificate-authority", ca, "--client-certificate", ca, "--client-key", at("key.pem")}, code: exitFailed, stderr: "cannot use the certificate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := console{env: c.env}.run(t.Context(), srv.URL, append([]string{"region", "list"}, c.args...)...)
			peer := ""
			if r.code == 0 {
				peer = <-peers
			}
			if r.code != c.code || peer != c.peer || !strings.Contains(r.stderr, c.stderr) {
				t.Errorf("%s: got exit code %d, the peer %q and %q", c.reason, r.code, peer, r.stderr)
			}
		})
	}
}

// certificate returns a certificate of ann's and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	about.Subject.CommonName = "ann"
	raw, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	return text("CERTIFICATE", raw), text("PRIVATE KEY", encoded)
}

// forgetful is a server that does what it is asked, and loses its answer a few
// times.
type forgetful struct {
	t     *testing.T
	loses int
	half  bool // it begins to answer

	mu   sync.Mutex
	keys []string
	sent []string
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys, f.sent = append(f.keys, r.Header.Get("Idempotency-Key")), append(f.sent, r.Method+" "+string(body))
	if len(f.keys) > f.loses {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"cloud_region_id":"east","csar_id":"web","operation_id":"op"}`)
		return
	}
	if f.half {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"cloud_reg`)
		w.(http.Flusher).Flush()
	}
	panic(http.ErrAbortHandler)
}

func TestLostAnswers(t *testing.T) {
	files := folder(t, map[string]string{"config": twoContexts, "web.zip": "PK a package"})
	region := []string{"region", "add", "east", "--kubeconfig", filepath.Join(files, "config")}
	cases := map[string]struct {
		reason string
		args   []string
		loses  int
		half   bool
		times  int
		code   int
	}{
		"Never":    {reason: "what is answered is asked once", args: region, times: 1},
		"Once":     {reason: "a lost answer is asked for again", args: region, loses: 1, times: 2},
		"Half":     {reason: "half an answer is a lost one", args: region, loses: 2, half: true, times: 3},
		"Always":   {reason: "but not for ever", args: region, loses: 9, times: 3, code: exitNoServer},
		"Upload":   {reason: "all of a package is sent again", args: []string{"package", "push", filepath.Join(files, "web.zip")}, loses: 1, times: 2},
		"Replaces": {reason: "and to where there is one", args: []string{"package", "push", filepath.Join(files, "web.zip"), "--id", "web"}, loses: 1, times: 2},
		"Empty":    {reason: "a request without a body, too", args: []string{"operation", "cancel", "op"}, loses: 1, times: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := &forgetful{t: t, loses: c.loses, half: c.half}
			srv := httptest.NewServer(f)
			defer srv.Close()
			r := console{}.run(t.Context(), srv.URL, c.args...)
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.code != c.code || len(f.keys) != c.times {
				t.Fatalf("%s: got exit code %d, and %d requests, want %d and %d\n%s", c.reason, r.code, len(f.keys), c.code, c.times, r.stderr)
			}
			for i := range f.keys {
				if f.keys[i] != f.keys[0] || f.sent[i] != f.sent[0] || len(f.keys[i]) < 20 {
					t.Errorf("%s: request %d is %s %q, and the first one %s %q", c.reason, i, f.keys[i], f.sent[i], f.keys[0], f.sent[0])
				}
			}
		})
	}
}

// TestOwnKeys gives each request of a command its own key.
func TestOwnKeys(t *testing.T) {
	f := &forgetful{t: t}
	srv := httptest.NewServer(f)
	defer srv.Close()
	for range 2 {
		if r := (console{}).run(t.Context(), srv.URL, "operation", "cancel", "op"); r.code != 0 {
			t.Fatal(r.stderr)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[0] == f.keys[1] {
		t.Errorf("two requests have the key %s", f.keys[0])
	}
}

func TestRepeatable(t *testing.T) {
	cases := map[string]struct {
		reason string
		r      request
		want   bool
	}{
		"Get":      {"nothing is lost by asking anew", ask(api.NewGetKeysRequest(root)), false},
		"Post":     {"a request has a key", ask(api.NewCreateCloudRegionRequestWithBody(root, nil, jsonMedia, nil)), true},
		"Patch":    {"and so has a change", ask(api.NewUpdateVnfInstanceRequestWithBody(root, "x", nil, mergePatch, nil)), true},
		"Put":      {"putting twice is putting once", ask(api.NewPutPackageRequestWithBody(root, "x", nil, jsonMedia, nil)), true},
		"Delete":   {"the removal of an instance has a key", ask(api.NewDeleteVnfInstanceRequest(root, "x", nil)), true},
		"DeleteIt": {"that of a region has none, and is not found the second time", ask(api.NewDeleteCloudRegionRequest(root, "x")), false},
		"Resend":   {"a dead letter is not there to be sent a second time", ask(api.NewResendDeadLetterRequest(root, "x")), false},
	}
	for name, c := range cases {
		if got := c.r.repeatable(); got != c.want {
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		}
	}
	if (request{body: io.LimitReader(strings.NewReader("x"), 1)}).rewind() {
		t.Error("what cannot be read again is sent again")
	}
	if (request{body: broken{}}).rewind() {
		t.Error("a pipe is sent again")
	}
}

// broken is a pipe.
type broken struct{ io.Reader }

func (broken) Seek(int64, int) (int64, error) { return 0, errors.New("it is a pipe") }
