package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/istio"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

// testMesh is a simulated istiod.
type testMesh struct {
	istiod  *istiod.Simulator
	address string
	dir     string
}

// named reviews tokens that are the name of a service account in the namespace onap.
func named(_ context.Context, token string, audiences []string) (istiod.Review, error) {
	return istiod.Review{Authenticated: true, User: "system:serviceaccount:onap:" + token, Audiences: audiences}, nil
}

func startMesh(t *testing.T, review func(context.Context, string, []string) (istiod.Review, error)) testMesh {
	t.Helper()
	simulator, err := istiod.New(istiod.Config{Hosts: []string{"127.0.0.1"}, Review: review})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- simulator.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	m := testMesh{simulator, listener.Addr().String(), t.TempDir()}
	m.write(t, "root", simulator.Roots())
	return m
}

// write returns the path of a file with a content.
func (m testMesh) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// enrol returns an identity that requests its certificate with a token, until the test ends.
func (m testMesh) enrol(t *testing.T, name, token string) *istio.Identity {
	t.Helper()
	peer, err := istio.New(istio.Config{
		Address: m.address, TokenFile: m.write(t, name, token), RootFile: filepath.Join(m.dir, "root"), Peers: []string{"spiffe://cluster.local/ns/onap/sa/k8splugin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return peer
}

// client returns an HTTP client with the certificate of a service account.
func (m testMesh) client(t *testing.T, account string) *http.Client {
	t.Helper()
	peer := m.enrol(t, account, account)
	until(t, "the mesh has issued what is needed", func() bool { return peer.Status().ID != "" })
	transport := &http.Transport{TLSClientConfig: peer.ClientConfig(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestMesh starts a service with a certificate from istiod, whose peers are
// limited, and whose access rules identify them.
func TestMesh(t *testing.T) {
	t.Parallel()
	m := startMesh(t, named)
	rules := m.write(t, "access.yaml", `
certificates:
- {uri: "spiffe://cluster.local/ns/onap/sa/so", name: so, groups: [onap]}
grants:
- {subjects: ["group:onap"], role: viewer, projects: ["*"], regions: ["*"]}
`)
	s := startBareService(t, func(c *Config) {
		c.AccessFile = rules
		c.Istio = istioConfig{
			CA: m.address, TokenFile: m.write(t, "token", "k8splugin"), RootFile: filepath.Join(m.dir, "root"),
			Peers: "spiffe://cluster.local/ns/onap/sa/so, spiffe://cluster.local/ns/onap/sa/sdc",
		}
	})
	until(t, "the mesh has issued what is needed", func() bool { return s.parts.mesh.Status().ID == "spiffe://cluster.local/ns/onap/sa/k8splugin" })
	for name, tc := range map[string]struct {
		reason, account string
		status          int // 0: the handshake fails
	}{
		"Known":   {"a peer of the list is the identity of the access rules", "so", http.StatusOK},
		"Unknown": {"a peer of the list that the rules do not name has no identity", "sdc", http.StatusUnauthorized},
		"Other":   {"a workload that is not in the list is rejected before any request", "evil", 0},
	} {
		status, body, err := fetch(t, m.client(t, tc.account), s, "/v1/vnf_instances")
		if (err != nil) != (tc.status == 0) || status != tc.status {
			t.Errorf("%s: %s: %d, %v\n%s", name, tc.reason, status, err, body)
		}
	}
	_, metrics, err := fetch(t, m.client(t, "so"), s, "/metrics")
	for _, name := range []string{"k8splugin_istio_certificate_expiry_timestamp_seconds", "k8splugin_istio_certificate_obtained_timestamp_seconds", "k8splugin_istio_certificate_failures_total 0"} {
		if err != nil || !strings.Contains(metrics, "\n"+name) {
			t.Errorf("the metrics do not have %s: %v", name, err)
		}
	}
	for account, want := range map[string]string{"so": "spiffe://cluster.local/ns/onap/sa/k8splugin", "evil": ""} {
		if sees, err := m.call(t, account, s.parts.clientTLS()); sees != want || (err == nil) != (want != "") {
			t.Errorf("an ONAP service with the account %s sees %q: %v", account, sees, err)
		}
	}
	if strings.Contains(metrics, "\nk8splugin_tls_certificate_expiry") {
		t.Error("a certificate of a day would alert as one of the files that expires within a week")
	}
}

// call has a client of ONAP's services connect to one with the certificate of an account,
// and returns the client's SPIFFE id.
func (m testMesh) call(t *testing.T, account string, config *tls.Config) (sees string, err error) {
	t.Helper()
	identity := m.enrol(t, account+"-server", account)
	until(t, "the mesh has issued what is needed", func() bool { return identity.Status().ID != "" })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sees = r.TLS.VerifiedChains[0][0].URIs[0].String()
	}))
	server.TLS = identity.ServerConfig()
	server.StartTLS()
	defer server.Close()
	client, err := peer.New(peer.Config{Name: account, TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := client.Transport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	return sees, resp.Body.Close()
}

// fetch requests a path over TLS, by one connection.
func fetch(t *testing.T, client *http.Client, s *testService, path string) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(s.url, "http:", "https:", 1)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(content), err
}

func TestMeshSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		c      istioConfig
		want   string // in the error; empty: none
	}{
		"Off":     {"nothing is required without an address", istioConfig{Peers: "x"}, ""},
		"On":      {"an address and peers are enough with the defaults", istioConfig{CA: "istiod:15012", TokenFile: "t", RootFile: "r", Peers: "spiffe://a/"}, ""},
		"Address": {"an address has a port", istioConfig{CA: "istiod", TokenFile: "t", RootFile: "r", Peers: "spiffe://a/"}, "must be host:port"},
		"Peers":   {"the operator says which peers are allowed", istioConfig{CA: "istiod:15012", TokenFile: "t", RootFile: "r"}, "the list of peers is empty"},
	} {
		err := tc.c.validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	off := &service{}
	if err := off.keepCertificate(t.Context()); err != nil || off.listenerTLS() != nil || off.clientTLS() != nil || meshSource(nil) != nil {
		t.Errorf("without --istio-ca, there must be no TLS and no metric: %v", err)
	}
}
