package multus_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network"
	"github.com/multicloud-k8s/k8splugin/src/network/multus"
)

var (
	_ network.PluginUser   = multus.Driver{}
	_ network.ResourceUser = multus.Driver{}
)

// TestPlugins names the plugins that networks need, with the fields that name them.
func TestPlugins(t *testing.T) {
	cases := map[string]struct {
		reason, spec string
		want         map[string]string
	}{
		"chain":    {"each plugin of the chain, and the IPAM", `{"type": "macvlan", "ipam": {"type": "static"}, "chain": [{"type": "tuning"}]}`, map[string]string{"spec.type": "macvlan", "spec.ipam.type": "static", "spec.chain[0].type": "tuning"}},
		"raw":      {"one plugin", `{"raw": {"type": "ovs", "ipam": {"type": "whereabouts"}}}`, map[string]string{"spec.raw.type": "ovs", "spec.raw.ipam.type": "whereabouts"}},
		"list":     {"a list of plugins", `{"raw": {"plugins": [{"type": "ovs"}, {"type": "sbr"}]}}`, map[string]string{"spec.raw.plugins[0].type": "ovs", "spec.raw.plugins[1].type": "sbr"}},
		"existing": {"those of an existing definition are unknown", `{"existing": {"namespace": "default", "name": "uplink"}}`, map[string]string{}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, multus.Driver{}.Plugins(json.RawMessage(tc.spec))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}
