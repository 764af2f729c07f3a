package ovn_test

import (
	"fmt"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/ovn"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, want string }{
		"kube-ovn/plain":          {"the controller chooses the first address as gateway", " 0 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]"},
		"kube-ovn/dual":           {"a gateway of each family", " 0 [{10.1.0.0/24 10.1.0.254 invalid IP invalid IP} {fd00::/64 fd00::1 invalid IP invalid IP}]"},
		"kube-ovn/vlan":           {"a VLAN of a provider", "net1 100 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]"},
		"kube-ovn/old-vlan":       {"a Vlan that exists has its own number", " 0 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]"},
		"ovn-kubernetes/layer3":   {"each node has a part", " 0 [{10.128.0.0/16 invalid IP invalid IP invalid IP} {fd00::/48 invalid IP invalid IP invalid IP}]"},
		"ovn-kubernetes/localnet": {"a physical network", "tenantblue 100 [{10.1.0.0/24 invalid IP invalid IP invalid IP}]"},
		"nodus/vlan":              {"a provider network has a VLAN", "eth1 100 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]"},
		"nodus/direct":            {"or an interface", "eth1 0 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]"},
		"kud-ovn/ports":           {"OVN's own database has the rest", " 0 []"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ovn.Driver{}.Layout(nf.Network{Name: "oam", Spec: normal(t, networks[name].spec, regions[networks[name].region])})
			if text := fmt.Sprint(got.Physical, " ", got.VLAN, " ", got.Ranges); err != nil || text != tc.want {
				t.Errorf("%s: %s (%v), want %s", tc.reason, text, err, tc.want)
			}
		})
	}
}
