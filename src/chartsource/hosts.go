package chartsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

const dialTimeout = 10 * time.Second

// hosts are host patterns.
type hosts []hostPattern

type hostPattern struct {
	name string // lower-case; * stands for any text
	port string // empty: any
}

func parseHosts(list []string) (hosts, error) {
	var out hosts
	for _, entry := range list {
		p := hostPattern{name: strings.ToLower(strings.TrimSpace(entry))}
		if name, port, err := net.SplitHostPort(p.name); err == nil {
			p.name, p.port = name, port
		}
		p.name = outbound.Name(p.name)
		if p.name == "" || strings.ContainsAny(p.name+p.port, `/@?[]\ `) {
			return nil, fmt.Errorf("%q is not a host", entry)
		}
		out = append(out, p)
	}
	return out, nil
}

// match reports whether the host of a URL is among the patterns.
func (h hosts) match(u *url.URL) bool {
	name, port := outbound.Name(u.Hostname()), portOf(u)
	return slices.ContainsFunc(h, func(p hostPattern) bool {
		found, err := path.Match(p.name, name)
		return err == nil && found && (p.port == "" || p.port == port)
	})
}

// names reports whether a pattern is exactly this host.
func (h hosts) names(host string) bool {
	return slices.ContainsFunc(h, func(p hostPattern) bool { return p.name == host })
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && outbound.Name(a.Hostname()) == outbound.Name(b.Hostname()) && portOf(a) == portOf(b)
}

// send sends a request. It removes the credentials if a redirect leaves the
// origin of the request.
func (s *Source) send(r *http.Request) (*http.Response, error) {
	client := *s.client
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		// Another port is another server, but net/http keeps the header if only
		// the port differs. It copies the header of the first request to every
		// later one, so each redirect until now counts.
		for _, hop := range append(slices.Clone(via[1:]), next) {
			if !sameOrigin(hop.URL, r.URL) {
				next.Header.Del("Authorization")
			}
		}
		return s.client.CheckRedirect(next, via)
	}
	return client.Do(r)
}

// gate is a transport that rejects requests to hosts that are not allowed. It
// checks every request, including redirects and requests to other hosts that a
// response refers to.
type gate struct {
	source *Source
	next   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.source.admit(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // an http.RoundTripper must always close it
		}
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (g gate) CloseIdleConnections() { g.next.CloseIdleConnections() }

// admit returns an error if a URL may not be requested.
func (s *Source) admit(u *url.URL) error {
	refuse := func(why string) error { return nf.E(nf.Forbidden, "ask", "host "+u.Host, errors.New(why)) }
	switch {
	case len(s.allow) == 0:
		return refuse("fetching is not allowed: --allowed-chart-hosts lists the allowed hosts and is empty")
	case !s.allow.match(u):
		return refuse("it is not among the hosts listed in --allowed-chart-hosts")
	case u.Scheme != "https" && (u.Scheme != "http" || !s.plain.match(u)):
		return refuse("it does not use TLS, which --plain-http-chart-hosts must allow")
	}
	return nil
}

// dial connects to an admitted host.
func (s *Source) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot call %q: %w", address, err)
	}
	here := s.here(outbound.Name(host))
	return outbound.Dialer{Timeout: dialTimeout, Admit: func(a netip.Addr) error {
		if outbound.Harmless(a) || here && a.IsLoopback() {
			return nil
		}
		return nf.E(nf.Forbidden, "call", "host "+host, fmt.Errorf("it resolves to %s, which charts may not be fetched from", a))
	}}.Dial(ctx, network, address)
}

// here reports whether a host is a loopback address or a localhost name, and is
// allowed by that exact name rather than by a pattern.
func (s *Source) here(host string) bool {
	a, err := netip.ParseAddr(host)
	local := err == nil && a.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	return local && s.allow.names(host)
}
