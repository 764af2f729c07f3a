package schema

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Checker collects the violations of a specification.
type Checker struct{ Wrong nf.Violations }

// Fault adds a violation.
func (c *Checker) Fault(path, format string, args ...any) {
	c.Wrong = append(c.Wrong, nf.Violation{Field: path, Message: fmt.Sprintf(format, args...)})
}

// Reports reports whether there is a violation of a field.
func (c *Checker) Reports(path string) bool {
	return slices.ContainsFunc(c.Wrong, func(v nf.Violation) bool { return v.Field == path })
}

// Value checks a decoded value of JSON and returns it in its canonical form. It
// reports a wrong value and returns nil.
type Value func(c *Checker, path string, v any) any

// maxText is the maximum length of a text in bytes.
const maxText = 4096

// The limits of MTUs. The lower one is that of IPv4, the upper one that of the
// kernel.
const (
	MinMTU = 68
	MaxMTU = 65535
)

// The forms of names. Those of networks and namespaces are the ones that multus
// accepts in annotations: without dots.
var (
	LabelPattern    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	LinkPattern     = regexp.MustCompile(`^[^\s/:]{1,15}$`)
	ResourcePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// Boolean checks a boolean.
func Boolean(c *Checker, path string, v any) any {
	if b, ok := v.(bool); ok {
		return b
	}
	c.Fault(path, "must be true or false, got %s", TypeOf(v))
	return nil
}

// Integer checks a whole number in a range. Its canonical form is an int64.
func Integer(least, most int64) Value {
	return func(c *Checker, path string, v any) any {
		n, ok := v.(json.Number)
		if !ok {
			c.Fault(path, "must be a whole number from %d to %d, got %s", least, most, TypeOf(v))
			return nil
		}
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil || i < least || i > most {
			c.Fault(path, "must be a whole number from %d to %d, got %s", least, most, nf.Clip(n.String(), 32))
			return nil
		}
		return i
	}
}

// Text checks a text that is not empty.
func Text(c *Checker, path string, v any) any {
	s, ok := v.(string)
	switch {
	case !ok:
		c.Fault(path, "must be text, got %s", TypeOf(v))
		return nil
	case s == "" || len(s) > maxText:
		c.Fault(path, "must have 1 to %d bytes, got %d", maxText, len(s))
		return nil
	}
	return s
}

// Word checks that a text is one of some words.
func Word(words ...string) Value {
	return func(c *Checker, path string, v any) any {
		if s, ok := v.(string); ok && slices.Contains(words, s) {
			return s
		}
		c.Fault(path, "must be one of %s, got %s", strings.Join(words, ", "), Shown(v))
		return nil
	}
}

// Matching checks a text with a pattern, which the message describes.
func Matching(pattern *regexp.Regexp, described string) Value {
	return func(c *Checker, path string, v any) any {
		if s, ok := v.(string); ok && pattern.MatchString(s) {
			return s
		}
		c.Fault(path, "must be %s, got %s", described, Shown(v))
		return nil
	}
}

// Parsed checks a text with a function that returns its canonical form.
func Parsed(parse func(string) (string, error)) Value {
	return func(c *Checker, path string, v any) any {
		s, ok := v.(string)
		if !ok {
			c.Fault(path, "must be text, got %s", TypeOf(v))
			return nil
		}
		canonical, err := parse(s)
		if err != nil {
			c.Fault(path, "%s", err)
			return nil
		}
		return canonical
	}
}

// List checks a list. A wrong element is nil in the canonical form, so that each
// element keeps its index.
func List(of Value) Value {
	return func(c *Checker, path string, v any) any {
		given, ok := v.([]any)
		if !ok {
			c.Fault(path, "must be a list, got %s", TypeOf(v))
			return nil
		}
		out := make([]any, len(given))
		for i := range given {
			out[i] = of(c, fmt.Sprintf("%s[%d]", path, i), given[i])
		}
		return out
	}
}

// Texts checks an object whose values are texts.
func Texts(c *Checker, path string, v any) any {
	given, ok := v.(map[string]any)
	if !ok {
		c.Fault(path, "must be an object, got %s", TypeOf(v))
		return nil
	}
	out := make(map[string]any, len(given))
	for _, name := range SortedKeys(given) {
		out[name] = Text(c, Member(path, name), given[name])
	}
	return out
}

// ParseAddress parses an IP address.
func ParseAddress(s string) (string, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return "", fmt.Errorf("%q is not an IP address", nf.Clip(s, 64))
	}
	return a.Unmap().String(), nil
}

// ParseInterface parses the address of an interface, with its prefix length.
func ParseInterface(s string) (string, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return "", fmt.Errorf("%q is not an IP address with a prefix length, such as 10.1.0.9/24", nf.Clip(s, 64))
	}
	return p.String(), nil
}

// ParseSubnet parses a subnet: an address without host bits, and a prefix length.
func ParseSubnet(s string) (string, error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil || p.Addr().Is4In6():
		return "", fmt.Errorf("%q is not a subnet, such as 10.1.0.0/24", nf.Clip(s, 64))
	case p != p.Masked():
		return "", fmt.Errorf("%s has host bits; the subnet is %s", p, p.Masked())
	}
	return p.String(), nil
}

// ParseMAC parses the MAC address of one interface.
func ParseMAC(s string) (string, error) {
	mac, err := net.ParseMAC(s)
	switch {
	case err != nil || len(mac) != 6:
		return "", fmt.Errorf("%q is not a MAC address, such as 02:00:00:00:00:09", nf.Clip(s, 64))
	case mac[0]&1 != 0:
		return "", fmt.Errorf("%s is a multicast address", mac)
	case slices.Equal(mac, make(net.HardwareAddr, 6)):
		return "", fmt.Errorf("%s is not the address of an interface", mac)
	}
	return mac.String(), nil
}

// TypeOf returns the JSON type of a decoded Value, for people.
func TypeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// Shown returns a text in quotes, and the type of any other value.
func Shown(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(nf.Clip(s, 64))
	}
	return TypeOf(v)
}

// Member returns the path of a field of an object.
func Member(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]") {
		return path + "[" + nf.Clip(name, 64) + "]"
	}
	return path + "." + nf.Clip(name, 64)
}

// ListOf returns the list in a field, or nil.
func ListOf(m map[string]any, name string) []any {
	l, _ := m[name].([]any)
	return l
}
