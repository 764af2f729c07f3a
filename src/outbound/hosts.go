package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrNotAllowed is wrapped by every error for an address that Hosts do not
// allow.
var ErrNotAllowed = errors.New("leads to an address that only the operator may allow")

// Hosts are the destinations to which users may have the service connect. The
// zero value allows every address that is Harmless: all except loopback,
// link-local, multicast and unspecified addresses, and those at which clouds
// serve credentials.
type Hosts struct {
	names    []string // lower-case; a leading dot matches all names below
	networks []netip.Prefix
}

// ParseHosts parses the destinations that an operator allows in addition: host
// names, "*.example.org" for all names below a domain, addresses, and networks
// in CIDR notation. An allowed name may resolve to any address.
func ParseHosts(list []string) (Hosts, error) {
	var h Hosts
	for _, entry := range list {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if network, err := netip.ParsePrefix(entry); err == nil {
			h.networks = append(h.networks, netip.PrefixFrom(network.Addr().Unmap(), unmappedBits(network)).Masked())
			continue
		}
		if address, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
			address = address.WithZone("").Unmap()
			h.networks = append(h.networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(entry, "*"), ".")
		if strings.Trim(name, ".") == "" || strings.ContainsAny(name, "*/:@ ") {
			return Hosts{}, fmt.Errorf("%q is not a host name, an address or a network", entry)
		}
		h.names = append(h.names, name)
	}
	return h, nil
}

// unmappedBits returns the prefix length of a network after an IPv4-mapped IPv6
// address is converted to IPv4.
func unmappedBits(p netip.Prefix) int {
	if p.Addr().Is4In6() {
		return max(p.Bits()-96, 0)
	}
	return p.Bits()
}

// WithLoopback returns the hosts with this machine's loopback names and
// addresses allowed in addition.
func (h Hosts) WithLoopback() Hosts {
	h.names = append(slices.Clone(h.names), "localhost", ".localhost")
	h.networks = append(slices.Clone(h.networks), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	return h
}

// Check returns an error if the text of a URL is invalid or not allowed. The
// address that a name resolves to is checked later, by Dial.
func (h Hosts) Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not a URL that begins with http:// or https://")
	case u.User != nil:
		return errors.New("contains a user or password")
	case u.Hostname() == "":
		return errors.New("names no host")
	}
	name := Name(u.Hostname())
	if h.named(name) {
		return nil
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return h.admit(address)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return ErrNotAllowed
	}
	return nil
}

// named reports whether a host is allowed by its name.
func (h Hosts) named(host string) bool {
	return slices.ContainsFunc(h.names, func(name string) bool {
		return name == host || name[0] == '.' && strings.HasSuffix(host, name)
	})
}

// admit returns an error if an address is not allowed.
func (h Hosts) admit(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	if slices.ContainsFunc(h.networks, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return nil
	}
	if !Harmless(address) {
		return ErrNotAllowed
	}
	return nil
}

// Dial connects to a host and port within the timeout. It fails if the hosts do
// not allow the address that the name resolves to.
func (h Hosts) Dial(ctx context.Context, within time.Duration, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot call %q: %w", address, err)
	}
	named := h.named(Name(host))
	return Dialer{Timeout: within, Admit: func(a netip.Addr) error {
		if named {
			return nil
		}
		return h.admit(a)
	}}.Dial(ctx, network, address)
}
