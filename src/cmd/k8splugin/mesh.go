package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/istio"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// istioConfig holds the settings of the certificate from istiod.
type istioConfig struct {
	CA        string // empty: none
	TokenFile string
	RootFile  string
	Cluster   string
	Peers     string
}

// flags defines the flags of the settings.
func (c *istioConfig) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.CA, "istio-ca", "", "host:port of istiod, to request the service's certificate from; if empty, none is requested")
	flags.StringVar(&c.TokenFile, "istio-token-file", "/var/run/secrets/tokens/istio-token", "token of the service account, for the audience istio-ca; read again for each request")
	flags.StringVar(&c.RootFile, "istio-root-file", "/var/run/secrets/istio/root-cert.pem", "PEM file with the roots of the mesh; when it changes, the certificate is renewed")
	flags.StringVar(&c.Cluster, "istio-cluster", "", "id of the cluster that issued the token, in a mesh of several clusters")
	flags.StringVar(&c.Peers, "istio-peers", "", "comma-separated SPIFFE ids that connections with the certificate are limited to; an entry that ends in a slash allows all ids below it")
}

// identity returns the service's identity in the mesh, without a certificate yet;
// nil without --istio-ca.
func (c *istioConfig) identity(log *slog.Logger) (*istio.Identity, error) {
	if c.CA == "" {
		return nil, nil
	}
	return istio.New(istio.Config{
		Address: c.CA, TokenFile: c.TokenFile, RootFile: c.RootFile, Cluster: c.Cluster, Peers: listed(c.Peers), Logger: log,
	})
}

// validate returns an error if an identity could not be created.
func (c *istioConfig) validate() error {
	if _, err := c.identity(nil); err != nil {
		return fmt.Errorf("istio-ca, istio-token-file, istio-root-file, istio-peers: %w", err)
	}
	return nil
}

// surroundings creates the connections to ONAP's services, without connecting.
func (s *service) surroundings(cfg Config, log *slog.Logger) (err error) {
	if s.mesh, err = cfg.Istio.identity(log); err != nil {
		return err
	}
	s.sdc.tls = s.clientTLS()
	s.aai, err = cfg.AAI.client(log, s.clientTLS())
	return err
}

// listenerTLS returns the configuration of the listener; nil: connections are not
// encrypted. The files of --tls-cert take precedence over the certificate from
// istiod, because clients outside the mesh verify host names.
func (s *service) listenerTLS() *tls.Config {
	switch {
	case s.tls != nil:
		return s.tls.Config()
	case s.mesh != nil:
		return s.mesh.ServerConfig()
	}
	return nil
}

// clientTLS returns the configuration of connections to ONAP's services; nil: there is
// no certificate from istiod. It is for peer.Config: a CA or a certificate in files
// takes precedence.
func (s *service) clientTLS() *tls.Config {
	if s.mesh == nil {
		return nil
	}
	return s.mesh.ClientConfig()
}

// keepCertificate keeps the certificate from istiod valid, if there is one.
func (s *service) keepCertificate(ctx context.Context) error {
	if s.mesh == nil {
		return nil
	}
	return s.mesh.Run(ctx)
}

// meshSource returns the source of the certificate's metrics; nil: there is none.
func meshSource(identity *istio.Identity) func() telemetry.MeshCertificate {
	if identity == nil {
		return nil
	}
	return func() telemetry.MeshCertificate {
		s := identity.Status()
		return telemetry.MeshCertificate{Obtained: s.Obtained, Expires: s.Expires, Failures: s.Failures}
	}
}
