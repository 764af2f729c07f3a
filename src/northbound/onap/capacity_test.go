package onap_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// RegionCapabilities implements onap.Surveys: the region "east" has two zones.
func (w *world) RegionCapabilities(_ context.Context, id string, _ bool) (nf.RegionCapabilities, error) {
	const gib = 1 << 30
	room := func(zone string, cpus, memory, storage int64) nf.NodeRoom {
		total := nf.Amounts{"cpu": 8000, "memory": 32 * gib, "ephemeral-storage": 100 * gib}
		return nf.NodeRoom{Zone: zone, Total: total, Free: nf.Amounts{"cpu": cpus, "memory": memory * gib, "ephemeral-storage": storage * gib}}
	}
	switch id {
	case "east":
		return nf.RegionCapabilities{Rooms: []nf.NodeRoom{room("az2", 1500, 2, 50), room("az1", 4000, 16, 50), room("az1", 4000, 16, 60), room("", -500, 1, 1)}}, nil
	case "dark":
		return nf.RegionCapabilities{}, &nf.Error{Kind: nf.Unreachable, Op: "read", Subject: "cloud region dark"}
	case "blind":
		return nf.RegionCapabilities{Missing: []nf.MissingRule{{Resource: "nodes"}}}, nil
	}
	return nf.RegionCapabilities{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	const zones = `"AZs":[` +
		`{"availability-zone-name":"az1","vCPUTotal":16,"vCPUAvail":8,"MemoryTotal":64,"MemoryAvail":32,"StorageTotal":200,"StorageAvail":110},` +
		`{"availability-zone-name":"az2","vCPUTotal":8,"vCPUAvail":1,"MemoryTotal":32,"MemoryAvail":2,"StorageTotal":100,"StorageAvail":50},` +
		`{"availability-zone-name":"default","vCPUTotal":8,"vCPUAvail":0,"MemoryTotal":32,"MemoryAvail":1,"StorageTotal":100,"StorageAvail":1}]`
	cases := map[string]struct {
		reason, region, body string
		status               int
		want                 string
	}{
		"Fits":        {"one zone can take it", "east", `{"vCPU":8,"Memory":32,"Storage":110}`, 200, `{"result":true,` + zones + `}`},
		"Fraction":    {"memory may be a fraction", "east", `{"vCPU":1,"Memory":0.5,"Storage":1}`, 200, `{"result":true,` + zones + `}`},
		"CPUs":        {"too many CPUs", "east", `{"vCPU":9,"Memory":1,"Storage":1}`, 200, `{"result":false,` + zones + `}`},
		"Memory":      {"too much memory", "east", `{"vCPU":1,"Memory":33,"Storage":1}`, 200, `{"result":false,` + zones + `}`},
		"Storage":     {"too much storage: zones are not added up", "east", `{"vCPU":1,"Memory":1,"Storage":111}`, 200, `{"result":false,` + zones + `}`},
		"Unknown":     {"an unknown region", "mars", `{"vCPU":1,"Memory":1,"Storage":1}`, 404, `{"result":false,"error":"cannot get cloud region mars: it does not exist"}`},
		"Unreachable": {"a region that does not respond has no capacity", "dark", `{"vCPU":1,"Memory":1,"Storage":1}`, 500, `{"result":false,"error":"cannot read cloud region dark: unreachable"}`},
		"Blind":       {"what cannot be seen is not promised", "blind", `{"vCPU":1,"Memory":1,"Storage":1}`, 500, `{"result":false,"error":"the account of the cloud region may not list its nodes and pods"}`},
		"Negative":    {"a negative number is no request", "east", `{"vCPU":-1,"Memory":1,"Storage":1}`, 400, "vCPU, Memory and Storage must not be negative"},
		"Empty":       {"there must be a body", "east", "", 400, "Body empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.want(t, tc.reason, "POST /acme/"+tc.region+"/capacity_check", tc.body, tc.status, tc.want)
		})
	}
}
