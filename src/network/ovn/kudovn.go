package ovn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var portPattern = regexp.MustCompile(`^[^\s;=]{1,253}$`)

// kudOVN is the flavor of kud's role ovn, and its CNI plugin.
const kudOVN = "kud-ovn"

const inOVN = "set it in OVN, on the logical switch"

var kudShape = schema.Shape{Fields: map[string]schema.Field{
	"mtu": schema.Optional(schema.Integer(schema.MinMTU, schema.MaxMTU)), "routes": routes,
	"ports": schema.Optional(schema.List(schema.Object(schema.Shape{
		Fields: map[string]schema.Field{
			"name": schema.Required(schema.Matching(portPattern, "the name of a logical switch port, without blanks, ';' and '='")),
			"mac":  schema.Required(schema.Parsed(schema.ParseMAC)),
			"ips":  schema.Required(families(schema.Parsed(schema.ParseInterface), "address")),
		},
	}))),
	"subnets": refused(inOVN), "dhcp": refused(inOVN), "dns": refused(inOVN),
}}

// checkKud reports ports that have the name or an address of another one.
func checkKud(c *schema.Checker, s spec, _ nf.NetworkRegion) {
	seen := map[any]bool{}
	for i, v := range schema.ListOf(s, "ports") {
		port, _ := v.(map[string]any)
		once := func(path string, v any) {
			if v != nil && seen[v] {
				c.Fault(fmt.Sprintf("spec.ports[%d].%s", i, path), "%v is that of another port", v)
			}
			seen[v] = true
		}
		once("name", port["name"])
		once("mac", port["mac"])
		for j, text := range textsOf(port, "ips") {
			address, _, _ := strings.Cut(text, "/")
			once(fmt.Sprintf("ips[%d]", j), address)
		}
	}
}

// kudObjects returns a definition that asks the controller of the role for a logical
// switch, with a port for each interface, unless the specification names the ports.
func kudObjects(n nf.Network, namespace string, s spec) ([]*unstructured.Unstructured, error) {
	config := given(map[string]any{
		"cniVersion": "0.4.0", "type": kudOVN, "capabilities": map[string]any{"ips": true}, "ipam": given(map[string]any{"type": "static"}, s, "routes"),
	}, s, "mtu")
	if !hasPorts(s) {
		config["switch"] = true
	}
	d, err := definition(n, namespace, config)
	return []*unstructured.Unstructured{d}, err
}

func hasPorts(s spec) bool { return len(schema.ListOf(s, "ports")) > 0 }

// frozenKud reports a move between a switch of the controller and ports made by hand, and
// ports that are no longer as the templates of pods have them.
func frozenKud(c *schema.Checker, before, after spec, attached bool) {
	if !attached {
		return
	}
	if hasPorts(before) != hasPorts(after) {
		c.Fault("spec.ports", "cannot be added or removed while pods are attached: their interfaces are on another logical switch")
		return
	}
	for _, port := range schema.ListOf(before, "ports") {
		same := func(other any) bool { return equal(port, other) }
		if fields, _ := port.(map[string]any); !slices.ContainsFunc(schema.ListOf(after, "ports"), same) {
			c.Fault("spec.ports", "must keep the port %v as it is while pods are attached: its name and addresses are in their templates", fields["name"])
		}
	}
}

// Plugins returns the CNI plugin that kud's role puts on the nodes, by the field that asks
// for it. The controllers of the other flavors install their own plugins.
func (Driver) Plugins(raw json.RawMessage) map[string]string {
	if s, err := schema.Decode(raw); err == nil && s[flavorField] == kudOVN {
		return map[string]string{"spec." + flavorField: kudOVN}
	}
	return nil
}

// connectKud chooses the logical port of the interface: one of the specification, by its
// addresses; or, without ports there, that which the plugin names after the pod.
func connectKud(t *attaching) {
	t.unlimited("limit the port in OVN")
	ips, mac := t.ips(), t.mac()
	if hasPorts(t.spec) {
		t.usePort(schema.ListOf(t.spec, "ports"), ips, mac)
		return
	}
	if len(ips) == 0 {
		t.checker.Fault("ips", "is required: the network gives no addresses")
		return
	}
	schema.Single(t.checker, "ips", "a fixed address", t.replicas)
	t.selection["ips"] = texts(ips, true)
	if mac != "" {
		t.selection["cni-args"] = map[string]any{"mac": mac}
	}
}

// usePort selects the port that has all addresses of the attachment.
func (t *attaching) usePort(ports []any, ips []netip.Prefix, mac string) {
	schema.Single(t.checker, "network", "a logical port", t.replicas)
	at := slices.IndexFunc(ports, func(v any) bool {
		port, _ := v.(map[string]any)
		for _, p := range ips {
			if !slices.Contains(textsOf(port, "ips"), p.String()) {
				return false
			}
		}
		return mac == "" || port["mac"] == mac
	})
	switch {
	case len(t.checker.Wrong) > 0:
	case len(ips) == 0 && mac == "":
		t.checker.Fault("ips", "is required, or mac: it selects one of the ports of the network")
	case at < 0 && len(ips) > 0:
		t.checker.Fault("ips", "no port of the network has these addresses, and this MAC address if there is one")
	case at < 0:
		t.checker.Fault("mac", "no port of the network has the MAC address %s", mac)
	default:
		port, _ := ports[at].(map[string]any)
		t.selection["ips"] = port["ips"]
		t.selection["cni-args"] = map[string]any{"port": port["name"], "mac": port["mac"]}
	}
}
