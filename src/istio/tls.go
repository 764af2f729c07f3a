package istio

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// ServerConfig returns the configuration of a listener. A client may come without
// a certificate; if it sends one, it must be that of an allowed peer. A handshake
// fails while there is no valid certificate.
func (i *Identity) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := i.valid()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion:     tls.VersionTLS12,
				NextProtos:     []string{"h2", "http/1.1"},
				GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.pair, nil },
				ClientAuth:     tls.VerifyClientCertIfGiven,
				ClientCAs:      c.roots,
				// A resumed session would outlive its root.
				SessionTicketsDisabled: true,
				VerifyConnection: func(s tls.ConnectionState) error {
					if len(s.PeerCertificates) == 0 {
						return nil
					}
					return i.peers.check(s.PeerCertificates[0], c.domain)
				},
			}, nil
		},
	}
}

// ClientConfig returns the configuration of connections to services of the mesh,
// or of its gateways. The server must be an allowed peer; its host name does
// not matter. The caller may change the configuration.
func (i *Identity) ClientConfig() *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		InsecureSkipVerify:   true, //nolint:gosec // VerifyConnection verifies the chain and the SPIFFE id; Istio's certificates have no host name
		VerifyConnection:     i.verifyServer,
		GetClientCertificate: i.clientCertificate,
	}
}

func (i *Identity) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c, err := i.valid()
	if err != nil {
		return nil, err
	}
	return &c.pair, nil
}

func (i *Identity) verifyServer(s tls.ConnectionState) error {
	c, err := i.valid()
	if err != nil {
		return err
	}
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	leaf := s.PeerCertificates[0]
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: poolOf(s.PeerCertificates[1:]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("the server's certificate does not lead to a root of the mesh: %w", err)
	}
	return i.peers.check(leaf, c.domain)
}
