package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	userAgent   = "k8splugin"
	dialTimeout = 10 * time.Second // to connect, and again for the TLS handshake
	pingAfter   = 20 * time.Second // of silence, an HTTP/2 connection is asked whether it lives
	pingTimeout = 10 * time.Second
)

// configure makes the client configuration of one server and user.
func configure(s server, u user) (*rest.Config, nf.Violations) {
	cfg := &rest.Config{
		ContentConfig:      rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		UserAgent:          userAgent,
		DisableCompression: true,
		// The client's own limiter is off: the API server says when it is
		// asked too much (429), and that is honoured.
		QPS: -1,
	}
	v := configureServer(cfg, s)
	v = append(v, configureUser(cfg, u)...)
	if len(v) > 0 {
		return nil, v
	}
	return cfg, nil
}

func configureServer(cfg *rest.Config, s server) nf.Violations {
	var v nf.Violations
	at, c := fmt.Sprintf("clusters[%s].cluster.", s.Name), s.Cluster
	address, err := url.Parse(c.Server)
	switch {
	case c.Server == "":
		v = append(v, one(at+"server", "is missing")...)
	case err != nil || address.Host == "" || !slices.Contains([]string{"http", "https"}, address.Scheme):
		v = append(v, one(at+"server", "is not an http or https URL")...)
	case address.User != nil:
		v = append(v, one(at+"server", "holds a user name; use users[].user")...)
	default:
		cfg.Host = c.Server
	}
	ca, bad := decoded(at+"certificate-authority-data", c.CA)
	switch {
	case bad != nil:
		v = append(v, bad...)
	case c.Insecure && len(ca) > 0:
		v = append(v, one(at+"insecure-skip-tls-verify", "contradicts certificate-authority-data")...)
	case len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca):
		v = append(v, one(at+"certificate-authority-data", "holds no PEM certificate")...)
	}
	cfg.TLSClientConfig = rest.TLSClientConfig{CAData: ca, Insecure: c.Insecure, ServerName: c.ServerName}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return append(v, one(at+"proxy-url", "is not an http, https or socks5 URL")...)
		}
		cfg.Proxy = http.ProxyURL(proxy)
	}
	return v
}

func configureUser(cfg *rest.Config, entry user) nf.Violations {
	at, u := fmt.Sprintf("users[%s].user.", entry.Name), entry.User
	cert, v := decoded(at+"client-certificate-data", u.Cert)
	key, bad := decoded(at+"client-key-data", u.Key)
	v = append(v, bad...)
	switch {
	case len(v) > 0:
	case (len(cert) == 0) != (len(key) == 0):
		v = one(at+"client-certificate-data", "needs client-key-data, and the other way round")
	case len(cert) > 0:
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			v = one(at+"client-certificate-data", "is not a PEM certificate that goes with client-key-data")
		}
	}
	if u.Token != "" && u.Username != "" {
		v = append(v, one(at+"token", "contradicts username")...)
	}
	cfg.CertData, cfg.KeyData = cert, key
	cfg.BearerToken, cfg.Username, cfg.Password = u.Token, u.Username, u.Password
	cfg.Impersonate = rest.ImpersonationConfig{UserName: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
	return v
}

func decoded(field, text string) ([]byte, nf.Violations) {
	out, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, one(field, "is not base64")
	}
	return out, nil
}

// connect returns a client with a transport of its own, which no other cluster
// shares and which goes away with it. client-go would keep transports for ever.
func (g *guard) connect(cfg *rest.Config) (*http.Client, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use kubeconfig: %w", err)
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = g.operatorsProxy
	}
	g.transport = utilnet.SetTransportDefaults(&http.Transport{
		DialContext:         g.dial(cfg),
		Proxy:               proxy,
		MaxConnsPerHost:     int(g.share.limits.turns + g.share.limits.watches),
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 64, // for the rare API server without HTTP/2
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		// Kubernetes' own header is far below this.
		MaxResponseHeaderBytes: 64 << 10,
		// A watch may be silent for long; its connection may not. These times are
		// ours: SetTransportDefaults' can be switched off by the environment.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			// What a server has sent and nobody has read yet is in memory, too.
			MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 3 << 20,
		},
	})
	g.next, err = rest.HTTPWrappersForConfig(cfg, g.cfg.Wrap(g.region, g.transport))
	if err != nil {
		return nil, fmt.Errorf("cannot use kubeconfig: %w", err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: g, CheckRedirect: stay}, nil
}
