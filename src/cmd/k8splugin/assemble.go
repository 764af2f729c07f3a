package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/audit"
	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/drift"
	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/istio"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/networkservice"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
	"github.com/multicloud-k8s/k8splugin/src/northbound/tacker"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
	"github.com/multicloud-k8s/k8splugin/src/volume"
)

// service holds the components of the running service.
type service struct {
	index     *index.Store
	workers   *operation.Workers
	engine    *lifecycle.Engine
	pool      *cluster.Pool
	clouds    *openstack.Clouds
	memory    *budget.Budget // of checks of uploads
	catalog   *catalog.Catalog
	bundles   *bundle.Bundles
	notifier  *notify.Notifier
	health    *health.Watcher
	drift     *drift.Watcher
	sites     *site.Sites
	sol003    *sol003.Manager
	vnfs      vnfParts
	services  *networkservice.Services
	networks  *shared.Resources
	sdc       sdcParts
	volumes   *shared.Resources
	binder    *volume.Kind
	audit     *audit.Log
	tls       *access.TLS                 // nil: connections are not encrypted
	mesh      *istio.Identity             // nil: no certificate from istiod
	wait      func(context.Context) error // returns when the store cannot be used any longer
	handler   http.Handler
	log       *slog.Logger
	workloads *clusterapi.Registrar
	handOvers *outbox.Outbox
	aai       *aai.Client         // nil: A&AI is not used
	inventory *inventory          // nil: A&AI is not written
	imports   *aairegion.Importer // nil: regions are not imported from A&AI
}

// assemble creates the components on a store, and joins the group of replicas.
func assemble(ctx context.Context, cfg Config, db *secureStore, obs observability) (*service, error) {
	s := &service{log: obs.log, wait: db.db.wait}
	err := s.surroundings(cfg, obs.log)
	if err != nil {
		return nil, err
	}
	if s.index, err = db.index(obs.log); err != nil {
		return nil, err
	}
	if err = s.openPool(cfg, obs); err != nil {
		return nil, err
	}
	apart := cfg.AccessFile != ""
	kinds, err := s.openCatalog(cfg, db)
	if err != nil {
		return nil, err
	}
	s.workers, err = operation.New(operation.Config{
		KV: db.kv, NewID: newID, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole, LeaseEnded: obs.metrics.LeaseEnded,
		Meter: listedMeter{obs.metrics, s}, Trace: obs.tracing,
	})
	if err != nil {
		return nil, err
	}
	if err = s.shareResources(cfg, db); err != nil {
		return nil, err
	}
	if err = s.registerWorkloads(cfg, db, obs, apart); err != nil {
		return nil, err
	}
	if err = s.importRegions(cfg, db, obs); err != nil {
		return nil, err
	}
	s.engine, err = lifecycle.New(lifecycle.Config{
		KV: db.kv, Catalog: s.catalog, Renderers: kinds, Open: clusters(s.catalog, s.pool, apart), Workers: s.workers, NewID: newID,
		Networks: networks{s.networks, s.networks, networkDrivers()}, Volumes: volumes{s.volumes, s.binder}, Workloads: s.workloads, Regions: s.regions(), Flavors: flavorLabels, Places: cfg.Workers, Timeout: cfg.OperationTimeout, Drain: cfg.DrainTimeout, Retention: cfg.Retention,
		Apart: apart, DeletionGuard: lifecycle.DeletionGuard{Objects: cfg.PruneObjects, Share: cfg.PruneShare}, Directory: cfg.AAI.directory(s), Owners: owners{s},
	})
	if err != nil {
		return nil, err
	}
	if err = s.serviceKeeper(cfg, db); err != nil {
		return nil, err
	}
	if s.inventory, err = cfg.inventoryKeeper(s, db, obs); err != nil {
		return nil, err
	}
	s.audit, err = audit.New(audit.Config{KV: db.kv, File: cfg.AuditFile, Replica: cfg.Replica, Retention: cfg.AuditRetention, Logger: obs.log, Failed: obs.metrics.AuditFailed})
	if err != nil {
		return nil, err
	}
	s.sdc.charts = kinds[chartKind]
	if err := s.front(ctx, cfg, db, obs); err != nil {
		return nil, errors.Join(err, s.audit.Close())
	}
	// Order matters: after joining, other replicas rely on this one.
	if err := s.workers.Join(ctx); err != nil {
		return nil, errors.Join(err, s.audit.Close())
	}
	return s, nil
}

// openPool creates the pool of connections to clusters, and the client of OpenStack clouds.
func (s *service) openPool(cfg Config, obs observability) error {
	hosts, err := cfg.regionHosts()
	if err != nil {
		return err
	}
	rules, err := cfg.readinessRules()
	if err != nil {
		return err
	}
	s.pool = obs.pool(hosts, rules, s.renewals(), s.rejected, func() (uint64, bool) { return s.index.Version("regions/") })
	s.clouds = openstack.New(openstack.Config{Hosts: hosts})
	return nil
}

// front creates the components between the network and the engine.
func (s *service) front(ctx context.Context, cfg Config, db *secureStore, obs observability) error {
	rules, err := cfg.accessConfig(obs)
	if err != nil {
		return err
	}
	s.tls = rules.tls
	guarded, err := access.NewGuarded(access.GuardedConfig{
		Authorizer: rules.authorizer, Engine: s.engine, Catalog: s.regions(), Audits: s.audit, Imports: s.regionImports(), Packages: designs{s},
	})
	if err != nil {
		return err
	}
	if err := s.bundleKeeper(cfg, db, obs); err != nil {
		return err
	}
	if err := s.sdc.start(cfg, s.bundles, s.catalog, db, obs); err != nil {
		return err
	}
	if s.sites, err = s.siteKeeper(cfg, db, obs); err != nil {
		return err
	}
	if s.sol003, err = s.vnfLedger(cfg, db); err != nil {
		return err
	}
	if err := s.watchHealth(obs); err != nil {
		return err
	}
	if err := s.notifyVNFs(cfg, db, obs); err != nil {
		return err
	}
	var served []northbound.API
	for _, create := range apis() {
		api, err := create(s, cfg, db, obs, guarded)
		if err != nil {
			return err
		}
		served = append(served, api)
	}
	handler, err := northbound.New(northbound.Config{
		Swagger:     k8splugin.Swagger,
		Version:     version(),
		APIs:        served,
		UploadLimit: cfg.MaxPackage,
		Checks:      map[string]northbound.Check{"store": db.healthy, "operations": s.workers.Healthy},
		Logger:      obs.log,
		Registry:    obs.registry,
		Access:      rules.access(),
		Audit:       s.audit,
		Limit:       northbound.Limit{Rate: cfg.RateLimit},
		Hosts:       cfg.hosts(),
		MayScrape:   scrapers(cfg, guarded),
		Routed:      telemetry.Route,
	})
	if err != nil {
		return err
	}
	if cfg.AAIRegions.Prefixes {
		handler = onap.Prefixes(handler)
	}
	s.handler = obs.tracing.Middleware(sol013.Formats(tacker.Formats(handler)))
	return obs.watch(ctx, s, rules, db)
}

// scrapers returns the function that decides which clients may read the metrics; nil: all.
func scrapers(cfg Config, guarded *access.Guarded) func(context.Context) error {
	if !cfg.ProtectMetrics {
		return nil
	}
	return guarded.Regions.MayReadAll
}

// nativeAPI creates the service's own API.
func (s *service) nativeAPI(cfg Config, db *secureStore, obs observability, guarded *access.Guarded) (northbound.API, error) {
	source, err := s.chartSources(cfg)
	if err != nil {
		return nil, err
	}
	networks, volumes := access.NewNetworks(guarded, s.networks), access.NewVolumes(guarded, s.volumes)
	return native.New(native.Config{
		Sites: access.NewSites(guarded, s.sites), SiteOperations: access.NewSiteOperations(guarded, s.sites.Operations()),
		Networks: networks, NetworkOperations: access.NewSharedOperations(networks, s.networks.Operations()),
		Volumes: volumes, VolumeOperations: access.NewSharedOperations(volumes, s.volumes.Operations()), VolumeStatus: s.binder.Status,
		Services: access.NewServices(guarded, s.services), ServiceOperations: access.NewServiceOperations(guarded, s.services.Operations()), NSDs: nsds{guarded.Packages}.members,
		VNFOperations: access.NewVNFOperations(guarded, s.sol003.Operations()),
		Regions:       guarded.Regions, Usage: guarded.Regions, Conditions: s.regions(), Surveys: guarded.Regions, Parents: access.NewParents(guarded, s.workloads), Packages: guarded.Packages,
		Instances: guarded.Instances, Inspector: guarded.Instances, History: guarded.Instances, Configurer: guarded.Instances,
		Operations: guarded.Operations, Repairs: guarded.Operations, Audit: guarded.AuditLog, StoreAdmin: access.NewStoreAdmin(guarded, db),
		Charts: access.NewCharts(guarded, charts{source}), DeadLetters: access.NewDeadLetters(guarded, deadLetters{s.notifier, s.bundles.InstanceRecords(), s.workloads, s.vnfs.notifier}),
		Inventory: s.listings(guarded, networks), Staging: staging(db.kv, cfg.MaxPackage), Healths: s.health, Drifts: s.drift, Wait: cfg.SyncWait, Logger: obs.log, Trace: obs.traceparent, Version: version(),
	})
}

// regions combines the catalog's regions with the connections to them. Removing
// a region closes its connections, drops its credentials, and deletes its flavors in A&AI.
type regions struct {
	keeper

	pool *cluster.Pool
	of   *service // its inventory is created later
}

var _ access.Catalog = regions{}

// keeper stores regions and packages, and knows their users.
type keeper interface {
	access.RegionRecords
	access.PackageKeeper
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
	access.HoldKeeper
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]
}

// RemoveRegion implements native.Regions.
func (r regions) RemoveRegion(ctx context.Context, id string) error {
	if err := r.keeper.RemoveRegion(ctx, id); err != nil {
		return err
	}
	r.pool.Forget(id)
	r.of.inventory.unlist(ctx, id)
	return nil
}

// UpdateRegion implements native.Regions. A new access takes effect at
// once, also for running operations.
func (r regions) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	changed, err := r.keeper.UpdateRegion(ctx, id, edit)
	if err != nil {
		return changed, err
	}
	if changed.NoAccess() != "" {
		return changed, nil
	}
	if _, err := r.pool.Open(id, changed.Access); err != nil {
		return changed, fmt.Errorf("cannot use the new access: %w", err)
	}
	return changed, nil
}

// probeCounts is how long a region counts as available because its registration or
// its last update connected to it. The pool has checked it itself by then.
const probeCounts = 30 * time.Second

// RegionState implements native.Conditions.
func (r regions) RegionState(region nf.Region) nf.RegionState {
	if why := region.NoAccess(); why != "" {
		return nf.RegionState{Condition: nf.RegionUnreachable, Reason: nf.ReasonNoAccess, Message: why}
	}
	state := r.pool.State(region.ID)
	if probed := region.Probe.Time; state.Condition == nf.RegionUnknown && time.Since(probed) < probeCounts {
		state.Condition, state.Since, state.Checked = nf.RegionAvailable, probed, probed
	}
	return state
}

// RegionCapabilities implements native.Surveys.
func (r regions) RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error) {
	region, err := r.Region(ctx, id)
	if err != nil {
		return nf.RegionCapabilities{}, err
	}
	c, err := open(r.pool, region)
	if err != nil {
		return nf.RegionCapabilities{}, err
	}
	return c.RegionCapabilities(ctx, fresh)
}

// clusters opens the clusters of registered regions. If projects are isolated,
// it connects as the service account that the region names for the project, if
// any.
func clusters(cat *catalog.Catalog, pool *cluster.Pool, apart bool) lifecycle.OpenCluster {
	return func(ctx context.Context, id, project string) (lifecycle.Cluster, error) {
		region, err := cat.Region(ctx, id)
		if err != nil {
			return nil, err
		}
		c, err := open(pool, region)
		if err != nil {
			return nil, err // not a nil *Cluster, which would be a non-nil Cluster
		}
		return c.As(region.Tenancy(project, apart).ServiceAccount), nil
	}
}

func opened(cat *catalog.Catalog, pool *cluster.Pool) func(context.Context, string) (*cluster.Cluster, error) {
	return func(ctx context.Context, id string) (*cluster.Cluster, error) {
		region, err := cat.Region(ctx, id)
		if err != nil {
			return nil, err
		}
		return open(pool, region)
	}
}

// accessConfig holds the configured access control and TLS.
type accessConfig struct {
	rules         *access.Rules         // nil: access is open
	authenticator *access.Authenticator // nil: access is open
	authorizer    *access.Authorizer
	tls           *access.TLS // nil: connections are not encrypted
}

func (c Config) accessConfig(obs observability) (accessConfig, error) {
	d := accessConfig{authorizer: access.Open()}
	var err error
	if c.AccessFile != "" {
		tokens, err := c.keystone(obs.log)
		if err != nil {
			return d, err
		}
		if d.rules, err = access.New(access.Config{File: c.AccessFile, Keystone: tokens, Logger: obs.log}); err != nil {
			return d, cli.Listed("cannot use the access rules", err)
		}
		d.authenticator = access.NewAuthenticator(d.rules)
		if d.authorizer, err = access.NewAuthorizer(d.rules); err != nil {
			return d, cli.Listed("cannot use the access rules", err)
		}
	}
	if c.TLSCert != "" {
		d.tls, err = access.NewTLS(access.TLSConfig{Certificate: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Logger: obs.log})
	}
	return d, err
}

// access returns the authenticator, or a nil interface if access is open.
func (d accessConfig) access() northbound.Access {
	if d.authenticator == nil {
		return nil
	}
	return d.authenticator
}
