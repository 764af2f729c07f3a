package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// TestWorkloadFlag parses the values of --workload-cluster.
func TestWorkloadFlag(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   wire.WorkloadCluster
		wrong  string // in the error; empty: none
	}{
		"Name": {reason: "the region has the name of the Cluster", text: "edge", want: wire.WorkloadCluster{Cluster: "edge", Region: "edge"}},
		"All": {
			reason: "every key", text: "edge,region=edge-1,namespace=clusters,credentials=secret,server=https://10.0.0.1:6443,ready-when=usable,hand-over=https://example.org/in",
			want: wire.WorkloadCluster{
				Cluster: "edge", Region: "edge-1", Namespace: "clusters", Credentials: nf.SecretCredentials, Server: "https://10.0.0.1:6443",
				ReadyWhen: nf.ReadyUsable, HandOver: "https://example.org/in",
			},
		},
		"NoName":  {reason: "the name comes first", text: "region=edge-1", wrong: "does not begin with the name of a Cluster"},
		"Empty":   {reason: "nothing is no Cluster", text: "", wrong: "does not begin with the name of a Cluster"},
		"Unknown": {reason: "the keys are listed", text: "edge,zone=1", wrong: `"zone=1" is not one of credentials, hand-over, namespace, ready-when, region, server`},
		"NoValue": {reason: "a key has a value", text: "edge,region=", wrong: `"region=" is not one of`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f workloadFlag
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
			if diff := cmp.Diff([]wire.WorkloadCluster{tc.want}, f.all); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
