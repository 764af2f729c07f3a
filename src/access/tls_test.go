package access_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	template := x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	certificate, key := issue(t, template, authority{})
	return authority{certificate, key}
}

func (a authority) pem() string { return inPEM("CERTIFICATE", a.certificate.Raw) }

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue creates a certificate that is valid at the time of the tests' clock, and
// today.
func issue(t *testing.T, template x509.Certificate, by authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if by.key == nil {
		by = authority{&template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.certificate, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// pair returns a certificate and its key in PEM.
func (a authority) pair(t *testing.T, template x509.Certificate) (certificate, key string) {
	t.Helper()
	c, k := issue(t, template, a)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM("CERTIFICATE", c.Raw), inPEM("EC PRIVATE KEY", der)
}

func server(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

// listen serves with a certificate from a folder, and reports its clients.
func listen(t *testing.T, config *tls.Config, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// dial makes one request on a separate connection. The client trusts one
// authority, and offers the certificates.
func dial(t *testing.T, s *httptest.Server, trusts authority, offers ...tls.Certificate) (answered, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusts.certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: offers}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return answered{}, err
	}
	defer answer.Body.Close()
	return answered{answer.TLS.PeerCertificates[0].Subject.CommonName, answer.Proto}, nil
}

// answered is the name of the server that answered, and the protocol.
type answered struct{ server, proto string }

func TestTLSRotates(t *testing.T) {
	t.Parallel()
	ca, c, log := newAuthority(t, "ca"), newClock(), &bytes.Buffer{}
	first, firstKey := ca.pair(t, server("first"))
	second, secondKey := ca.pair(t, server("second"))
	dir := folder(t, map[string]string{"tls.crt": first, "tls.key": firstKey})
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	listener, err := access.NewTLS(access.TLSConfig{Certificate: crt, Key: key, Clock: c.Now, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s := listen(t, listener.Config(), func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	steps := []struct {
		reason string
		change func()
		pass   time.Duration
		serves string
		broken int64
	}{
		{"the certificate is read at the start", func() {}, 0, "first", 0},
		{"a new certificate without its key is not used", func() { write(t, crt, second) }, time.Second, "first", 1},
		{"a new pair is not used within a second", func() { write(t, key, secondKey) }, time.Second - 1, "first", 1},
		{"a new pair is used after a second", func() {}, 1, "second", 1},
		{"an invalid key leaves the previous pair active", func() { write(t, key, "x") }, time.Second, "second", 2},
	}
	for _, step := range steps {
		step.change()
		c.pass(step.pass)
		answer, err := dial(t, s, ca)
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if answer != (answered{step.serves, "HTTP/2.0"}) || listener.Broken() != step.broken {
			t.Errorf("%s: %s is served over %s, %d broken", step.reason, answer.server, answer.proto, listener.Broken())
		}
	}
	if want := time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC); !listener.Expires(t.Context()).Equal(want) {
		t.Errorf("it expires at %s, want %s", listener.Expires(t.Context()), want)
	}
	if strings.Contains(log.String(), "PRIVATE") || strings.Count(log.String(), "previous version stays active") != 2 {
		t.Errorf("the log is\n%s", log)
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}
	if conn, err := (&tls.Dialer{Config: old}).DialContext(t.Context(), "tcp", s.Listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	crt, key := ca.pair(t, server("x"))
	_, other := ca.pair(t, server("x"))
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
	}{
		"NoKey":    {"the key is missing", map[string]string{"tls.crt": crt, "ca.crt": ca.pem()}},
		"OtherKey": {"the key does not belong to the certificate", map[string]string{"tls.crt": crt, "tls.key": other, "ca.crt": ca.pem()}},
		"NoCA":     {"the client CA is not a certificate", map[string]string{"tls.crt": crt, "tls.key": key, "ca.crt": key}},
		"Missing":  {"the client CA is missing", map[string]string{"tls.crt": crt, "tls.key": key}},
	} {
		dir := folder(t, tc.files)
		_, err := access.NewTLS(access.TLSConfig{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt")})
		if err == nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	if _, err := access.NewTLS(access.TLSConfig{Certificate: "x"}); err == nil {
		t.Error("a listener without a key was created")
	}
}

// TestCertificates authenticates identities by certificates, over real connections.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, newer, c := newAuthority(t, "ca"), newAuthority(t, "newer"), newClock()
	crt, key := ca.pair(t, server("server"))
	dir := folder(t, map[string]string{"tls.crt": crt, "tls.key": key, "ca.crt": ca.pem()})
	listener, err := access.NewTLS(access.TLSConfig{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"), Clock: c.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := access.NewAuthenticator(rulesOf(t, c, `
certificates:
- {uri: "spiffe://onap.example/ns/*/sa/so", name: so, groups: [onap]}
- {uri: "spiffe://onap.example/ns/*/sa/*", groups: [mesh]}
- {dns: "*.ops.example", groups: [ops]}
- {common_name: "robot *"}
tokens: [{name: so, sha256: `+tokenSum("stranger")+`}]
`, nil))
	var got nf.Identity
	var failed error
	s := listen(t, listener.Config(), func(_ http.ResponseWriter, r *http.Request) { got, failed = a.Authenticate(r) })
	uri := func(texts ...string) x509.Certificate {
		var out x509.Certificate
		for _, text := range texts {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			out.URIs = append(out.URIs, u)
		}
		return out
	}
	offer := func(by authority, template x509.Certificate) tls.Certificate {
		crt, key := by.pair(t, template)
		out, err := tls.X509KeyPair([]byte(crt), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cases := map[string]struct {
		reason   string
		template x509.Certificate
		want     nf.Identity // zero: the certificate does not authenticate
	}{
		"Named":     {"the first matching pattern gives the name", uri("spiffe://onap.example/ns/prod/sa/so"), nf.Identity{Kind: "certificate", Name: "so", Groups: []string{"onap"}}},
		"SPIFFE":    {"a pattern without a name uses the matched name", uri("spiffe://onap.example/ns/prod/sa/dcae"), nf.Identity{Kind: "certificate", Name: "spiffe://onap.example/ns/prod/sa/dcae", Groups: []string{"mesh"}}},
		"Domain":    {"another trust domain does not match", uri("spiffe://evil.example/ns/prod/sa/so"), nf.Identity{}},
		"Deeper":    {"a star matches one part of a path", uri("spiffe://onap.example/ns/prod/x/sa/so"), nf.Identity{}},
		"Encoded":   {"an encoded slash does not add a part", uri("spiffe://onap.example/ns/prod%2Fx/sa/so"), nf.Identity{}},
		"Prefix":    {"a pattern matches the whole URI", uri("spiffe://onap.example/ns/prod/sa/so/extra"), nf.Identity{}},
		"TwoURIs":   {"a certificate with two URIs is not matched by URI", uri("spiffe://evil.example/x", "spiffe://onap.example/ns/prod/sa/so"), nf.Identity{}},
		"TwoURIs2":  {"the order of two URIs does not matter", uri("spiffe://onap.example/ns/prod/sa/so", "spiffe://evil.example/x"), nf.Identity{}},
		"DNS":       {"a DNS name identifies a client", x509.Certificate{DNSNames: []string{"elsewhere.example", "Bastion.OPS.example"}}, nf.Identity{Kind: "certificate", Name: "bastion.ops.example", Groups: []string{"ops"}}},
		"DNSDeeper": {"a star matches one label", x509.Certificate{DNSNames: []string{"a.b.ops.example"}}, nf.Identity{}},
		"CN":        {"a common name identifies a client", x509.Certificate{Subject: pkix.Name{CommonName: "robot 7"}}, nf.Identity{Kind: "certificate", Name: "robot 7"}},
		"OddCN":     {"a common name with control characters is rejected", x509.Certificate{Subject: pkix.Name{CommonName: "robot \n"}}, nf.Identity{}},
		"NoName":    {"a certificate without a name does not identify a client", x509.Certificate{}, nf.Identity{}},
	}
	for name, tc := range cases {
		got, failed = nf.Identity{}, nil
		if _, err := dial(t, s, ca, offer(ca, tc.template)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (tc.want.Name == "") != (nf.KindOf(failed) == nf.Unauthenticated) {
			t.Errorf("%s: %s: %v (-want +got)\n%s", name, tc.reason, failed, diff)
		}
	}
	so := uri("spiffe://onap.example/ns/prod/sa/so")
	stranger := offer(newer, so)
	if _, err := dial(t, s, ca, stranger); err == nil && failed == nil {
		t.Error("a certificate of an untrusted authority authenticates")
	}
	if _, err := dial(t, s, ca); err != nil || nf.KindOf(failed) != nf.Unauthenticated {
		t.Errorf("a connection without a certificate must be accepted, and not authenticate: %v, %v", err, failed)
	}
	write(t, filepath.Join(dir, "ca.crt"), newer.pem())
	c.pass(time.Second)
	if _, err := dial(t, s, ca, stranger); err != nil || got.Name != "so" {
		t.Errorf("an authority that was added: %+v, %v, %v", got, failed, err)
	}
	got = nf.Identity{}
	if _, err := dial(t, s, ca, offer(ca, so)); err == nil && got.Name != "" {
		t.Errorf("a withdrawn authority authenticates %+v", got)
	}
	testPrecedence(t, a, c)
	sessions := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for range 2 {
		conn, err := tls.Dial("tcp", s.Listener.Addr().String(), sessions)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // a session ticket would arrive with the answer
		if conn.ConnectionState().DidResume {
			t.Error("a session is resumed, and its certificate is not verified again")
		}
		_ = conn.Close()
	}
}

// testPrecedence checks the precedence of the credentials if a request has several.
func testPrecedence(t *testing.T, a *access.Authenticator, c *clock) {
	t.Helper()
	ca := newAuthority(t, "ca")
	so, err := url.Parse("spiffe://onap.example/ns/prod/sa/so")
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := issue(t, x509.Certificate{URIs: []*url.URL{so}, NotAfter: c.now.Add(time.Hour)}, ca)
	r := request(t, "Bearer k8spt_wrong")
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf, ca.certificate}}}
	if _, err := a.Authenticate(r); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("a wrong token with a valid certificate: %v", err)
	}
	r.Header.Del("Authorization")
	if id, err := a.Authenticate(r); err != nil || id.Name != "so" {
		t.Errorf("the certificate alone: %+v, %v", id, err)
	}
	c.pass(2 * time.Hour)
	if _, err := a.Authenticate(r); nf.KindOf(err) != nf.Unauthenticated || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a certificate that has expired since its connection began: %v", err)
	}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}} // not verified
	if _, err := a.Authenticate(r.WithContext(context.WithoutCancel(t.Context()))); nf.KindOf(err) != nf.Unauthenticated {
		t.Errorf("a certificate that was not verified: %v", err)
	}
}
