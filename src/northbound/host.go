package northbound

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// meant reports whether a request that came to a loopback address was meant
// for it. A page of any site can have its own name lead here, and then no
// browser takes us for another site: but the browser says the name. Requests
// that came to another address are let through; who opens that to everybody
// without access rules has been told.
func (g *gate) meant(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(local.String()) {
		return true
	}
	return r.Host == "" || loopback(r.Host) || slices.ContainsFunc(g.hosts, func(name string) bool {
		return strings.EqualFold(name, hostname(r.Host))
	})
}

// loopback reports whether a host, with or without a port, is this machine
// whoever resolves its name.
func loopback(hostport string) bool {
	host := strings.ToLower(hostname(hostport))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.TrimSuffix(host, ".")
}
