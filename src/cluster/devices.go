package cluster

import (
	"cmp"
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
		NodeName string        `json:"nodeName"` // of all devices; empty: they have several nodes, or their own
		Devices  []sliceDevice `json:"devices"`
	} `json:"spec"`
}

// sliceDevice is a device of a ResourceSlice.
type sliceDevice struct {
	Name       string `json:"name"`
	NodeName   string `json:"nodeName"`
	Attributes map[string]struct {
		Int  *int64  `json:"int"`
		Ints []int64 `json:"ints"` // the physical one is the first
	} `json:"attributes"`
	Taints []struct {
		Effect string `json:"effect"`
	} `json:"taints"`
}

// numaAttributes are the attributes that name the NUMA node of a device: that of
// Kubernetes, and that of the driver for SR-IOV.
var numaAttributes = [...]string{"resource.kubernetes.io/numaNode", "dra.net/numaNode"}

// numa returns the NUMA node of the device, and whether it is known.
func (d sliceDevice) numa() (int64, bool) {
	for _, name := range numaAttributes {
		switch value := d.Attributes[name]; {
		case value.Int != nil && *value.Int >= 0:
			return *value.Int, true
		case len(value.Ints) > 0:
			return value.Ints[0], true
		}
	}
	return 0, false
}

// shown returns what is counted of a device of a slice.
func (r resourceSlice) shown(d sliceDevice) poolDevice {
	out := poolDevice{name: d.Name, node: cmp.Or(r.Spec.NodeName, d.NodeName), numa: unknownNUMA}
	for _, t := range d.Taints {
		out.tainted = out.tainted || t.Effect == "NoSchedule" || t.Effect == "NoExecute"
	}
	if numa, known := d.numa(); known {
		out.numa = numa
	}
	return out
}

// unknownNUMA stands for a NUMA node that is not known.
const unknownNUMA = -1

// poolDevice is a device of a pool.
type poolDevice struct {
	name, node string // node is empty if several nodes have the device
	numa       int64
	tainted    bool // pods do not get it
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
	devices     []poolDevice
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
		p.devices = append(p.devices, r.shown(d))
	}
}

// claims adds the devices of a claim.
func (c resourceClaim) claims(devices map[device]bool) {
	for _, r := range c.Status.Allocation.Devices.Results {
		devices[device{r.Driver, r.Pool, r.Device}] = true
	}
}

// frees reports whether a device of the pool is free.
func (of device) frees(d poolDevice, claimed map[device]bool) bool {
	return !d.tainted && !claimed[device{of.driver, of.pool, d.name}]
}

// nodes returns the devices that belong to one node, by node, driver and NUMA node.
func (s sliceCensus) nodes(claimed map[device]bool) []nf.NodeDevices {
	sums := map[nodeDriver]*nf.NodeDevices{}
	for of, p := range s {
		if p.slices != p.all {
			continue
		}
		for _, d := range p.devices {
			if d.node == "" {
				continue
			}
			key := nodeDriver{d.node, of.driver}
			if sums[key] == nil {
				sums[key] = &nf.NodeDevices{Node: d.node, Driver: of.driver}
			}
			sums[key].Add(d.numa, of.frees(d, claimed))
		}
	}
	var out []nf.NodeDevices
	for _, sum := range sums {
		slices.SortFunc(sum.NUMA, func(a, b nf.NUMADevices) int { return cmp.Compare(a.Node, b.Node) })
		out = append(out, *sum)
	}
	return out
}

// nodeDriver is a driver on a node.
type nodeDriver struct{ node, driver string }

// counts returns the number of devices of each driver, and of those that no claim has.
// It leaves out pools that are not complete: the scheduler does not use them either. A
// device with a taint is not free.
func (s sliceCensus) counts(claimed map[device]bool) []nf.DeviceCount {
	sums := map[string]nf.DeviceCount{}
	for of, p := range s {
		if p.slices != p.all {
			continue
		}
		sum := sums[of.driver]
		sum.Driver = of.driver
		sum.Total += len(p.devices)
		for _, d := range p.devices {
			if of.frees(d, claimed) {
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
