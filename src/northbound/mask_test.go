package northbound_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestMask masks the secrets of objects, and finds the masks that come back.
func TestMask(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, given, want string
		wrong               int // masks in what is shown
	}{
		"Names": {"names of secrets are found in each spelling", `{"Pass_Word": "x", "api-key": 1, "root.passwd": "x", "area": "a", "use_helm": true}`, `{"Pass_Word": "***", "api-key": "***", "root.passwd": "***", "area": "a", "use_helm": true}`, 3},
		"Refs":  {"the name of a Secret is not what it holds", `{"secret_name": "db"}`, `{"secret_name": "db"}`, 0},
		"Deep":  {"at any depth", `{"a": [{"db": {"token": {"b": "x"}}}]}`, `{"a": [{"db": {"token": "***"}}]}`, 1},
		"Helm":  {"a dictionary of Tacker", `{"helm_info": {"masternode_ip": ["192.0.2.1"], "masternode_username": "u", "masternode_password": "x"}}`, `{"helm_info": {"masternode_ip": ["192.0.2.1"], "masternode_username": "u", "masternode_password": "***"}}`, 1},
		"Text":  {"the same as a text", `{"helm_info": "{'masternode_password':'x'}"}`, `{"helm_info": "***"}`, 1},
		"List":  {"or as a list", `{"helm_info": ["{'masternode_password':'x'}"]}`, `{"helm_info": "***"}`, 1},
		"Plain": {"a mask elsewhere is a value", `{"area": "***"}`, `{"area": "***"}`, 0},
		"Empty": {"nothing is hidden in nothing", `{}`, `{}`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given, want := object(t, tc.given), object(t, tc.want)
			shown := northbound.MaskFields(given, "***")
			if d := cmp.Diff(want, shown); d != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, d)
			}
			if wrong := northbound.CheckMasks("extra", shown, "***"); len(wrong) != tc.wrong {
				t.Errorf("%s: %v, want %d violations", tc.reason, wrong, tc.wrong)
			}
			if wrong := northbound.CheckMasks("extra", given, "***"); len(wrong) > 0 {
				t.Errorf("%s: what was given has masks: %v", tc.reason, wrong)
			}
		})
	}
	if northbound.MaskFields(nil, "***") != nil {
		t.Error("no object is masked as one")
	}
}

func object(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
