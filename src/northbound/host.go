package northbound

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// meant reports whether a request to a loopback address names a local host.
// Without this check, a web page could reach the service through DNS rebinding:
// the browser then sees the same origin, but sends the page's host name.
// Requests to other addresses are accepted; the operator is warned when the
// service listens there without access rules.
func (a *authMiddleware) meant(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(local.String()) {
		return true
	}
	return r.Host == "" || loopback(r.Host) || slices.ContainsFunc(a.hosts, func(name string) bool {
		return strings.EqualFold(name, hostname(r.Host))
	})
}

// loopback reports whether a host, with or without a port, always means this
// machine, whichever resolver is used.
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
