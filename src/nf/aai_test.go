package nf_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestAAIWriter finds out what writes the objects of an instance to A&AI.
func TestAAIWriter(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason          string
		in              nf.Instance
		policy, inForce nf.AAIWriter
	}{
		"Service": {"the service, by default", nf.Instance{}, "", ""},
		"Adapter": {"SO's adapter, once it has subscribed", nf.Instance{AAIAdapter: true}, nf.AAIAdapter, nf.AAIAdapter},
		"None":    {"nothing, if the request says so", nf.Instance{AAI: nf.AAI{Writer: nf.AAINone}, AAIAdapter: true}, nf.AAINone, nf.AAINone},
		"Removed": {"nothing, while a termination removes them; the policy stays", nf.Instance{AAIAdapter: true, Unlisted: true}, nf.AAIAdapter, nf.AAINone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if policy, inForce := tc.in.AAIPolicy().Writer, tc.in.AAIInForce().Writer; policy != tc.policy || inForce != tc.inForce {
				t.Errorf("%s: the policy is %q, and %q is in force", tc.reason, policy, inForce)
			}
		})
	}
}
