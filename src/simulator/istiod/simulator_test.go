package istiod_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"
	"istio.io/api/security/v1alpha1"

	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

const id = "spiffe://cluster.local/ns/onap/sa/k8splugin"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// review accepts the token "live" of a service account, and "user" of another user.
func review(_ context.Context, token string, audiences []string) (istiod.Review, error) {
	switch token {
	case "live":
		return istiod.Review{Authenticated: true, User: "system:serviceaccount:onap:k8splugin", Audiences: audiences}, nil
	case "user":
		return istiod.Review{Authenticated: true, User: "admin", Audiences: audiences}, nil
	case "api":
		return istiod.Review{Authenticated: true, User: "system:serviceaccount:onap:k8splugin"}, nil
	case "error":
		return istiod.Review{}, errors.New("the API server does not respond")
	}
	return istiod.Review{}, nil
}

// client returns a simulator, and a client that trusts its present roots.
func client(t *testing.T, cfg istiod.Config) (*istiod.Simulator, v1alpha1.IstioCertificateServiceClient) {
	t.Helper()
	cfg.Review, cfg.Clock = review, func() time.Time { return start }
	s, err := istiod.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.Roots()))
	conn, err := grpc.NewClient("passthrough:///"+istiod.Host+":15012",
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, Time: func() time.Time { return start }})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := errors.Join(conn.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return s, v1alpha1.NewIstioCertificateServiceClient(conn)
}

func keyOf(t *testing.T, key crypto.Signer, err error) crypto.Signer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func p256(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return keyOf(t, key, err)
}

func csrOf(t *testing.T, key crypto.Signer, template x509.CertificateRequest) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// parsed returns the certificates of a text.
func parsed(t *testing.T, text string) []*x509.Certificate {
	t.Helper()
	var out []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	evil, err := url.Parse("spiffe://cluster.local/ns/kube-system/sa/admin")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		cfg    istiod.Config
		csr    x509.CertificateRequest
		asks   time.Duration
		lives  time.Duration
		cn     string
		chain  int
	}{
		"Default":      {"a request without a lifetime gets the server's", istiod.Config{}, x509.CertificateRequest{}, 0, 24 * time.Hour, "", 2},
		"Negative":     {"and so does one with a negative lifetime", istiod.Config{}, x509.CertificateRequest{}, -time.Hour, 24 * time.Hour, "", 2},
		"Asked":        {"a lifetime up to the maximum is granted", istiod.Config{MaxLifetime: time.Hour}, x509.CertificateRequest{}, time.Hour, time.Hour, "", 2},
		"End":          {"no certificate outlives its authority", istiod.Config{MaxLifetime: 1 << 62}, x509.CertificateRequest{}, 20 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, "", 2},
		"SAN":          {"the names are those of the token", istiod.Config{}, x509.CertificateRequest{URIs: []*url.URL{evil}, DNSNames: []string{"evil"}}, 0, 24 * time.Hour, "", 2},
		"CN":           {"a CSR with a common name gets the SPIFFE id as one", istiod.Config{}, x509.CertificateRequest{Subject: pkix.Name{CommonName: "evil"}}, 0, 24 * time.Hour, id, 2},
		"Intermediate": {"the intermediate authority is before the roots", istiod.Config{Intermediate: true}, x509.CertificateRequest{}, 0, 24 * time.Hour, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := client(t, tc.cfg)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer live")
			r, err := c.CreateCertificate(ctx, &v1alpha1.IstioCertificateRequest{Csr: csrOf(t, p256(t), tc.csr), ValidityDuration: int64(tc.asks / time.Second)})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			chain := r.GetCertChain()
			if len(chain) != tc.chain || chain[len(chain)-1] != s.Roots() {
				t.Fatalf("%s: the chain has %d elements, the last is not the roots", tc.reason, len(chain))
			}
			leaf := parsed(t, chain[0])[0]
			roots, between := x509.NewCertPool(), x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(s.Roots()))
			between.AppendCertsFromPEM([]byte(strings.Join(chain[1:len(chain)-1], "")))
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if len(leaf.URIs) != 1 || leaf.URIs[0].String() != id || len(leaf.DNSNames) > 0 || leaf.Subject.CommonName != tc.cn || !leaf.NotAfter.Equal(start.Add(tc.lives)) {
				t.Errorf("%s: the certificate is for %v, %v, %q until %s", tc.reason, leaf.URIs, leaf.DNSNames, leaf.Subject.CommonName, leaf.NotAfter)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	s, c := client(t, istiod.Config{Clusters: []string{"c1"}})
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	weak := csrOf(t, keyOf(t, small, err), x509.CertificateRequest{})
	_, other, err := ed25519.GenerateKey(rand.Reader)
	odd := csrOf(t, keyOf(t, other, err), x509.CertificateRequest{})
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	large := csrOf(t, keyOf(t, p521, err), x509.CertificateRequest{})
	good := csrOf(t, p256(t), x509.CertificateRequest{})
	block, _ := pem.Decode([]byte(good))
	block.Bytes[len(block.Bytes)-1] ^= 1
	forged := string(pem.EncodeToMemory(block))
	impersonates, err := structpb.NewStruct(map[string]any{"ImpersonatedIdentity": id})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason   string
		header   []string
		csr      string
		lifetime int64
		metadata *structpb.Struct
		want     codes.Code
	}{
		"Good":        {"a sound request is answered", []string{"authorization", "Bearer live", "clusterid", "c1"}, good, 0, nil, codes.OK},
		"NoToken":     {"a request has a token", []string{"clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Basic":       {"a token is a bearer's", []string{"authorization", "Basic live", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Blank":       {"a token has no blanks around it", []string{"authorization", "Bearer live ", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Two":         {"a request has one token", []string{"authorization", "Bearer live", "authorization", "Bearer live", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Dead":        {"the account is alive", []string{"authorization", "Bearer dead", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Audience":    {"a token is for istio-ca", []string{"authorization", "Bearer api", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"User":        {"a token is that of a service account", []string{"authorization", "Bearer user", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Review":      {"a token that cannot be reviewed is not accepted", []string{"authorization", "Bearer error", "clusterid", "c1"}, good, 0, nil, codes.Unauthenticated},
		"Cluster":     {"a cluster is known", []string{"authorization", "Bearer live", "clusterid", "c2"}, good, 0, nil, codes.Unauthenticated},
		"NoCluster":   {"with several clusters, a request names its own", []string{"authorization", "Bearer live"}, good, 0, nil, codes.Unauthenticated},
		"Impersonate": {"only proxies of a node impersonate", []string{"authorization", "Bearer live", "clusterid", "c1"}, good, 0, impersonates, codes.Unauthenticated},
		"Garbage":     {"a CSR is PEM", []string{"authorization", "Bearer live", "clusterid", "c1"}, "x", 0, nil, codes.InvalidArgument},
		"Trailing":    {"a CSR is one block", []string{"authorization", "Bearer live", "clusterid", "c1"}, good + good, 0, nil, codes.InvalidArgument},
		"Forged":      {"a CSR is signed by its key", []string{"authorization", "Bearer live", "clusterid", "c1"}, forged, 0, nil, codes.InvalidArgument},
		"RSA":         {"an RSA key has 2048 bits", []string{"authorization", "Bearer live", "clusterid", "c1"}, weak, 0, nil, codes.InvalidArgument},
		"Ed25519":     {"a key is RSA or ECDSA", []string{"authorization", "Bearer live", "clusterid", "c1"}, odd, 0, nil, codes.InvalidArgument},
		"P521":        {"a curve is P-256 or P-384", []string{"authorization", "Bearer live", "clusterid", "c1"}, large, 0, nil, codes.InvalidArgument},
		"Lifetime":    {"a lifetime above the maximum is refused", []string{"authorization", "Bearer live", "clusterid", "c1"}, good, 90*86400 + 1, nil, codes.InvalidArgument},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), tc.header...)
		_, err := c.CreateCertificate(ctx, &v1alpha1.IstioCertificateRequest{Csr: tc.csr, ValidityDuration: tc.lifetime, Metadata: tc.metadata})
		if status.Code(err) != tc.want {
			t.Errorf("%s: %s: %v, want %s", name, tc.reason, err, tc.want)
		}
		journal := s.Journal()
		if len(journal) != 1 || journal[0].Code != tc.want || (tc.want == codes.OK) != (journal[0].CSR != nil && journal[0].Identity == id && tc.lifetime == 0 && tc.metadata == nil) {
			t.Errorf("%s: %s: the journal is %+v", name, tc.reason, journal)
		}
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	s, c := client(t, istiod.Config{})
	before := s.Roots()
	s.Unavailable(2)
	s.Script(istiod.Fault{Before: func() {
		if err := s.Rotate(); err != nil {
			t.Error(err)
		}
	}}, istiod.Fault{Edit: func(chain []string) []string { return chain[:1] }}, istiod.Fault{Times: -1, Code: codes.Internal})
	var got []any
	for i := range 6 {
		if i == 5 {
			s.Repair()
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer live")
		r, err := c.CreateCertificate(ctx, &v1alpha1.IstioCertificateRequest{Csr: csrOf(t, p256(t), x509.CertificateRequest{})})
		got = append(got, status.Code(err), len(r.GetCertChain()))
	}
	want := []any{codes.Unavailable, 0, codes.Unavailable, 0, codes.OK, 2, codes.OK, 1, codes.Internal, 0, codes.OK, 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	both := s.Roots()
	if len(parsed(t, both)) != 2 || !strings.HasSuffix(both, before) {
		t.Error("after the rotation, the bundle must have the new and the old root")
	}
	s.Retire()
	if now := s.Roots(); now+before != both {
		t.Error("a retired root remains")
	}
	if _, err := istiod.New(istiod.Config{}); err == nil {
		t.Error("a simulator without a TokenReview is created")
	}
}
