// Package bare is a minimal client of the sandbox's API server: net/http over
// one HTTP/2 connection. Programs that measure or check the service use it to
// be independent of the service's client.
//
// It has no limiter, cache or retries, reads only the sandbox's kubeconfig, and
// knows no Kubernetes types.
package bare

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"sigs.k8s.io/yaml"
)

// Server is the API server.
type Server struct {
	URL        string // without a trailing slash
	Kubeconfig string // content of the file
	token      string
	transport  http.RoundTripper
}

// Open reads the sandbox's kubeconfig from a file. It does not connect.
func Open(kubeconfig string) (*Server, error) {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, errors.New("cannot use the kubeconfig: it is not the sandbox's")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	return &Server{
		URL: config.Clusters[0].Cluster.Server, Kubeconfig: string(content), token: config.Users[0].User.Token,
		transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableCompression: true},
	}, nil
}

// RoundTrip implements http.RoundTripper. It adds the sandbox's token to the
// request.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+s.token)
	return s.transport.RoundTrip(req)
}
