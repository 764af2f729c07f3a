package openstack

import (
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// create creates the servers that do not exist, and their ports. Of several servers
// for one host, which concurrent calls may have created, it keeps the oldest.
func (s *session) create(ctx context.Context, g nf.MachineGroup, names []string) error {
	all, err := s.servers(ctx, g)
	if err != nil {
		return err
	}
	exist := map[string]bool{}
	for _, one := range all {
		if name := one.Metadata[hostKey]; !exist[name] {
			exist[name] = true
		} else if err := s.deleteServer(ctx, one.ID); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return exist[name] })
	if len(missing) == 0 {
		return nil
	}
	ids, err := s.resolve(ctx, g.Spec)
	if err != nil {
		return err
	}
	free, err := s.ports(ctx, g)
	if err != nil {
		return err
	}
	for _, name := range missing {
		if err := s.createServer(ctx, g, name, creation{ids, free}); err != nil {
			return err
		}
	}
	return nil
}

// creation is what all servers that one call creates have in common.
type creation struct {
	ids   resolved
	ports []ports.Port // of the group, as far as they existed before
}

// createServer creates a server, and those of its ports that do not exist.
func (s *session) createServer(ctx context.Context, g nf.MachineGroup, name string, c creation) error {
	var networks []servers.Network
	for i, network := range c.ids.networks {
		port, err := s.createPort(ctx, ports.CreateOpts{
			NetworkID: network, Name: portName(g, name, i), Description: mark(g), SecurityGroups: c.ids.groups,
		}, c.ports)
		if err != nil {
			return err
		}
		networks = append(networks, servers.Network{Port: port})
	}
	_, err := servers.Create(ctx, s.compute, keypairs.CreateOptsExt{KeyName: g.Spec.KeyPair, CreateOptsBuilder: servers.CreateOpts{
		Name: serverName(g, name), ImageRef: c.ids.image, FlavorRef: c.ids.flavor, Networks: networks,
		Metadata: map[string]string{ownerKey: g.Owner, hostKey: name},
	}}, nil).Extract()
	if err != nil {
		return s.wrong(ctx, "create server "+serverName(g, name)+" in", err)
	}
	return nil
}

// createPort returns the id of a free port with the name, which an earlier call may
// have created.
func (s *session) createPort(ctx context.Context, opts ports.CreateOpts, present []ports.Port) (string, error) {
	at := slices.IndexFunc(present, func(p ports.Port) bool {
		return p.Name == opts.Name && p.NetworkID == opts.NetworkID && p.DeviceID == ""
	})
	if at >= 0 {
		return present[at].ID, nil
	}
	made, err := ports.Create(ctx, s.network, opts).Extract()
	if err != nil {
		return "", s.wrong(ctx, "create port "+opts.Name+" in", err)
	}
	return made.ID, nil
}

func (s *session) deleteServer(ctx context.Context, id string) error {
	if err := servers.Delete(ctx, s.compute, id).ExtractErr(); err != nil {
		return nf.IgnoreNotFound(s.wrong(ctx, "delete server "+id+" of", err))
	}
	return nil
}

// remove requests the deletion of servers of a group, or of all without names. When
// they are gone, it deletes their ports: Nova leaves ports that it did not create. It
// reports whether nothing is left.
func (s *session) remove(ctx context.Context, g nf.MachineGroup, names []string) (done bool, err error) {
	all, err := s.servers(ctx, g)
	if err != nil {
		return false, err
	}
	done = true
	for _, one := range all {
		if len(names) > 0 && !slices.Contains(names, one.Metadata[hostKey]) {
			continue
		}
		done = false
		if one.TaskState == deleting {
			continue
		}
		if err := s.deleteServer(ctx, one.ID); err != nil {
			return false, err
		}
	}
	if !done {
		return false, nil
	}
	left, err := s.ports(ctx, g)
	if err != nil {
		return false, err
	}
	for _, p := range left {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return isPortOf(g, name, p.Name) }) {
			continue
		}
		done = false
		if err := ports.Delete(ctx, s.network, p.ID).ExtractErr(); err != nil {
			if err := nf.IgnoreNotFound(s.wrong(ctx, "delete port "+p.Name+" of", err)); err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

// isPortOf reports whether a port has the name of one of a host.
func isPortOf(g nf.MachineGroup, host, port string) bool {
	for i := range g.Spec.Networks {
		if port == portName(g, host, i) {
			return true
		}
	}
	return false
}
