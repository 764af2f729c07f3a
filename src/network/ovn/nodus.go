package ovn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/network/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var (
	nodusKind         = nf.Ref{Group: "k8s.plugin.opnfv.org", Version: "v1alpha1", Kind: "Network"}
	nodusProviderKind = nf.Ref{Group: "k8s.plugin.opnfv.org", Version: "v1alpha1", Kind: "ProviderNetwork"}
)

var (
	link     = schema.Matching(schema.LinkPattern, "the name of an interface: 1 to 15 characters, without blanks, '/' and ':'")
	selector = schema.Filled(schema.Word("all", "any", "specific"), "all")
	labels   = schema.Optional(schema.List(schema.Text))

	nodusShape = schema.Shape{
		Fields: map[string]schema.Field{
			"subnets": subnets, "gateways": gateways, "exclude": exclude, "routes": routes,
			"vlan": schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{
				"vlanId": schema.Required(schema.Integer(1, 4094)), "providerInterfaceName": schema.Required(link), "logicalInterfaceName": schema.Optional(link),
				"vlanNodeSelector": selector, "nodeLabelList": labels,
			}})),
			"direct": schema.Optional(schema.Object(schema.Shape{Fields: map[string]schema.Field{
				"providerInterfaceName": schema.Required(link), "directNodeSelector": selector, "nodeLabelList": labels,
			}})),
			"dhcp": refused("nodus has no DHCP server"),
			"dns":  refused("nodus stores it, and no part of nodus reads it"),
		},
		Apart: [][2]string{{"vlan", "direct"}},
	}
)

func checkNodus(c *schema.Checker, s spec, _ nf.NetworkRegion) {
	checkAddresses(c, s)
	for _, kind := range []string{"vlan", "direct"} {
		m, _ := s[kind].(map[string]any)
		if m != nil && (m[kind+"NodeSelector"] == "specific") != (m["nodeLabelList"] != nil) {
			c.Fault("spec."+kind+".nodeLabelList", "is required for the selector specific, and for no other one")
		}
	}
}

func nodusObjects(n nf.Network, namespace string, s spec) ([]*unstructured.Unstructured, error) {
	kind, content := nodusKind, given(map[string]any{"cniType": "ovn4nfv"}, s, "routes")
	for i, p := range prefixes(s, "subnets") {
		field := "ipv4Subnets"
		if p.Addr().Is6() {
			field = "ipv6Subnets"
		}
		content[field] = []any{nodusSubnet(s, p, i)}
	}
	for name, provider := range map[string]string{"vlan": "VLAN", "direct": "DIRECT"} {
		m, ok := s[name].(map[string]any)
		if !ok {
			continue
		}
		if m["vlanId"] != nil {
			m["vlanId"] = fmt.Sprint(m["vlanId"]) // nodus wants a text
		}
		kind, content["providerNetType"], content[name] = nodusProviderKind, provider, m
	}
	d, err := definition(n, namespace, map[string]any{"cniVersion": "0.3.1", "type": "ovn4nfvk8s-cni", "nfn-network": n.Name})
	return []*unstructured.Unstructured{object(kind, namespace, n.Name, content), d}, err
}

// nodusSubnet returns a subnet with its gateway and its exclusions.
func nodusSubnet(s spec, p netip.Prefix, i int) map[string]any {
	out := map[string]any{"name": fmt.Sprintf("subnet%d", i+1), "subnet": p.String()}
	for _, text := range textsOf(s, "gateways") {
		if a, err := netip.ParseAddr(text); err == nil && p.Contains(a) {
			out["gateway"] = fmt.Sprintf("%s/%d", a, p.Bits())
		}
	}
	var outside []string
	for _, span := range textsOf(s, "exclude") {
		if first, _ := ends(span); p.Contains(first) {
			outside = append(outside, span)
		}
	}
	if len(outside) > 0 {
		out["excludeIps"] = strings.Join(outside, " ")
	}
	return out
}

// nodusAnnotation lists the networks of a pod. Their interfaces must have names there.
const nodusAnnotation = "k8s.plugin.opnfv.org/nfn-network"

// connectNodus writes the annotation of nodus. It lists all networks of a pod, so a pod
// can have only one attachment to a network of nodus.
func connectNodus(t *attaching) {
	if t.asked.Interface == "" {
		t.checker.Fault("interface", "is required: the annotation of nodus names it")
	}
	entry := map[string]string{"name": t.network.Name, "interface": t.asked.Interface, "defaultGateway": "false"}
	if ips := t.ips(); len(ips) > 0 {
		schema.Single(t.checker, "ips", "a fixed address", t.replicas)
		if len(ips) > 1 {
			t.checker.Fault("ips[1]", "is one too many: nodus takes one")
		}
		entry["ipAddress"] = ips[0].Addr().String()
	}
	if mac := t.mac(); mac != "" {
		entry["macAddress"] = mac
	}
	t.unlimited("nodus has no limits for an attachment")
	text, err := json.Marshal(map[string]any{"type": "ovn4nfv", "interface": []any{entry}})
	if err != nil {
		t.checker.Fault("interface", "cannot be encoded")
	}
	t.annotations[nodusAnnotation] = string(text)
}
