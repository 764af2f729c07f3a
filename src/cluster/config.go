package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// configure returns the client configuration for an access. This is the only
// place that turns an access into a client's.
func configure(a nf.Access) (*rest.Config, error) {
	if v := a.Validate(nil); len(v) > 0 {
		return nil, nf.E(nf.Invalid, "use", "access", v)
	}
	cfg := &rest.Config{
		Host:               a.Server,
		ContentConfig:      rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		UserAgent:          userAgent,
		DisableCompression: true,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: a.CA, Insecure: a.Insecure, ServerName: a.ServerName, CertData: a.Certificate, KeyData: a.Key,
		},
		BearerToken: string(a.Token), Username: a.Username, Password: string(a.Password),
		// The client-side rate limiter is off: the API server limits requests
		// itself with status 429, and the client honors that.
		QPS: -1,
	}
	if a.Account() != nil {
		cfg.BearerToken = "" // each request gets the current token
	}
	if len(a.Proxy) > 0 {
		proxy, err := url.Parse(string(a.Proxy))
		if err != nil {
			return nil, nf.E(nf.Internal, "use", "access", errors.New("its proxy is not a URL")) // Validate has checked it
		}
		cfg.Proxy = http.ProxyURL(proxy)
	}
	if as := a.Impersonate; as != nil {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: as.User, UID: as.UID, Groups: as.Groups, Extra: as.Extra}
	}
	return cfg, nil
}

// connect returns a client with its own transport, which ends with the cluster.
// client-go would cache transports forever.
func (bt *breakerTransport) connect(cfg *rest.Config) (*http.Client, error) {
	first, err := bt.transportOf(cfg)
	if err != nil {
		return nil, err
	}
	bt.transport = &connections{}
	bt.transport.replace(first)
	bt.next, err = rest.HTTPWrappersForConfig(cfg, bt.cfg.Wrap(bt.region, bt.transport))
	if err != nil {
		return nil, fmt.Errorf("cannot use access: %w", err)
	}
	return &http.Client{Transport: bt, CheckRedirect: stay}, nil
}

// transportOf returns a transport with connections of its own.
func (bt *breakerTransport) transportOf(cfg *rest.Config) (*http.Transport, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use access: %w", err)
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = bt.operatorsProxy
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		DialContext:         bt.dial,
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
	}), nil
}

// stay is the CheckRedirect of clients that follow no redirect.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
