package cluster

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// Check returns nf.Invalid if the kubeconfig cannot be used, or if it names an
// address that the pool's hosts do not allow. It resolves no host names; those
// are checked when the service connects.
func (p *Pool) Check(kubeconfig []byte) error {
	cfg, err := Parse(kubeconfig)
	if err != nil {
		return err
	}
	return checkAddresses(cfg, p.cfg.Hosts)
}

func checkAddresses(cfg *rest.Config, hosts outbound.Hosts) error {
	var v nf.Violations
	check := func(field, address string) {
		if err := hosts.Check(address); err != nil {
			v = append(v, one(field, err.Error()+" (--region-allow)")...)
		}
	}
	check("clusters[].cluster.server", cfg.Host)
	if cfg.Proxy != nil {
		proxy, err := cfg.Proxy(nil)
		if err == nil && proxy != nil {
			// The scheme does not matter; the proxy may be a SOCKS proxy.
			check("clusters[].cluster.proxy-url", (&url.URL{Scheme: "http", Host: proxy.Host}).String())
		}
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, "use", "kubeconfig", v)
	}
	return nil
}

// dial returns the function that connects to the region, or to its proxy.
func (bt *breakerTransport) dial(cfg *rest.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	if cfg.Dial != nil {
		return cfg.Dial // set by a test
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if proxy := bt.proxy.Load(); proxy != nil && *proxy == address {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
		}
		return bt.cfg.Hosts.Dial(ctx, dialTimeout, network, address)
	}
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
