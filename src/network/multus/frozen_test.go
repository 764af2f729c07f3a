package multus_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/network/multus"
)

// TestFrozen changes networks that may have attached pods.
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
		"Resource": {"the containers ask for the resource", `{"resource_name": "a/b"}`, `{"resource_name": "a/c"}`, true, []string{"spec.resource_name: cannot be changed while instances are attached: it is in the templates of their pods"}},
		"Free":     {"no container asks for it", `{"resource_name": "a/b"}`, `{"resource_name": "a/c"}`, false, nil},
		"Existing": {"the pods name the definition", `{"existing": {"name": "a", "namespace": "n"}}`, `{"existing": {"name": "b", "namespace": "n"}}`, true, []string{"spec.existing: cannot be changed while instances are attached: it is in the templates of their pods"}},
		"Defined":  {"and not one of this service", `{"existing": {"name": "a", "namespace": "n"}}`, `{"type": "macvlan"}`, true, []string{"spec.existing: cannot be changed while instances are attached: it is in the templates of their pods"}},
		"Type":     {"a definition can have another configuration", `{"type": "macvlan"}`, `{"type": "ipvlan"}`, true, nil},
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
