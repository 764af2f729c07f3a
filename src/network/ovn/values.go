package ovn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Fields that several flavors have.
var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	objectName  = schema.Matching(namePattern, "the name of an object")

	flag    = schema.Implied(schema.Boolean, false)
	address = schema.Parsed(schema.ParseAddress)
	subnet  = schema.Parsed(schema.ParseSubnet)

	subnets  = schema.Required(families(subnet, "subnet"))
	gateways = schema.Optional(families(address, "gateway"))
	exclude  = schema.Optional(sorted(schema.Parsed(parseSpan)))
	routes   = schema.Optional(schema.List(schema.Object(schema.Shape{Fields: map[string]schema.Field{"dst": schema.Required(subnet), "gw": schema.Required(address)}})))
)

// refused is a field of other flavors, with the reason why this one has not got it.
func refused(reason string) schema.Field {
	return schema.Optional(func(c *schema.Checker, path string, _ any) any {
		c.Fault(path, "is not supported: %s", reason)
		return nil
	})
}

// families checks a list with at most one element for each of IPv4 and IPv6. In its
// canonical form, IPv4 comes first.
func families(of schema.Value, noun string) schema.Value {
	return func(c *schema.Checker, path string, v any) any {
		out, _ := schema.List(of)(c, path, v).([]any)
		seen := map[bool]bool{}
		for i, e := range out {
			text, ok := e.(string)
			if ok && seen[is6(text)] {
				c.Fault(fmt.Sprintf("%s[%d]", path, i), "is a second %s of its family; at most one of IPv4 and one of IPv6 are possible", noun)
			}
			seen[is6(text)] = ok
		}
		slices.SortStableFunc(out, func(a, b any) int {
			switch one, other := is6(fmt.Sprint(a)), is6(fmt.Sprint(b)); {
			case one == other:
				return 0
			case one:
				return 1
			}
			return -1
		})
		return out
	}
}

// sorted checks a list whose order has no meaning.
func sorted(of schema.Value) schema.Value {
	return func(c *schema.Checker, path string, v any) any {
		out, _ := schema.List(of)(c, path, v).([]any)
		sortTexts(out)
		return slices.CompactFunc(out, func(a, b any) bool { return a != nil && a == b })
	}
}

func sortTexts(all []any) {
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// join returns texts with a separator between them.
func join(all []any, separator string) string {
	return strings.Join(textsOf(spec{"": all}, ""), separator)
}

func is6(text string) bool { return strings.Contains(text, ":") }

// parseSpan parses an address, or the first and the last one: 10.1.0.1..10.1.0.9.
func parseSpan(s string) (string, error) {
	first, last, both := strings.Cut(s, "..")
	a, err := schema.ParseAddress(first)
	if err != nil || !both {
		return a, err
	}
	b, err := schema.ParseAddress(last)
	if err != nil {
		return "", err
	}
	if from, to := netip.MustParseAddr(a), netip.MustParseAddr(b); from.Is4() != to.Is4() || from.Compare(to) > 0 {
		return "", fmt.Errorf("%q is not a range, such as 10.1.0.1..10.1.0.9", nf.Clip(s, 64))
	}
	return a + ".." + b, nil
}

// ends returns the first and the last address of a span.
func ends(text string) (first, last netip.Addr) {
	a, b, both := strings.Cut(text, "..")
	first, _ = netip.ParseAddr(a)
	if !both {
		return first, first
	}
	last, _ = netip.ParseAddr(b)
	return first, last
}

// prefixes returns the subnets of a specification that can be read.
func prefixes(s spec, field string) (out []netip.Prefix) {
	for _, text := range textsOf(s, field) {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// subnetOf returns the subnet with an address, or the zero value.
func subnetOf(all []netip.Prefix, a netip.Addr) netip.Prefix {
	for _, p := range all {
		if p.Contains(a) {
			return p
		}
	}
	return netip.Prefix{}
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

// reserved says why no pod can have an address of a subnet, or "".
func reserved(p netip.Prefix, a netip.Addr) string {
	switch {
	case a == p.Masked().Addr():
		return "is the address of the subnet"
	case a.Is4() && a == lastOf(p):
		return "is the broadcast address of the subnet"
	}
	return ""
}

// checkAddresses checks the gateways and the exclusions of a specification against its
// subnets, and fills in the gateways: OVN's controllers take the first address.
func checkAddresses(c *schema.Checker, s spec) {
	all := prefixes(s, "subnets")
	if len(all) == 0 || len(all) != len(schema.ListOf(s, "subnets")) {
		return // it is wrong already
	}
	has := map[bool]bool{}
	for i, text := range textsOf(s, "gateways") {
		a, _ := netip.ParseAddr(text)
		path := fmt.Sprintf("spec.gateways[%d]", i)
		has[a.Is6()] = true
		if p := subnetOf(all, a); !p.IsValid() {
			c.Fault(path, "%s is outside of the subnets", text)
		} else if why := reserved(p, a); why != "" {
			c.Fault(path, "%s %s", text, why)
		}
	}
	for i, p := range all {
		if p.Bits() > p.Addr().BitLen()-2 {
			c.Fault(fmt.Sprintf("spec.subnets[%d]", i), "%s is too small: a subnet needs at least 4 addresses", p)
		} else if !has[p.Addr().Is6()] {
			s["gateways"] = append(schema.ListOf(s, "gateways"), p.Addr().Next().String())
		}
	}
	if g := schema.ListOf(s, "gateways"); len(g) == 2 && is6(fmt.Sprint(g[0])) {
		slices.Reverse(g)
	}
	checkExclude(c, s, all)
}

// checkExclude reports exclusions without an effect.
func checkExclude(c *schema.Checker, s spec, all []netip.Prefix) {
	spans := textsOf(s, "exclude")
	for i, text := range spans {
		path := fmt.Sprintf("spec.exclude[%d]", i)
		first, last := ends(text)
		if p := subnetOf(all, first); !p.IsValid() || !p.Contains(last) {
			c.Fault(path, "%s is outside of the subnets", text)
		}
		for _, other := range spans[:i] {
			if from, to := ends(other); from.Is4() == first.Is4() && first.Compare(to) <= 0 && from.Compare(last) <= 0 {
				c.Fault(path, "%s overlaps with %s", text, other)
			}
		}
	}
}

// textOf returns the text in a field, or "".
func textOf(s spec, field string) string {
	text, _ := s[field].(string)
	return text
}

// textsOf returns the texts of a list in a field.
func textsOf(s spec, field string) (out []string) {
	for _, e := range schema.ListOf(s, field) {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// numeric returns a value with the numbers of a decoded specification as int64, which
// the objects of Kubernetes' clients hold.
func numeric(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Int64()
		return n
	case map[string]any:
		for name := range v {
			v[name] = numeric(v[name])
		}
	case []any:
		for i := range v {
			v[i] = numeric(v[i])
		}
	}
	return v
}

// given copies the fields of a specification that are there.
func given(to map[string]any, s spec, fields ...string) map[string]any {
	for _, name := range fields {
		if s[name] != nil {
			to[name] = numeric(s[name])
		}
	}
	return to
}
