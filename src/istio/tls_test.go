package istio_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

func unknownToken(context.Context, string, []string) (istiod.Review, error) {
	return istiod.Review{}, nil
}

// handshake connects a client to a server, and returns the error of either.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(there, server)
		err := conn.HandshakeContext(t.Context())
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		done <- errors.Join(err, there.Close())
	}()
	conn := tls.Client(here, client)
	_, err := conn.Read(make([]byte, 1)) // in TLS 1.3, a server rejects a client after the client's handshake
	return errors.Join(err, here.Close(), <-done)
}

func TestPeers(t *testing.T) {
	t.Parallel()
	const so = onap + "sa/so"
	for name, tc := range map[string]struct {
		reason string
		domain string // of the peer's mesh
		peer   string // its service account
		allows []string
		want   string // in the error; empty: it is accepted
	}{
		"Exact":     {"an id in the list is accepted", "", "onap:so", []string{so}, ""},
		"Prefix":    {"an id below a prefix is accepted", "", "onap:so", []string{onap}, ""},
		"Everyone":  {"a trust domain with a slash stands for all its ids", "", "x:y", []string{"spiffe://cluster.local/"}, ""},
		"Other":     {"an id that is not in the list is rejected", "", "onap:sdc", []string{so}, "is not in --istio-peers"},
		"Namespace": {"a prefix ends with its slash", "", "onap2:so", []string{onap}, "is not in --istio-peers"},
		"Longer":    {"an exact id is not a prefix", "", "onap:so2", []string{so}, "is not in --istio-peers"},
		"Domain":    {"an id of another trust domain is rejected although the list has it", "other.example", "onap:so", []string{so, "spiffe://other.example/"}, "is not of the trust domain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMesh(t, istiod.Config{})
				i := m.identity(tc.allows...)
				defer m.run(i)()
				p := newMesh(t, istiod.Config{TrustDomain: tc.domain})
				if tc.domain == "" {
					p.istiod, p.net = m.istiod, m.net
					m.accept(token, tc.peer)
					p.write("root", m.istiod.Roots())
				} else {
					p.accept(token, tc.peer)
					// One root for both, as federated meshes have it.
					m.write("root", m.istiod.Roots()+p.istiod.Roots())
					p.write("root", m.istiod.Roots()+p.istiod.Roots())
					sleep(t, 30*time.Second)
				}
				peer := p.identity(onap)
				defer p.run(peer)()
				// The peer accepts anyone, so that only our side decides.
				anyone := peer.ClientConfig()
				anyone.VerifyConnection = nil
				asClient := handshake(t, i.ServerConfig(), anyone)
				open := peer.ServerConfig()
				inner := open.GetConfigForClient
				open.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
					c, err := inner(h)
					if err == nil {
						c.ClientAuth, c.VerifyConnection = tls.RequireAnyClientCert, nil
					}
					return c, err
				}
				for role, err := range map[string]error{"client": asClient, "server": handshake(t, open, i.ClientConfig())} {
					if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
						t.Errorf("%s: a peer as %s: %v, want %q", tc.reason, role, err, tc.want)
					}
				}
			})
		})
	}
}

// TestNoCertificate has clients that send no certificate.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		i := m.identity(onap)
		defer m.run(i)()
		if err := handshake(t, i.ServerConfig(), &tls.Config{InsecureSkipVerify: true}); err != nil {
			t.Errorf("a client without a certificate, such as the kubelet's probe: %v", err)
		}
		if err := handshake(t, i.ServerConfig(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
			t.Error("TLS 1.1 is accepted")
		}
	})
}
