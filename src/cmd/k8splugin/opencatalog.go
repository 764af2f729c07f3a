package main

import (
	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// openCatalog creates the catalog, and returns the renderers of its packages.
func (s *service) openCatalog(cfg Config, db *secureStore) (map[string]render.Renderer, error) {
	signers, err := cfg.csarAuthorities()
	if err != nil {
		return nil, err
	}
	limits := render.DefaultLimits().For(cfg.MaxPackage)
	s.memory = budget.New(2 * limits.Memory) // a package is composed of the files of two archives
	kinds := renderers(signers)              // once: all users share the rendering limits
	s.catalog, err = catalog.New(catalog.Config{
		KV: db.kv, Renderers: kinds, Limits: limits, Memory: s.memory, Parse: cluster.Parse,
		Probe: s.pool.Probe, Login: s.clouds.Login, Check: s.pool.Check, NewID: newID,
	})
	return kinds, err
}
