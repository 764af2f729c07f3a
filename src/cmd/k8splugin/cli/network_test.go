package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// TestAttachFlag parses the values of --attach.
func TestAttachFlag(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   wire.Attachment
		wrong  string // in the error; empty: none
	}{
		"Name":    {reason: "a name is enough", text: "oam", want: wire.Attachment{Network: "oam"}},
		"All":     {reason: "ip can be repeated", text: "oam,workload=Deployment/r,interface=net1,ip=10.0.0.9/24,ip=fd00::9/64,mac=02:00:00:00:00:01,default-route=10.0.0.1", want: wire.Attachment{Network: "oam", Workload: "Deployment/r", Interface: "net1", IPs: []string{"10.0.0.9/24", "fd00::9/64"}, MAC: "02:00:00:00:00:01", DefaultRoute: []string{"10.0.0.1"}}},
		"NoName":  {reason: "the name comes first", text: "workload=r", wrong: "must begin with the name"},
		"Empty":   {reason: "nothing is no network", text: "", wrong: "must begin with the name"},
		"Unknown": {reason: "the keys are listed", text: "oam,vlan=1", wrong: `"vlan=1" is not one of create, default-route, driver, interface, ip, mac, workload`},
		"Create":  {reason: "a file has the spec", text: "oam,create=oam.yaml,driver=ovn", want: wire.Attachment{Network: "oam", Create: &wire.Creation{Driver: "ovn"}}},
		"Driver":  {reason: "a driver without a spec creates nothing", text: "oam,driver=ovn", wrong: "driver needs create"},
		"NoValue": {reason: "a key has a value", text: "oam,ip", wrong: `"ip" is not one of`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f attachFlag
			err := f.Set(tc.text)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff([]wire.Attachment{tc.want}, f.all); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
