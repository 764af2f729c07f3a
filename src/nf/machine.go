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
	Fault     string            // why it does not run
	Address   string            // on the first network; empty: it has none yet
	Addresses map[string]string // by network, as the group's Spec names it
}

// MachineState says whether a machine is usable.
type MachineState string

// The states of machines.
const (
	MachineStarting MachineState = "starting"
	MachineRunning  MachineState = "running"
	MachineStopped  MachineState = "stopped" // it does not run, and may be started
	MachineFailed   MachineState = "failed"  // it cannot run, or is being deleted
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

// The limits on the machines of a site.
const (
	MaxControlPlanes = 7
	maxWorkers       = MaxSiteHosts - MaxControlPlanes
)

// sshPort is the port on which machines are reached.
const sshPort = 22

// MachineHosts returns the hosts of a new site that are machines: master1, worker1 and
// so on. Scripts for clusters of OpenStack decide by these names.
func MachineHosts(user string, controlPlanes, workers int) []SiteHost {
	var out []SiteHost
	for i := range min(max(controlPlanes, 0), MaxControlPlanes+1) {
		out = append(out, SiteHost{Name: fmt.Sprintf("master%d", i+1), Port: sshPort, User: user, Role: ControlPlane})
	}
	for range min(max(workers, 0), maxWorkers+1) {
		out = append(out, WorkerMachine(out, user))
	}
	return out
}

// WorkerMachine returns the next worker of a site whose hosts are machines: with the
// first name that no host has.
func WorkerMachine(hosts []SiteHost, user string) SiteHost {
	taken := map[string]bool{}
	for _, h := range hosts {
		taken[h.Name] = true
	}
	n := 1
	for taken[fmt.Sprintf("worker%d", n)] {
		n++
	}
	return SiteHost{Name: fmt.Sprintf("worker%d", n), Port: sshPort, User: user, Role: Worker}
}

// machineViolations returns the violations of a new site whose hosts are machines.
func (s Site) machineViolations() Violations {
	v := s.Machines.Violations("machines")
	masters := 0
	for i, h := range s.Hosts {
		if h.Role == ControlPlane {
			masters++
		}
		if i == 0 && !userPattern.MatchString(h.User) {
			v = append(v, Violation{Field: "user", Message: fmt.Sprintf("%q is not a user's name; give the user of the image", h.User)})
		}
	}
	if masters < 1 || masters > MaxControlPlanes {
		v = append(v, Violation{Field: "machines.control_planes", Message: fmt.Sprintf("must be between 1 and %d", MaxControlPlanes)})
	}
	if len(s.Hosts)-masters > maxWorkers {
		v = append(v, Violation{Field: "machines.workers", Message: fmt.Sprintf("must be between 0 and %d", maxWorkers)})
	}
	if !s.FirstUse {
		v = append(v, Violation{Field: "trust_on_first_use", Message: "must be true: the keys of new machines are not known"})
	}
	return v
}

// validWorkers returns the violations of a number of workers.
func validWorkers(n *int) Violations {
	if n != nil && (*n < 0 || *n > maxWorkers) {
		return Violations{{Field: "machines.workers", Message: fmt.Sprintf("must be between 0 and %d", maxWorkers)}}
	}
	return nil
}
