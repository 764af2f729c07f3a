package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// Hosts says where callbacks may lead to. The zero value lets them lead
// everywhere but to what only a process on this very machine or network could
// reach on its own behalf: loopback, link-local, multicast and unspecified
// addresses, and those where clouds answer with credentials.
type Hosts struct {
	names    []string // lower-case; one that begins with a dot is all names below it
	networks []netip.Prefix
	only     bool
}

// ParseHosts reads a list of what is allowed beside what everybody may: host
// names, "*.example.org" for all names below one, addresses, and networks in CIDR
// notation. A name is trusted wherever it leads. With only, nothing but what is
// on the list is allowed.
func ParseHosts(list []string, only bool) (Hosts, error) {
	h := Hosts{only: only}
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
			return Hosts{}, fmt.Errorf("%q is no host, address or network that callbacks could be allowed to", entry)
		}
		h.names = append(h.names, name)
	}
	return h, nil
}

// unmappedBits is the length of a network's prefix when an IPv4 address in IPv6
// form is read as what it means.
func unmappedBits(p netip.Prefix) int {
	if p.Addr().Is4In6() {
		return max(p.Bits()-96, 0)
	}
	return p.Bits()
}

// Check returns what is wrong with a callback's URL, as far as its text tells:
// where a name leads to is looked at when it is called.
func (h Hosts) Check(callback string) error {
	u, err := url.Parse(callback)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not a URL that begins with http:// or https://")
	case u.User != nil:
		return errors.New("holds a user or password")
	case u.Hostname() == "":
		return errors.New("names no host")
	}
	name := outbound.Name(u.Hostname())
	if h.named(name) {
		return nil
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return h.admit(address)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return errors.New("leads to this machine, which is not allowed")
	}
	if h.only && len(h.networks) == 0 {
		return errors.New("names a host that is not allowed")
	}
	return nil
}

// named reports whether a host is allowed by its name.
func (h Hosts) named(host string) bool {
	return slices.ContainsFunc(h.names, func(name string) bool {
		return name == host || name[0] == '.' && strings.HasSuffix(host, name)
	})
}

// admit returns why an address may not be called.
func (h Hosts) admit(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	if slices.ContainsFunc(h.networks, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return nil
	}
	if h.only {
		return errors.New("leads to an address that is not allowed")
	}
	if !outbound.Harmless(address) {
		return errors.New("leads to an address that only the operator may allow")
	}
	return nil
}

// dial connects to where a callback leads, if it may.
func (h Hosts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot call %q: %w", address, err)
	}
	named := h.named(outbound.Name(host))
	return outbound.Dialer{Timeout: dialTime, Admit: func(a netip.Addr) error {
		if named {
			return nil
		}
		if err := h.admit(a); err != nil {
			return fmt.Errorf("the callback %w", err)
		}
		return nil
	}}.Dial(ctx, network, address)
}
