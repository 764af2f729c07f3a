package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The keys of the metadata that identify a server.
const (
	ownerKey = "k8splugin_owner"
	hostKey  = "k8splugin_host"
)

// The states and tasks of Nova's servers that this package distinguishes.
const (
	active   = "ACTIVE"
	building = "BUILD"
	broken   = "ERROR"
	deleting = "deleting" // a task
)

// serverName returns the name of a server. It begins with that of the host, because
// scripts decide by it.
func serverName(g nf.MachineGroup, host string) string { return host + "-" + g.Name }

// portName returns the name of the port of a server on a network of the group.
func portName(g nf.MachineGroup, host string, network int) string {
	return fmt.Sprintf("%s-%d", serverName(g, host), network)
}

// mark returns the description of the ports of a group.
func mark(g nf.MachineGroup) string { return "k8splugin " + g.Owner }

// servers returns the servers of a group, oldest first. Nova cannot select by metadata.
func (s *session) servers(ctx context.Context, g nf.MachineGroup) ([]servers.Server, error) {
	pages, err := servers.List(s.compute, servers.ListOpts{Name: g.Name}).AllPages(ctx)
	if err != nil {
		return nil, s.wrong(ctx, "list the servers of", err)
	}
	all, err := servers.ExtractServers(pages)
	if err != nil {
		return nil, s.wrong(ctx, "read the servers of", err)
	}
	all = slices.DeleteFunc(all, func(one servers.Server) bool { return one.Metadata[ownerKey] != g.Owner })
	slices.SortFunc(all, func(a, b servers.Server) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return all, nil
}

// ports returns the ports of a group.
func (s *session) ports(ctx context.Context, g nf.MachineGroup) ([]ports.Port, error) {
	pages, err := ports.List(s.network, ports.ListOpts{Description: mark(g)}).AllPages(ctx)
	if err != nil {
		return nil, s.wrong(ctx, "list the ports of", err)
	}
	all, err := ports.ExtractPorts(pages)
	if err != nil {
		return nil, s.wrong(ctx, "read the ports of", err)
	}
	return slices.DeleteFunc(all, func(p ports.Port) bool { return p.Description != mark(g) }), nil
}

// machines returns the machines of a group, ordered by name. Of several servers for
// one host it returns the oldest.
func (s *session) machines(ctx context.Context, g nf.MachineGroup) ([]nf.Machine, error) {
	all, err := s.servers(ctx, g)
	if err != nil {
		return nil, err
	}
	bound, err := s.ports(ctx, g)
	if err != nil {
		return nil, err
	}
	var out []nf.Machine
	for _, one := range all {
		if !slices.ContainsFunc(out, func(m nf.Machine) bool { return m.Name == one.Metadata[hostKey] }) {
			out = append(out, machineOf(g, one, bound))
		}
	}
	slices.SortFunc(out, func(a, b nf.Machine) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// machineOf returns the machine that a server is.
func machineOf(g nf.MachineGroup, one servers.Server, bound []ports.Port) nf.Machine {
	m := nf.Machine{Name: one.Metadata[hostKey], ID: one.ID, State: nf.MachineStopped, Fault: "its status is " + clip(one.Status), Addresses: map[string]string{}}
	switch {
	case one.TaskState == deleting:
		m.State, m.Fault = nf.MachineFailed, "it is being deleted"
	case one.Status == active:
		m.State, m.Fault = nf.MachineRunning, ""
	case one.Status == building:
		m.State, m.Fault = nf.MachineStarting, ""
	case one.Status == broken:
		m.State = nf.MachineFailed
		if one.Fault.Message != "" {
			m.Fault = clip(one.Fault.Message)
		}
	}
	for i, network := range g.Spec.Networks {
		at := slices.IndexFunc(bound, func(p ports.Port) bool { return p.DeviceID == one.ID && p.Name == portName(g, m.Name, i) })
		if at < 0 || len(bound[at].FixedIPs) == 0 {
			continue
		}
		m.Addresses[network] = bound[at].FixedIPs[0].IPAddress
		if i == 0 {
			m.Address = m.Addresses[network]
		}
	}
	return m
}

// started returns the machines, and whether all of them run and have an address.
func (s *session) started(ctx context.Context, g nf.MachineGroup, names []string) (out []nf.Machine, done bool, err error) {
	all, err := s.machines(ctx, g)
	if err != nil {
		return nil, false, err
	}
	done = true
	for _, name := range names {
		at := slices.IndexFunc(all, func(m nf.Machine) bool { return m.Name == name })
		switch {
		case at < 0:
			return nil, false, failed(name, "it does not exist; another client may have deleted it")
		case all[at].State == nf.MachineFailed, all[at].State == nf.MachineStopped:
			return nil, false, failed(name, all[at].Fault)
		}
		done = done && all[at].State == nf.MachineRunning
		if all[at].State == nf.MachineRunning && all[at].Address == "" {
			return nil, false, failed(name, "it has no address on its first network")
		}
		out = append(out, all[at])
	}
	return out, done, nil
}

func failed(machine, why string) error {
	return nf.E(nf.Failed, "start", "machine "+machine, errors.New(why))
}
