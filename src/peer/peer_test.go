package peer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/peer"
)

// pair is a self-signed certificate of this machine and its key, in PEM.
type pair struct{ certificate, key string }

func newPair(t *testing.T, name string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
}

// serve starts a server with a certificate that responds with the name of the client's.
func (p pair) serve(t *testing.T) *httptest.Server {
	t.Helper()
	own, err := tls.X509KeyPair([]byte(p.certificate), []byte(p.key))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range r.TLS.PeerCertificates {
			_, _ = fmt.Fprint(w, c.Subject.CommonName)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// get returns the name of the client that a server sees on a new connection.
func get(t *testing.T, transport *http.Transport, url string) (string, error) {
	t.Helper()
	transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var name string
	_, _ = fmt.Fscan(resp.Body, &name)
	return name, nil
}

// TestPeer replaces each file of a peer while it is used.
func TestPeer(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
		return file
	}
	first, second, client, other := newPair(t, "first"), newPair(t, "second"), newPair(t, "client"), newPair(t, "other")
	firstServer, secondServer := first.serve(t), second.serve(t)
	p, err := peer.New(peer.Config{Name: "test", Clock: func() time.Time { return now }, Files: peer.Files{
		User: write("user", "u\n"), Password: write("password", " p w \n"), CA: write("ca", first.certificate),
		Certificate: write("cert", client.certificate), Key: write("key", client.key),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if user, password := p.Credentials(t.Context()); user != "u" || string(password) != " p w " {
		t.Errorf("only the end of a line is no part of a password: %q, %q", user, string(password))
	}
	transport := p.Transport()
	defer transport.CloseIdleConnections()
	if name, err := get(t, transport, firstServer.URL); err != nil || name != "client" {
		t.Errorf("the server sees %q: %v", name, err)
	}
	if _, err := get(t, transport, secondServer.URL); err == nil {
		t.Error("the CA of the second server is not trusted")
	}
	write("ca", second.certificate)
	write("cert", other.certificate)
	write("key", other.key)
	write("password", "new")
	if name, err := get(t, transport, secondServer.URL); err != nil || name != "other" {
		t.Errorf("the server sees %q: %v", name, err)
	}
	if _, password := p.Credentials(t.Context()); string(password) != "new" {
		t.Error("the password is old")
	}
	write("key", client.key) // the key of another certificate
	if name, err := get(t, transport, secondServer.URL); err != nil || name != "other" || p.Broken() != 1 {
		t.Errorf("the previous files must stay active: %q, %v, broken %d", name, err, p.Broken())
	}
}

// TestTLS has a configuration that applies where the files set nothing.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, server, given, client := t.TempDir(), newPair(t, "server"), newPair(t, "given"), newPair(t, "client")
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own, err := tls.X509KeyPair([]byte(given.certificate), []byte(given.key))
	if err != nil {
		t.Fatal(err)
	}
	s := server.serve(t)
	ca, other, certificate, key := write("ca", server.certificate), write("other", given.certificate), write("cert", client.certificate), write("key", client.key)
	for name, tc := range map[string]struct {
		reason   string
		files    peer.Files
		accepts  bool   // the configuration accepts any server
		sees     string // certificate that the server sees; empty: there is no connection
		verified bool   // by the configuration
	}{
		"Nothing":     {"the configuration verifies the server, and has the certificate", peer.Files{}, true, "given", true},
		"Rejected":    {"a server that it rejects is rejected", peer.Files{}, false, "", true},
		"CA":          {"a CA verifies the server instead", peer.Files{CA: ca}, false, "given", false},
		"Other CA":    {"and rejects what the configuration accepts", peer.Files{CA: other}, true, "", false},
		"Certificate": {"a certificate is sent instead", peer.Files{Certificate: certificate, Key: key}, true, "client", true},
	} {
		verified := false
		p, err := peer.New(peer.Config{Name: "test", Files: tc.files, TLS: &tls.Config{
			InsecureSkipVerify:   true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil },
			VerifyConnection: func(tls.ConnectionState) error {
				if verified = true; !tc.accepts {
					return errors.New("not a peer")
				}
				return nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		transport := p.Transport()
		sees, err := get(t, transport, s.URL)
		transport.CloseIdleConnections()
		if (err != nil) != (tc.sees == "") || sees != tc.sees || verified != tc.verified {
			t.Errorf("%s: %s: the server sees %q, verified %t: %v", name, tc.reason, sees, verified, err)
		}
	}
}

// TestLogin reads the user and the password from one file.
func TestLogin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "login")
	if err := os.WriteFile(file, []byte("u:p"), 0o600); err != nil {
		t.Fatal(err)
	}
	parse := func(content []byte) (string, nf.Secret, error) {
		user, password, ok := strings.Cut(string(content), ":")
		if !ok {
			return "", nil, errors.New("it has no colon")
		}
		return user, nf.Secret(password), nil
	}
	p, err := peer.New(peer.Config{Name: "test", Files: peer.Files{Login: file}, ParseLogin: parse})
	if err != nil {
		t.Fatal(err)
	}
	if user, password := p.Credentials(t.Context()); user != "u" || string(password) != "p" || p.Roots(t.Context()) != nil {
		t.Errorf("got %q and %q", user, string(password))
	}
	if err := os.WriteFile(file, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.New(peer.Config{Name: "test", Files: peer.Files{Login: file}, ParseLogin: parse}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a login that cannot be read: %v", err)
	}
}

// TestWrong rejects files that cannot be used.
func TestWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		files  peer.Files
		kind   nf.Kind
	}{
		"no key":       {"a certificate alone is useless", peer.Files{Certificate: file}, nf.Invalid},
		"no PEM":       {"a CA must be one", peer.Files{CA: file}, nf.Invalid},
		"no pair":      {"a certificate must be one", peer.Files{Certificate: file, Key: file}, nf.Invalid},
		"missing file": {"a wrong path is found at the start", peer.Files{Password: file + "x"}, nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := peer.New(peer.Config{Name: "test", Files: tc.files}); err == nil || nf.KindOf(err) != tc.kind {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	if p, err := peer.New(peer.Config{Name: "test"}); err != nil {
		t.Errorf("a peer may need no credentials: %v", err)
	} else if user, password := p.Credentials(t.Context()); user != "" || len(password) != 0 {
		t.Error("there are none")
	}
}
