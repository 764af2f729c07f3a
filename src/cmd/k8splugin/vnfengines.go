package main

import (
	"bytes"
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
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
