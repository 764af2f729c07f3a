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
	pingAfter   = 20 * time.Second // without traffic, before an HTTP/2 connection is pinged
	pingTimeout = 10 * time.Second
)

// configure returns the client configuration for one server and user.
func configure(s server, u user) (*rest.Config, nf.Violations) {
	cfg := &rest.Config{
		ContentConfig:      rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		UserAgent:          userAgent,
		DisableCompression: true,
		// The client-side rate limiter is off: the API server limits requests
		// itself with status 429, and the client honors that.
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

// connect returns a client with its own transport, which ends with the cluster.
// client-go would cache transports forever.
func (bt *breakerTransport) connect(cfg *rest.Config) (*http.Client, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use kubeconfig: %w", err)
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = bt.operatorsProxy
	}
	bt.transport = utilnet.SetTransportDefaults(&http.Transport{
		DialContext:         bt.dial(cfg),
		Proxy:               proxy,
		MaxConnsPerHost:     int(bt.usage.limits.turns + bt.usage.limits.watches),
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 64, // for the rare API server without HTTP/2
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,

		OnProxyConnectResponse: viaProxy,
		// Kubernetes' own headers are far smaller.
		MaxResponseHeaderBytes: 64 << 10,
		// A watch may be silent for long; its connection may not. The timeouts
		// are set here because the environment can disable those of
		// SetTransportDefaults.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			// Received data that is not yet read takes memory, too.
			MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 3 << 20,
		},
	})
	bt.next, err = rest.HTTPWrappersForConfig(cfg, bt.cfg.Wrap(bt.region, bt.transport))
	if err != nil {
		return nil, fmt.Errorf("cannot use kubeconfig: %w", err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: bt, CheckRedirect: stay}, nil
}
