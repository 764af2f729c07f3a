package multus_test

import (
	"fmt"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, spec, want string }{
		"HostLocal": {
			"a range with its limits", `{"type": "macvlan", "master": "eth1", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.20", "gateway": "10.1.0.1"}]]}}`,
			"eth1 0 [{10.1.0.0/24 10.1.0.1 10.1.0.10 10.1.0.20}]",
		},
		"Sets": {
			"both families", `{"type": "macvlan", "master": "eth1", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]]}}`,
			"eth1 0 [{10.1.0.0/24 invalid IP invalid IP invalid IP} {fd00::/64 invalid IP invalid IP invalid IP}]",
		},
		"Whereabouts": {
			"the limits may be in the range, and the gateway beside it", `{"type": "macvlan", "master": "eth1", "ipam": {"type": "whereabouts", "range": "10.1.0.10-10.1.0.20/24", "gateway": "10.1.0.1"}}`,
			"eth1 0 [{10.1.0.0/24 10.1.0.1 10.1.0.10 10.1.0.20}]",
		},
		"Static": {
			"fixed addresses have a subnet", `{"type": "macvlan", "master": "eth1", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.9/24", "gateway": "10.1.0.1"}]}}`,
			"eth1 0 [{10.1.0.0/24 10.1.0.1 invalid IP invalid IP}]",
		},
		"VLAN":   {"the plugin vlan", `{"type": "vlan", "master": "eth1", "vlanId": 103, "ipam": {"type": "dhcp"}}`, "eth1 103 []"},
		"Bridge": {"a bridge has no underlay", `{"type": "bridge", "bridge": "br0", "vlan": 7}`, " 7 []"},
		"Device": {"a device of the host", `{"type": "host-device", "device": "eth2"}`, "eth2 0 []"},
		"Exists": {"a definition that exists says nothing", `{"existing": {"name": "lan", "namespace": "infra"}}`, " 0 []"},
		"Raw":    {"a configuration of CNI is read, too", `{"raw": {"cniVersion": "1.0.0", "type": "macvlan", "master": "eth3"}}`, "eth3 0 []"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := multus.Driver{}.Layout(nf.Network{Name: "oam", Spec: normal(t, tc.spec)})
			if text := fmt.Sprint(got.Physical, " ", got.VLAN, " ", got.Ranges); err != nil || text != tc.want {
				t.Errorf("%s: %s (%v), want %s", tc.reason, text, err, tc.want)
			}
		})
	}
	if _, err := (multus.Driver{}).Layout(nf.Network{Name: "oam", Spec: []byte("{")}); err == nil {
		t.Error("a specification that is not JSON")
	}
}
