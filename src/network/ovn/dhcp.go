package ovn

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// dhcpShape are the options that OVN's DHCP server sends.
var dhcpShape = schema.Shape{Fields: map[string]schema.Field{
	"lease_time":  schema.Filled(schema.Integer(1, 1<<31-1), int64(3600)),
	"dns_servers": schema.Optional(schema.List(address)), "domain_name": schema.Optional(schema.Matching(domainPattern, "a domain, such as example.com")),
	"ntp_servers": schema.Optional(schema.List(address)), "mtu": schema.Optional(schema.Integer(schema.MinMTU, schema.MaxMTU)),
	"extra": schema.Optional(options),
}}

var (
	domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.]{0,251}[A-Za-z0-9])?$`)
	optionPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// own are the options that other fields set, or that kube-ovn fills in.
var own = []string{"lease_time", "dns_server", "domain_name", "ntp_server", "mtu", "router", "server_id", "server_mac"}

// options checks further options of OVN. kube-ovn drops blanks, and ignores an element
// that it cannot read.
func options(c *schema.Checker, path string, v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		c.Fault(path, "must be an object, got %s", schema.TypeOf(v))
		return nil
	}
	out := map[string]any{}
	for _, name := range schema.SortedKeys(m) {
		at := schema.Member(path, name)
		text, _ := m[name].(string)
		switch {
		case !optionPattern.MatchString(name):
			c.Fault(at, "is not the name of an option of OVN, such as bootfile_name")
		case slices.Contains(own, name):
			c.Fault(at, "is set by another field, or by kube-ovn")
		case text == "" || strings.ContainsAny(text, " ,=\t\r\n"):
			c.Fault(at, "must be text without blanks, ',' and '=': kube-ovn would drop or ignore them")
		}
		out[name] = text
	}
	return out
}

// checkDHCP reports options that no subnet has, and those that kube-ovn cannot pass.
func checkDHCP(c *schema.Checker, s spec, has map[bool]bool) {
	dhcp, _ := s["dhcp"].(map[string]any)
	for i, server := range textsOf(dhcp, "dns_servers") {
		if !has[is6(server)] {
			c.Fault(fmt.Sprintf("spec.dhcp.dns_servers[%d]", i), "%s has no effect: the network has no subnet of its family", server)
		}
	}
	for i, server := range textsOf(dhcp, "ntp_servers") {
		switch {
		case is6(server):
			c.Fault(fmt.Sprintf("spec.dhcp.ntp_servers[%d]", i), "must be an address of IPv4: OVN has no such option for IPv6")
		case i > 0:
			c.Fault(fmt.Sprintf("spec.dhcp.ntp_servers[%d]", i), "is one too many: kube-ovn passes one")
		}
	}
	for _, field := range []string{"ntp_servers", "mtu", "extra"} {
		if dhcp[field] != nil && !has[false] {
			c.Fault("spec.dhcp."+field, "has no effect without a subnet of IPv4")
		}
	}
}

// writeDHCP writes the options into the content of a Subnet.
func writeDHCP(content map[string]any, s spec) {
	dhcp, ok := s["dhcp"].(map[string]any)
	if !ok {
		return
	}
	content["enableDHCP"] = true
	v4, v6 := []string{"lease_time=" + fmt.Sprint(dhcp["lease_time"])}, []string{}
	add := func(to *[]string, name string, values []string) {
		switch len(values) {
		case 0:
		case 1:
			*to = append(*to, name+"="+values[0])
		default: // kube-ovn puts commas in place of the semicolons
			*to = append(*to, name+"={"+strings.Join(values, ";")+"}")
		}
	}
	servers := map[bool][]string{}
	for _, server := range textsOf(dhcp, "dns_servers") {
		servers[is6(server)] = append(servers[is6(server)], server)
	}
	add(&v4, "dns_server", servers[false])
	add(&v6, "dns_server", servers[true])
	if domain := textOf(dhcp, "domain_name"); domain != "" { // OVN needs quotes around text
		add(&v4, "domain_name", []string{strconv.Quote(domain)})
		add(&v6, "domain_search", []string{strconv.Quote(domain)})
	}
	add(&v4, "ntp_server", textsOf(dhcp, "ntp_servers"))
	if dhcp["mtu"] != nil {
		add(&v4, "mtu", []string{fmt.Sprint(dhcp["mtu"])})
	}
	extra, _ := dhcp["extra"].(map[string]any)
	for _, name := range schema.SortedKeys(extra) {
		add(&v4, name, []string{textOf(extra, name)})
	}
	for _, p := range prefixes(s, "subnets") {
		if p.Addr().Is4() {
			content["dhcpV4Options"] = strings.Join(v4, ",")
		} else if len(v6) > 0 {
			content["dhcpV6Options"] = strings.Join(v6, ",")
		}
	}
}

// parsePairs parses a list of KEY=VALUE with commas.
func parsePairs(s string) (string, error) {
	for pair := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || value == "" || strings.ContainsAny(pair, " \t\r\n") || strings.Contains(value, "=") {
			return "", fmt.Errorf("%q is not KEY=VALUE without blanks: kube-ovn would drop or ignore it", nf.Clip(pair, 64))
		}
	}
	return s, nil
}
