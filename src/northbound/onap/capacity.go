package onap

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	gibibyte    = 1 << 30
	defaultZone = "default" // of nodes without one

	cpuResource     = "cpu" // in thousandths
	memoryResource  = "memory"
	storageResource = "ephemeral-storage"
)

// Surveys reads what regions offer.
type Surveys interface {
	// RegionCapabilities returns what a region offers; a fresh answer is read now.
	RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error)
}

// capacityRequest asks whether a region has room: OOF asks so before it chooses a region.
type capacityRequest struct {
	CPUs    int64   `json:"vCPU"`
	Memory  float64 `json:"Memory"`  // GiB
	Storage float64 `json:"Storage"` // GiB
}

// capacity is the response to a capacityRequest.
type capacity struct {
	Result bool           `json:"result"` // a zone can take the request
	Zones  []zoneCapacity `json:"AZs"`
}

// zoneCapacity is what the usable nodes of a zone can allocate, and what their pods do
// not request.
type zoneCapacity struct {
	Name         string  `json:"availability-zone-name"`
	CPUTotal     int64   `json:"vCPUTotal"`
	CPUAvail     int64   `json:"vCPUAvail"`
	MemoryTotal  float64 `json:"MemoryTotal"`
	MemoryAvail  float64 `json:"MemoryAvail"`
	StorageTotal float64 `json:"StorageTotal"`
	StorageAvail float64 `json:"StorageAvail"`
}

// noCapacity is the response if the capacity cannot be determined.
type noCapacity struct {
	Result bool   `json:"result"`
	Error  string `json:"error"`
}

// capacities serves checks of the capacity of regions.
type capacities struct{ surveys Surveys }

func (c capacities) routes(on route) {
	on(http.MethodPost, "/{cloud-owner}/{cloud-region}/capacity_check", c.check)
}

func (c capacities) check(w http.ResponseWriter, r *http.Request) error {
	q, err := decode[capacityRequest](r, refuse(http.StatusBadRequest, "Body empty"))
	if err != nil {
		return err
	}
	if q.CPUs < 0 || q.Memory < 0 || q.Storage < 0 {
		return refuse(http.StatusBadRequest, "vCPU, Memory and Storage must not be negative")
	}
	if c.surveys == nil {
		return answer(w, http.StatusInternalServerError, noCapacity{Error: "the service does not survey cloud regions"})
	}
	offers, err := c.surveys.RegionCapabilities(r.Context(), mux.Vars(r)["cloud-region"], true)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return answer(w, http.StatusNotFound, noCapacity{Error: err.Error()})
	case nf.KindOf(err) == nf.Unauthenticated || nf.KindOf(err) == nf.Forbidden:
		return err
	case err != nil:
		return answer(w, http.StatusInternalServerError, noCapacity{Error: err.Error()})
	case offers.Hides("", "nodes") || offers.Hides("", "pods"):
		return answer(w, http.StatusInternalServerError, noCapacity{Error: "the account of the cloud region may not list its nodes and pods"})
	}
	out := capacity{Zones: zonesOf(offers.Rooms)}
	out.Result = slices.ContainsFunc(out.Zones, func(z zoneCapacity) bool {
		return z.CPUAvail >= q.CPUs && z.MemoryAvail >= q.Memory && z.StorageAvail >= q.Storage
	})
	return answer(w, http.StatusOK, out)
}

// zonesOf returns the capacity of the zones of nodes, by name.
func zonesOf(rooms []nf.NodeRoom) []zoneCapacity {
	total, free := map[string]nf.Amounts{}, map[string]nf.Amounts{}
	for _, room := range rooms {
		zone := room.Zone
		if zone == "" {
			zone = defaultZone
		}
		if total[zone] == nil {
			total[zone], free[zone] = nf.Amounts{}, nf.Amounts{}
		}
		total[zone].Add(room.Total)
		free[zone].Add(room.Free)
	}
	out := []zoneCapacity{}
	for _, zone := range slices.Sorted(maps.Keys(total)) {
		all, rest := total[zone], free[zone]
		out = append(out, zoneCapacity{
			Name: zone, CPUTotal: all[cpuResource] / 1000, CPUAvail: max(rest[cpuResource], 0) / 1000,
			MemoryTotal: inGiB(all[memoryResource]), MemoryAvail: inGiB(rest[memoryResource]),
			StorageTotal: inGiB(all[storageResource]), StorageAvail: inGiB(rest[storageResource]),
		})
	}
	return out
}

func inGiB(bytes int64) float64 { return float64(max(bytes, 0)) / gibibyte }
