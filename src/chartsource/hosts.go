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
	"syscall"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const dialTimeout = 10 * time.Second

// hosts are patterns of hosts.
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
		p.name = plain(p.name)
		if p.name == "" || strings.ContainsAny(p.name+p.port, `/@?[]\ `) {
			return nil, fmt.Errorf("%q is no host that charts could be fetched from", entry)
		}
		out = append(out, p)
	}
	return out, nil
}

// plain is the name of a host in the form in which it is compared.
func plain(name string) string {
	return strings.TrimSuffix(strings.Trim(strings.ToLower(name), "[]"), ".")
}

// match reports whether the host of a URL is among the patterns.
func (h hosts) match(u *url.URL) bool {
	name, port := plain(u.Hostname()), portOf(u)
	return slices.ContainsFunc(h, func(p hostPattern) bool {
		found, err := path.Match(p.name, name)
		return err == nil && found && (p.port == "" || p.port == port)
	})
}

// names reports whether a host is among the patterns as it stands.
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

// gate lets through what may be asked. Every request passes it, and so does
// every further one that an answer leads to.
type gate struct {
	source *Source
	next   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.source.admit(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // an http.RoundTripper always does
		}
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// CloseIdleConnections is what http.Client calls.
func (g gate) CloseIdleConnections() { g.next.CloseIdleConnections() }

// admit returns why a URL may not be asked.
func (s *Source) admit(u *url.URL) error {
	refuse := func(why string) error { return nf.E(nf.Forbidden, "ask", "host "+u.Host, errors.New(why)) }
	switch {
	case len(s.allow) == 0:
		return refuse("nothing may be fetched: --chart-sources names the hosts that may be asked, and it is empty")
	case !s.allow.match(u):
		return refuse("it is not among the hosts that --chart-sources names")
	case u.Scheme != "https" && (u.Scheme != "http" || !s.plain.match(u)):
		return refuse("it would be asked without TLS, which --chart-sources-plain does not allow")
	}
	return nil
}

// dial connects to a host that is admitted. The address is looked at when it is
// about to be called, so that a name which leads elsewhere by then is none the
// better for it.
func (s *Source) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot call %q: %w", address, err)
	}
	here := s.here(plain(host))
	d := net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("cannot call %q: %w", address, err)
		}
		if a := at.Addr().WithZone("").Unmap(); !decent(a) && (!here || !a.IsLoopback()) {
			return nf.E(nf.Forbidden, "call", "host "+host, fmt.Errorf("it leads to %s, where no charts are fetched from", a))
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// here reports whether a host is this machine by its very name, and allowed by
// that and not by a pattern.
func (s *Source) here(host string) bool {
	a, err := netip.ParseAddr(host)
	local := err == nil && a.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	return local && s.allow.names(host)
}

// decent reports whether an address can be that of a registry. Those of private
// networks can.
func decent(a netip.Addr) bool {
	if !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return false
	}
	if slices.ContainsFunc(indecent, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return false
	}
	inner, carries := within(a)
	return !carries || decent(inner)
}

// indecent are further addresses that mean this machine, everybody, or a cloud's
// service for its machines.
var indecent = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	netip.MustParsePrefix("fec0::/10"),          // site-local, given up
}

// within returns the IPv4 address that an IPv6 address carries, which a gateway
// would call in its stead.
func within(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::/96").Contains(a),
		netip.MustParsePrefix("64:ff9b:1::/48").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case netip.MustParsePrefix("2002::/16").Contains(a): // 6to4
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}
