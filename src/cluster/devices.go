package cluster

import (
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// resourceSlice is a ResourceSlice, as far as it counts devices.
type resourceSlice struct {
	Spec struct {
		Driver string `json:"driver"`
		Pool   struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
			Slices     int    `json:"resourceSliceCount"`
		} `json:"pool"`
		Devices []struct {
			Name string `json:"name"`
		} `json:"devices"`
	} `json:"spec"`
}

// resourceClaim is a ResourceClaim, as far as it names devices.
type resourceClaim struct {
	Status struct {
		Allocation struct {
			Devices struct {
				Results []struct {
					Driver string `json:"driver"`
					Pool   string `json:"pool"`
					Device string `json:"device"`
				} `json:"results"`
			} `json:"devices"`
		} `json:"allocation"`
	} `json:"status"`
}

// device names a device of Dynamic Resource Allocation.
type device struct{ driver, pool, name string }

// devicePool is the newest generation of a pool of devices.
type devicePool struct {
	generation  int64
	slices, all int // read, and in the whole pool
	devices     []string
}

// sliceCensus collects the devices of pools. Its keys have no name of a device.
type sliceCensus map[device]*devicePool

func (s sliceCensus) add(r resourceSlice) {
	of := device{driver: r.Spec.Driver, pool: r.Spec.Pool.Name}
	p := s[of]
	if p == nil || p.generation < r.Spec.Pool.Generation {
		p = &devicePool{generation: r.Spec.Pool.Generation, all: r.Spec.Pool.Slices}
		s[of] = p
	}
	if p.generation > r.Spec.Pool.Generation {
		return
	}
	p.slices++
	for _, d := range r.Spec.Devices {
		p.devices = append(p.devices, d.Name)
	}
}

// claims adds the devices of a claim.
func (c resourceClaim) claims(devices map[device]bool) {
	for _, r := range c.Status.Allocation.Devices.Results {
		devices[device{r.Driver, r.Pool, r.Device}] = true
	}
}

// counts returns the number of devices of each driver, and of those that no claim has.
// It leaves out pools that are not complete: the scheduler does not use them either.
func (s sliceCensus) counts(claimed map[device]bool) []nf.DeviceCount {
	sums := map[string]nf.DeviceCount{}
	for of, p := range s {
		if p.slices != p.all {
			continue
		}
		sum := sums[of.driver]
		sum.Driver = of.driver
		sum.Total += len(p.devices)
		for _, name := range p.devices {
			if !claimed[device{of.driver, of.pool, name}] {
				sum.Free++
			}
		}
		sums[of.driver] = sum
	}
	var out []nf.DeviceCount
	for _, driver := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[driver])
	}
	return out
}
