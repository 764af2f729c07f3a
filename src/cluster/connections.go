package cluster

import (
	"net/http"
	"sync/atomic"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// connections sends requests by a transport that can be replaced. It is safe for
// concurrent use.
type connections struct {
	current atomic.Pointer[http.Transport]
}

// RoundTrip implements http.RoundTripper.
func (cs *connections) RoundTrip(req *http.Request) (*http.Response, error) {
	return cs.current.Load().RoundTrip(req)
}

// CloseIdleConnections closes the connections without requests.
func (cs *connections) CloseIdleConnections() { cs.current.Load().CloseIdleConnections() }

// replace makes later requests use another transport. Requests in progress and
// watches finish; then their connections end.
func (cs *connections) replace(with *http.Transport) {
	if former := cs.current.Swap(with); former != nil {
		former.CloseIdleConnections()
	}
}

// present makes later requests use another client certificate. An API server takes
// the user from the certificate of a connection, so it needs new connections.
func (bt *breakerTransport) present(c nf.IssuedCertificate) error {
	cfg, err := configure(withCertificate(bt.access, c))
	if err != nil {
		return err
	}
	with, err := bt.transportOf(cfg)
	if err == nil {
		bt.transport.replace(with)
	}
	return err
}

// withCertificate returns an access with another client certificate, which is not
// renewed.
func withCertificate(access nf.Access, c nf.IssuedCertificate) nf.Access {
	access.Certificate, access.Key, access.Rotation, access.CertificateRenewal = c.Certificate, c.Key, nil, nil
	return access
}
