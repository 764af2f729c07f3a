package nf

import (
	"fmt"
	"strings"
)

// Machines describes the virtual machines of an OpenStack cloud that the hosts of a
// site are. Images, flavors, networks and security groups are given by id or name.
type Machines struct {
	Cloud          string   `json:"cloud_region_id"` // a region of the type openstack
	Image          string   `json:"image"`
	Flavor         string   `json:"flavor"`
	Networks       []string `json:"networks"` // each machine has a port on each; it is reached on the first
	KeyPair        string   `json:"key_pair,omitempty"`
	SecurityGroups []string `json:"security_groups,omitempty"` // empty: the default of the cloud
}

// MachineGroup is the machines of one owner. The machines carry the owner, so that
// they are found after a crash.
type MachineGroup struct {
	Owner string // unique for all times, such as a UID
	Name  string // becomes a part of the names of the machines
	Spec  Machines
}

// Machine is a virtual machine.
type Machine struct {
	Name      string // of the host, without the name of the group
	ID        string // in the cloud
	State     MachineState
	Fault     string            // of a failed one
	Address   string            // on the first network; empty: it has none yet
	Addresses map[string]string // by network, as the group's Spec names it
}

// MachineState says whether a machine is usable.
type MachineState string

// The states of machines.
const (
	MachineStarting MachineState = "starting"
	MachineRunning  MachineState = "running"
	MachineFailed   MachineState = "failed" // it does not run, or is being deleted
)

// The limits on machines.
const (
	maxMachineNetworks = 8
	maxCloudName       = 255 // characters of the names of objects of a cloud
)

// Violations returns a violation for each field that is wrong.
func (m Machines) Violations(at string) Violations {
	v := CheckID(at+".cloud_region_id", m.Cloud)
	name := func(field, text string, needed bool) {
		switch {
		case text == "" && needed:
			v = append(v, Violation{Field: at + "." + field, Message: "is missing"})
		case len(text) > maxCloudName || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
			v = append(v, Violation{Field: at + "." + field, Message: fmt.Sprintf("is longer than %d bytes, or has a control character", maxCloudName)})
		}
	}
	name("image", m.Image, true)
	name("flavor", m.Flavor, true)
	name("key_pair", m.KeyPair, false)
	if len(m.Networks) == 0 || len(m.Networks) > maxMachineNetworks {
		v = append(v, Violation{Field: at + ".networks", Message: fmt.Sprintf("must be 1 to %d", maxMachineNetworks)})
	}
	for i, network := range m.Networks {
		name(fmt.Sprintf("networks[%d]", i), network, true)
	}
	for i, group := range m.SecurityGroups {
		name(fmt.Sprintf("security_groups[%d]", i), group, true)
	}
	return v
}
