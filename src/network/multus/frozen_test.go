package multus_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
)

// TestFrozen changes the fixed addresses of a network.
func TestFrozen(t *testing.T) {
	t.Parallel()
	const two, one, none = `{"fixed": ["10.1.0.9", "10.1.0.10"]}`, `{"fixed": ["10.1.0.10"]}`, `{}`
	cases := map[string]struct {
		reason, before, after string
		attached              bool
		want                  []string
	}{
		"Removed":  {"pods may have the address, which would be given to others", two, one, true, []string{"spec.fixed: must keep 10.1.0.9 while instances are attached"}},
		"All":      {"pods need the definition, which would be deleted", one, none, true, []string{"spec.fixed: must keep 10.1.0.10 while instances are attached"}},
		"Added":    {"an address can be added", one, two, true, nil},
		"Same":     {"or stay", two, two, true, nil},
		"Detached": {"no pod has an address", two, none, false, nil},
		"Garbage":  {"a specification is an object", `[]`, two, true, []string{"spec: cannot be compared with the present one"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, v := range (multus.Driver{}).Frozen(json.RawMessage(tc.before), json.RawMessage(tc.after), tc.attached) {
				got = append(got, v.Field+": "+v.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
