package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Name normalizes a host name for comparison.
func Name(host string) string {
	return strings.TrimSuffix(strings.Trim(strings.ToLower(host), "[]"), ".")
}

// Dialer connects to hosts.
type Dialer struct {
	Timeout time.Duration          // of one connection; 0: only the context's
	Admit   func(netip.Addr) error // returns an error if an address is not allowed; IPv4-mapped IPv6 addresses are passed as IPv4
}

// Dial connects to a host and port. It checks each address right before
// connecting, so a name that resolves differently by then cannot bypass the
// check.
func (d Dialer) Dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.Timeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("cannot call %q: %w", address, err)
		}
		return d.Admit(at.Addr().WithZone("").Unmap())
	}}
	return plain.DialContext(ctx, network, hostPort)
}

// Harmless reports whether any user may have the service connect to an address,
// judged by the address alone. Addresses of private networks are harmless.
// Loopback, unspecified, link-local, multicast and broadcast addresses are not,
// nor are addresses at which clouds serve credentials. An IPv6 address that
// makes a gateway connect to such an IPv4 address is not harmless either.
func Harmless(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return false
	}
	if slices.ContainsFunc(harmful, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return false
	}
	inner, carries := carried(a)
	return !carries || Harmless(inner)
}

// harmful are the addresses that the standard library has no predicate for.
var harmful = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	netip.MustParsePrefix("fec0::/10"),          // site-local, deprecated
}

// carried returns the IPv4 address embedded in an IPv6 address, to which a
// gateway would connect instead.
func carried(a netip.Addr) (netip.Addr, bool) {
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
