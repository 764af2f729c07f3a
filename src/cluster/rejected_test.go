package cluster

import (
	"crypto/tls"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// TestRejected tells of each request whose credentials are not accepted, and of no other.
func TestRejected(t *testing.T) {
	sandbox := accessTo(t, clustertest.Kubeconfig(t))
	trusting := `server: "` + sandbox.Server + `", certificate-authority-data: ` + base64.StdEncoding.EncodeToString(sandbox.CA)
	cert, key := certificates(t, time.Now().Add(-time.Minute))
	expired := "client-certificate-data: " + cert + ", client-key-data: " + key
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.StartTLS()
	defer front.Close()
	for name, tc := range map[string]struct {
		reason   string
		access   nf.Access
		rejected bool
	}{
		"Accepted":    {"the credentials are good", sandbox, false},
		"Forbidden":   {"an anonymous user is known, and may do nothing", accessTo(t, []byte(testConfig(trusting, ""))), false},
		"Token":       {"the API server does not know the token", accessTo(t, []byte(testConfig(trusting, "token: wrong"))), true},
		"Certificate": {"the client certificate has expired", accessTo(t, []byte(testConfig(trusting, expired))), true},
		"Proxy":       {"a proxy before the API server does not accept the certificate", accessTo(t, []byte(testConfig(trusted(front), expired))), true},
		"Closed":      {"no server answers: that says nothing of credentials", accessTo(t, []byte(testConfig(`server: "https://`+closedPort(t)+`"`, "token: t"))), false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []nf.Access
			pool := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Rejected: func(region string, access nf.Access) {
				if region != "east" {
					t.Errorf("%s: it was region %q", tc.reason, region)
				}
				got = append(got, access)
			}})
			c, err := pool.Open("east", tc.access)
			if err != nil {
				t.Fatal(err)
			}
			err = c.tryOnce(t.Context())
			first := len(got)
			if first > 0 != tc.rejected || first > 0 && !got[0].Equal(tc.access) {
				t.Errorf("%s: %d rejections; the request: %v", tc.reason, first, err)
			}
			if _, err := pool.Probe(t.Context(), tc.access); len(got) != first {
				t.Errorf("a server that is no region was taken for one: %v", err)
			}
			pool.Forget("east")
		})
	}
}
