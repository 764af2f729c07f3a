package sol003_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestConnect changes the networks of connection points.
func TestConnect(t *testing.T) {
	at := func(point, network string, ips ...string) nf.Attachment {
		return nf.Attachment{Network: network, Workload: "web", Point: point, IPs: ips}
	}
	fixed := nf.Attachment{Network: "red", Workload: "web", Interface: "data"}
	type list = []nf.Attachment
	cases := map[string]struct {
		reason               string
		before, wanted, want list
	}{
		"Moved":     {"a point leaves its former network", list{at("CP1", "blue")}, list{at("CP1", "green")}, list{at("CP1", "green")}},
		"Two":       {"two entries on one network are two interfaces", list{at("CP1", "blue")}, list{at("CP1", "green"), at("CP1", "green")}, list{at("CP1", "green"), at("CP1", "green")}},
		"Fewer":     {"the entries of a point replace all that it has", list{at("CP1", "blue"), at("CP1", "red")}, list{at("CP1", "blue", "10.0.0.1")}, list{at("CP1", "blue", "10.0.0.1")}},
		"Others":    {"other points, and their places, stay", list{at("CP1", "blue"), at("CP2", "blue"), fixed}, list{at("CP1", "green")}, list{at("CP1", "green"), at("CP2", "blue"), fixed}},
		"Swapped":   {"two points can exchange their networks", list{at("CP1", "blue"), at("CP2", "red")}, list{at("CP2", "blue"), at("CP1", "red")}, list{at("CP1", "red"), at("CP2", "blue")}},
		"New":       {"a point without a network gets one", list{at("CP1", "blue")}, list{at("CP3", "red")}, list{at("CP1", "blue"), at("CP3", "red")}},
		"Earlier":   {"an attachment whose point was not stored is found by its network", list{at("", "blue"), fixed}, list{at("CP1", "blue", "10.0.0.1")}, list{at("CP1", "blue", "10.0.0.1"), fixed}},
		"Other":     {"one of another network may be that of another point", list{at("", "blue")}, list{at("CP1", "green")}, list{at("", "blue"), at("CP1", "green")}},
		"Pointless": {"a stored request without points replaces by the network", list{at("", "blue"), at("CP1", "red")}, list{at("", "blue", "10.0.0.1"), at("", "green")}, list{at("", "blue", "10.0.0.1"), at("CP1", "red"), at("", "green")}},
		"Interface": {"or by the interface", list{fixed}, list{{Network: "blue", Workload: "web", Interface: "data"}}, list{{Network: "blue", Workload: "web", Interface: "data"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id, req := create(t, m), instantiate
				req.Networks = tc.before
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, req) })
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
					return m.Connect(t.Context(), id, nf.ConnectVNFRequest{Networks: tc.wanted})
				})
				in, err := w.engine.Instance(t.Context(), id)
				must(t, err)
				if diff := cmp.Diff(tc.want, in.Networks); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}
