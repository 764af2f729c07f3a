package main

import (
	"bytes"
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/site/script"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/sol003/hook"
	"github.com/multicloud-k8s/k8splugin/src/sol003/installer"
)

// vnfEngines returns what carries out the occurrences of VNFs that are not VNF instances.
func (s *service) vnfEngines(read *descriptors) (map[string]sol003.Engine, error) {
	clusters, err := installer.New(installer.Config{Sites: s.sites, Operations: s.sites.Operations(), Packages: read, Users: s.catalog.Users})
	if err != nil {
		return nil, err
	}
	return map[string]sol003.Engine{sol003.ClusterEngine: {Changes: clusters, Repairs: clusters, Instances: clusters, Check: clusters.Check}}, nil
}

// vnfHooks returns what runs the scripts of VNF descriptors that are not Jobs. Webhooks have the
// addresses that callbacks may have.
func (c Config) vnfHooks(read *descriptors) (*hook.Hooks, error) {
	hosts, err := c.callbackHosts()
	if err != nil {
		return nil, err
	}
	return hook.New(hook.Config{SSH: script.Runner{}, Send: outbox.NewSend(hosts, "webhook"), File: read.File})
}

// File implements installer.Packages.
func (d *descriptors) File(ctx context.Context, pkg, name string) ([]byte, error) {
	_, files, done, err := d.catalog.Files(ctx, pkg)
	if err != nil {
		return nil, err
	}
	defer done()
	content, found := files[name]
	if !found || content == nil {
		return nil, nf.E(nf.NotFound, "read", "file "+name, nil)
	}
	return bytes.Clone(content), nil
}
