package multus

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// span is a range of addresses of one subnet. An address that is not known is
// the zero value.
type span struct {
	subnet     netip.Prefix
	start, end netip.Addr
	gateway    netip.Addr
}

// rangeKeys are the names of the fields of a range.
type rangeKeys struct{ subnet, start, end, gateway string }

var (
	hostLocalKeys   = rangeKeys{"subnet", "rangeStart", "rangeEnd", "gateway"}
	whereaboutsKeys = rangeKeys{"range", "range_start", "range_end", "gateway"}
)

// spanOf reads a range, and reports whether its subnet is known. A range of
// whereabouts can have its first and last address in front: a-b/24.
func spanOf(r map[string]any, k rangeKeys) (span, bool) {
	s := span{start: addressIn(r, k.start), end: addressIn(r, k.end), gateway: addressIn(r, k.gateway)}
	written, _ := r[k.subnet].(string)
	if first, rest, both := strings.Cut(written, "-"); both {
		s.start, _ = netip.ParseAddr(first)
		written = rest
		last, _, _ := strings.Cut(rest, "/")
		s.end, _ = netip.ParseAddr(last)
	}
	p, err := netip.ParsePrefix(written)
	s.subnet = p.Masked()
	return s, err == nil
}

// addressIn returns the address in a field, or the zero value.
func addressIn(m map[string]any, name string) netip.Addr {
	s, _ := m[name].(string)
	a, _ := netip.ParseAddr(s)
	return a.Unmap()
}

// first and last return the limits of the addresses that host-local gives.
func (s span) first() netip.Addr {
	if s.start.IsValid() {
		return s.start
	}
	return s.subnet.Addr().Next()
}

func (s span) last() netip.Addr {
	if s.end.IsValid() {
		return s.end
	}
	last := lastOf(s.subnet)
	if last.Is4() {
		return last.Prev() // the last one is the broadcast address
	}
	return last
}

// router returns the gateway of the range; host-local claims the first address.
func (s span) router() netip.Addr {
	if s.gateway.IsValid() {
		return s.gateway
	}
	return s.subnet.Addr().Next()
}

func (s span) contains(a netip.Addr) bool {
	return s.subnet.Contains(a) && s.first().Compare(a) <= 0 && a.Compare(s.last()) <= 0
}

func (s span) overlaps(o span) bool {
	return s.subnet.Overlaps(o.subnet) && s.first().Compare(o.last()) <= 0 && o.first().Compare(s.last()) <= 0
}

// check reports the addresses of a range that are outside of its subnet.
func (s span) check(c *schema.Checker, path string, k rangeKeys) {
	inside := func(name string, a netip.Addr) {
		if a.IsValid() && !s.subnet.Contains(a) {
			c.Fault(schema.Member(path, name), "%s is outside of the subnet %s", a, s.subnet)
		}
	}
	inside(k.start, s.start)
	inside(k.end, s.end)
	inside(k.gateway, s.gateway)
	if s.start.IsValid() && s.end.IsValid() && s.start.Compare(s.end) > 0 {
		c.Fault(schema.Member(path, k.start), "%s is after the end %s", s.start, s.end)
	}
}

// lastOf returns the last address of a subnet.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// placed is a range and its place in a specification.
type placed struct {
	span span
	path string
	set  int // ranges of one set give one address together
}

// checkHostLocal checks the ranges of host-local, and moves a range beside ranges
// into them, where the plugin also puts it.
func checkHostLocal(c *schema.Checker, path string, m map[string]any) {
	var all []placed
	add := func(path string, set int, v any) {
		r, _ := v.(map[string]any)
		s, known := spanOf(r, hostLocalKeys)
		if !known {
			return
		}
		s.check(c, path, hostLocalKeys)
		if s.subnet.Bits() > s.subnet.Addr().BitLen()-2 {
			c.Fault(schema.Member(path, "subnet"), "%s is too small: a range needs at least 4 addresses", s.subnet)
			return
		}
		all = append(all, placed{s, path, set})
	}
	ranges, _ := m["ranges"].([]any)
	if m["subnet"] != nil {
		flat := map[string]any{}
		for name := range hostLocalRange {
			if m[name] != nil {
				flat[name] = m[name]
				delete(m, name)
			}
		}
		add(path, -1, flat)
		m["ranges"] = slices.Concat([]any{[]any{flat}}, ranges)
	}
	for i, set := range ranges {
		ranges, _ := set.([]any)
		if len(ranges) == 0 {
			c.Fault(fmt.Sprintf("%s.ranges[%d]", path, i), "must not be empty")
		}
		for j, r := range ranges {
			add(fmt.Sprintf("%s.ranges[%d][%d]", path, i, j), i, r)
		}
	}
	checkSets(c, all)
}

// checkSets reports ranges that overlap, and sets of both families.
func checkSets(c *schema.Checker, all []placed) {
	for i, one := range all {
		for _, other := range all[:i] {
			switch {
			case one.set == other.set && one.span.subnet.Addr().Is4() != other.span.subnet.Addr().Is4():
				c.Fault(schema.Member(one.path, "subnet"), "has another family than %s; put it into another list: each one gives one address", other.path)
			case one.span.overlaps(other.span):
				c.Fault(schema.Member(one.path, "subnet"), "overlaps with %s", other.path)
			}
		}
	}
}

// checkWhereabouts checks the ranges of whereabouts, and that its exclusions have
// an effect.
func checkWhereabouts(c *schema.Checker, path string, m map[string]any) {
	ranges, _ := m["ipRanges"].([]any)
	check := func(path string, r map[string]any) {
		s, known := spanOf(r, whereaboutsKeys)
		if !known {
			return
		}
		s.check(c, path, whereaboutsKeys)
		for i, e := range schema.ListOf(r, "exclude") {
			text, _ := e.(string)
			if p, err := netip.ParsePrefix(text); err == nil && !p.Overlaps(s.subnet) {
				c.Fault(fmt.Sprintf("%s.exclude[%d]", path, i), "%s is outside of the range %s", p, s.subnet)
			}
		}
	}
	check(path, m)
	for i, r := range ranges {
		if r, ok := r.(map[string]any); ok {
			check(fmt.Sprintf("%s.ipRanges[%d]", path, i), r)
		}
	}
}

// rangesOf returns the ranges of an IPAM.
func rangesOf(m map[string]any) (all []span) {
	add := func(v any, k rangeKeys) {
		if r, ok := v.(map[string]any); ok {
			if s, known := spanOf(r, k); known {
				all = append(all, s)
			}
		}
	}
	switch m["type"] {
	case hostLocal:
		add(m, hostLocalKeys)
		for _, set := range schema.ListOf(m, "ranges") {
			ranges, _ := set.([]any)
			for _, r := range ranges {
				add(r, hostLocalKeys)
			}
		}
	case whereabouts:
		add(m, whereaboutsKeys)
		for _, r := range schema.ListOf(m, "ipRanges") {
			add(r, whereaboutsKeys)
		}
	}
	return all
}

// parseRange parses a range of whereabouts: 10.1.0.0/24, or
// 10.1.0.10-10.1.0.20/24.
func parseRange(s string) (string, error) {
	first, rest, both := strings.Cut(s, "-")
	if !both {
		return schema.ParseSubnet(s)
	}
	start, err := netip.ParseAddr(first)
	end, wrong := netip.ParsePrefix(rest)
	switch {
	case err != nil || wrong != nil || start.Zone() != "" || start.Is4In6() || end.Addr().Is4In6():
		return "", fmt.Errorf("%q is not a range, such as 10.1.0.0/24 or 10.1.0.10-10.1.0.20/24", nf.Clip(s, 64))
	case !end.Contains(start):
		return "", fmt.Errorf("%s and %s are not in one subnet", start, end)
	case start.Compare(end.Addr()) > 0:
		return "", fmt.Errorf("%s is after the end %s", start, end.Addr())
	}
	return start.String() + "-" + end.String(), nil
}

// parseExclude parses a subnet or an address. Its canonical form is a subnet.
func parseExclude(s string) (string, error) {
	if a, err := schema.ParseAddress(s); err == nil {
		return hostPrefix(netip.MustParseAddr(a)), nil
	}
	return schema.ParseSubnet(s)
}

// hostPrefix returns the subnet of one address.
func hostPrefix(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// dhcpOptions are the options that the plugin knows by name.
var dhcpOptions = []string{"dhcp-client-identifier", "subnet-mask", "routers", "host-name", "user-class", "vendor-class-identifier"}

// parseOption parses an option of DHCP: its name or its number.
func parseOption(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return strconv.FormatUint(n, 10), nil
	}
	if slices.Contains(dhcpOptions, s) {
		return s, nil
	}
	return "", fmt.Errorf("%q is not an option: use its number, or one of %s", nf.Clip(s, 64), strings.Join(dhcpOptions, ", "))
}
