// Package bare talks to the sandbox's API server with nothing between: net/http,
// one HTTP/2 connection, no limiter, no cache and no retry. What measures or
// checks the service looks with it, and so with other eyes than the service's.
//
// It reads the sandbox's kubeconfig and no other, and knows no object.
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
	URL        string // without a slash at its end
	Kubeconfig string // the text of the file
	token      string
	transport  http.RoundTripper
}

// Open reads the sandbox's kubeconfig from a file. Nothing is connected yet.
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

// RoundTrip implements http.RoundTripper: it sends a request with the sandbox's
// token.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+s.token)
	return s.transport.RoundTrip(req)
}
