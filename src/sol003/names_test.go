package sol003

import (
	"maps"
	"testing"
)

// TestMatch matches the names of workloads with those of VDUs.
func TestMatch(t *testing.T) {
	t.Parallel()
	vdus := names{"web": "VDU1", "db": "VDU2"}
	cases := map[string]struct {
		reason    string
		workloads []string
		want      names
	}{
		"Exact":  {"manifests have the names of VDUs", []string{"web", "db"}, names{"web": "VDU1", "db": "VDU2"}},
		"Chart":  {"charts add the release", []string{"vnf1-web", "db-main"}, names{"vnf1-web": "VDU1", "db-main": "VDU2"}},
		"Others": {"a workload whose name begins with that of another one is none", []string{"web", "web-cache", "db"}, names{"web": "VDU1", "db": "VDU2"}},
		"Part":   {"a part of a word is no name", []string{"website", "odb"}, names{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := vdus.match(tc.workloads); !maps.Equal(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
