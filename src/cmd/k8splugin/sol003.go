package main

import (
	"context"
	"errors"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// vnfLedger creates the ledger of SOL003.
func (s *service) vnfLedger(cfg Config, db *secureStore) (*sol003.Manager, error) {
	granter, err := cfg.NFVO.granter(s.log, s.clientTLS())
	if err != nil {
		return nil, err
	}
	read := &descriptors{catalog: s.catalog, read: map[string]tosca.Topology{}}
	engines, err := s.vnfEngines(read)
	if err != nil {
		return nil, err
	}
	hooks, err := cfg.vnfHooks(read)
	if err != nil {
		return nil, err
	}
	return sol003.New(sol003.Config{
		KV: db.kv, Granter: granter, Packages: s.catalog, Regions: s.catalog, Descriptors: read, Engines: engines, Hooks: hooks, Clouds: vnfClouds{s.catalog, s.clouds},
		Changes: s.engine, Repairs: s.engine, Instances: s.engine, Workers: s.workers, Places: cfg.Workers, Retention: cfg.Retention,
	})
}

// mostTopologies is the number of topologies that are remembered.
const mostTopologies = 256

// descriptors reads the VNF descriptors of packages. It remembers them by the digest of
// the content.
type descriptors struct {
	catalog *catalog.Catalog

	mu   sync.Mutex
	read map[string]tosca.Topology
}

// Topology implements sol003.Descriptors.
func (d *descriptors) Topology(ctx context.Context, pkg string) (tosca.Topology, error) {
	p, err := d.catalog.Package(ctx, pkg)
	if err != nil {
		return tosca.Topology{}, err
	}
	if known, found := d.remembered(p.Digest); found {
		return known, nil
	}
	p, files, done, err := d.catalog.Files(ctx, pkg)
	if err != nil {
		return tosca.Topology{}, err
	}
	defer done()
	if p.VNFD == nil || len(p.VNFD.Files) == 0 {
		return tosca.Topology{}, errors.New("the package has no VNF descriptor")
	}
	t, err := tosca.Read(files, p.VNFD.Files[0])
	if err == nil {
		d.remember(p.Digest, t)
	}
	return t, err
}

func (d *descriptors) remembered(digest string) (t tosca.Topology, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, found = d.read[digest]
	return t, found
}

func (d *descriptors) remember(digest string, t tosca.Topology) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.read) >= mostTopologies {
		clear(d.read)
	}
	d.read[digest] = t
}
