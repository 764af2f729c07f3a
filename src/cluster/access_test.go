package cluster

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCredentialsArrive holds what an API server sees of each credential. The
// server is a stand-in: the sandbox's takes no passwords.
func TestCredentialsArrive(t *testing.T) {
	type arrival struct {
		Authorization string
		Certificates  int
	}
	seen := make(chan arrival, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- arrival{r.Header.Get("Authorization"), len(r.TLS.PeerCertificates)}
		_, _ = w.Write([]byte(`{"gitVersion":"v1.37.1"}`))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cert, key := certificates(t, time.Now().Add(time.Hour))
	plain := func(text string) []byte {
		out, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cases := map[string]struct {
		reason string
		access nf.Access
		want   arrival
	}{
		"Token":       {"a token is a bearer's", nf.Access{CA: ca, Token: nf.Secret("t")}, arrival{"Bearer t", 0}},
		"Basic":       {"user and password are sent as HTTP has them", nf.Access{CA: ca, Username: "u", Password: nf.Secret("p")}, arrival{"Basic dTpw", 0}},
		"Certificate": {"a certificate is shown in the handshake", nf.Access{CA: ca, Certificate: plain(cert), Key: plain(key)}, arrival{"", 1}},
		"Insecure":    {"a server need not be known", nf.Access{Insecure: true, Token: nf.Secret("t")}, arrival{"Bearer t", 0}},
		"ServerName":  {"its certificate may have another name", nf.Access{CA: ca, ServerName: "example.com", Token: nf.Secret("t")}, arrival{"Bearer t", 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.access.Server = server.URL
			c, err := local(t).Open("east", tc.access)
			if err != nil {
				t.Fatal(err)
			}
			defer c.transport.CloseIdleConnections()
			if err := c.tryOnce(t.Context()); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			diff(t, tc.reason, tc.want, <-seen)
		})
	}
}

// TestAccessToSandbox probes a real API server by an access that no kubeconfig
// gave.
func TestAccessToSandbox(t *testing.T) {
	full := accessTo(t, clustertest.Kubeconfig(t))
	cases := map[string]struct {
		reason string
		access nf.Access
		want   string // reason of the failure; empty: none
	}{
		"CA":          {"the CA that the access names", nf.Access{Server: full.Server, CA: full.CA, Token: full.Token}, ""},
		"Insecure":    {"no verification", nf.Access{Server: full.Server, Insecure: true, Token: full.Token}, ""},
		"SystemRoots": {"no CA of this system has signed it", nf.Access{Server: full.Server, Token: full.Token}, "tls"},
		"Token":       {"a token that was never issued", nf.Access{Server: full.Server, CA: full.CA, Token: nf.Secret("t")}, "unauthorized"},
		"Basic":       {"Kubernetes ignores passwords, so the user is anonymous", nf.Access{Server: full.Server, CA: full.CA, Username: "u", Password: nf.Secret("p")}, "forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := local(t).Probe(t.Context(), tc.access)
			if nf.ReasonOf(err) != tc.want || err == nil && got.Server != full.Server {
				t.Errorf("%s: %+v, %v, want reason %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
