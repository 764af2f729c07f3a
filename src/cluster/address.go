package cluster

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Check returns nf.Invalid if the access cannot be used, or if it names an
// address that the pool's hosts do not allow. It resolves no host names; those
// are checked when the service connects.
func (p *Pool) Check(access nf.Access) error {
	if _, err := configure(access); err != nil {
		return err
	}
	subject, server, proxyURL := "access", "access.server", "access.proxy_url"
	if len(access.Kubeconfig) > 0 {
		subject, server, proxyURL = "kubeconfig", "clusters[].cluster.server", "clusters[].cluster.proxy-url"
	}
	var v nf.Violations
	check := func(field, address string) {
		if err := p.cfg.Hosts.Check(address); err != nil {
			v = append(v, one(field, err.Error()+" (--allowed-region-hosts)")...)
		}
	}
	check(server, access.Server)
	if access.OIDC != nil {
		check("access.oidc.token_url", access.OIDC.TokenURL)
	}
	if proxy, err := url.Parse(string(access.Proxy)); err == nil && proxy.Host != "" {
		// The scheme does not matter; the proxy may be a SOCKS proxy.
		check(proxyURL, (&url.URL{Scheme: "http", Host: proxy.Host}).String())
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, "use", subject, v)
	}
	return nil
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects to the region, or to its proxy.
func (bt *breakerTransport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if bt.cfg.dial != nil {
		return bt.cfg.dial(ctx, network, address)
	}
	if proxy := bt.proxy.Load(); proxy != nil && *proxy == address {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	}
	return bt.cfg.Hosts.Dial(ctx, dialTimeout, network, address)
}

// operatorsProxy returns the proxy that the environment names. Its address is
// not checked: the operator chose it.
func (bt *breakerTransport) operatorsProxy(req *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(req)
	if proxy != nil {
		address := proxy.Host
		if proxy.Port() == "" {
			port := map[string]string{"https": "443", "socks5": "1080"}[proxy.Scheme]
			if port == "" {
				port = "80"
			}
			address = net.JoinHostPort(strings.Trim(proxy.Hostname(), "[]"), port)
		}
		bt.proxy.Store(&address)
	}
	return proxy, err
}
