package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/audit"
	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/notify"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// service is the parts that run.
type service struct {
	engine   *lifecycle.Engine
	pool     *cluster.Pool
	catalog  *catalog.Catalog
	bundles  *bundle.Bundles
	notifier *notify.Notifier
	sites    *site.Sites
	audit    *audit.Log
	tls      *access.TLS                 // nil: it speaks without
	wait     func(context.Context) error // for the end of the store
	handler  http.Handler
	log      *slog.Logger
}

// assemble makes the parts from a store, and joins the other replicas.
func assemble(ctx context.Context, cfg Config, db *vault, see sight) (*service, error) {
	hosts, err := cfg.regionHosts()
	if err != nil {
		return nil, err
	}
	s := &service{log: see.log, pool: see.pool(hosts), wait: db.db.wait}
	limits := render.DefaultLimits()
	limits.Archive = cfg.MaxPackage
	kinds := renderers() // once: all share the limit on renderings of charts
	if s.catalog, err = catalog.New(catalog.Config{KV: db, Renderers: kinds, Limits: limits, Probe: s.pool.Probe, Check: s.pool.Check, NewID: newID}); err != nil {
		return nil, err
	}
	s.engine, err = lifecycle.New(lifecycle.Config{
		KV: db, Catalog: s.catalog, Renderers: kinds, Open: clusters(s.catalog, s.pool), NewID: newID,
		Logger: see.log, Meter: see.metrics, Trace: see.tracing,
		Workers: cfg.Workers, Timeout: cfg.OperationTimeout, Drain: cfg.DrainTimeout, Retention: cfg.Retention,
		Lease: cfg.Lease, Sole: db.db.sole, Apart: cfg.AccessFile != "", Brake: lifecycle.Brake{Objects: cfg.PruneObjects, Share: cfg.PruneShare},
	})
	if err != nil {
		return nil, err
	}
	s.audit, err = audit.New(audit.Config{KV: db, File: cfg.AuditFile, Replica: cfg.Replica, Retention: cfg.AuditRetention,
		Logger: see.log, Failed: see.metrics.AuditFailed})
	if err != nil {
		return nil, err
	}
	if err := s.front(ctx, cfg, db, see); err != nil {
		return nil, errors.Join(err, s.audit.Close())
	}
	// Joining comes last: from then on the others count on this replica.
	if err := s.engine.Join(ctx); err != nil {
		return nil, errors.Join(err, s.audit.Close())
	}
	return s, nil
}

// front makes what stands between the network and the engine.
func (s *service) front(ctx context.Context, cfg Config, db *vault, see sight) error {
	doors, err := cfg.doors(see)
	if err != nil {
		return err
	}
	s.tls = doors.tls
	guard, err := access.NewGuard(access.GuardConfig{
		Authorizer: doors.authorizer, Engine: s.engine, Catalog: regions{s.catalog, s.pool}, States: regions{s.catalog, s.pool}, Audits: s.audit,
	})
	if err != nil {
		return err
	}
	source, err := chartsource.New(chartsource.Config{Allow: listed(cfg.ChartSources), PlainHTTP: listed(cfg.ChartSourcesPlain), Limit: cfg.MaxPackage})
	if err != nil {
		return err
	}
	multicloud, err := s.onapAPI(cfg, db, see, guard)
	if err != nil {
		return err
	}
	if s.sites, err = s.siteKeeper(cfg, db, see); err != nil {
		return err
	}
	looked := guardedSites{guard: guard, engine: s.engine, regions: regions{s.catalog, s.pool}, keeper: s.sites}
	api, err := native.New(native.Config{
		Sites: looked, SiteOperations: looked,
		Regions: guard, Packages: guard, Usage: guard, Instances: guard, Inspector: guard, History: guard, Operations: guard, Repairs: guard,
		DayTwo: guard, Charts: charts{guard, source}, Letters: letters{guard, s.notifier, s.bundles.Ledger()},
		Conditions: guard, Audit: guard, Vault: guardedVault{guard, db}, Wait: cfg.SyncWait, Logger: see.log, Trace: see.traceparent,
	})
	if err != nil {
		return err
	}
	handler, err := northbound.New(northbound.Config{
		Swagger:        k8splugin.Swagger,
		APIs:           []northbound.API{api, multicloud},
		UploadLimit:    cfg.MaxPackage,
		Checks:         map[string]northbound.Check{"store": db.healthy, "operations": s.engine.Healthy},
		Logger:         see.log,
		Registry:       see.registry,
		Access:         doors.access(),
		Audit:          s.audit,
		Limit:          northbound.Limit{Rate: cfg.RateLimit},
		Hosts:          cfg.hosts(),
		ProtectMetrics: cfg.ProtectMetrics,
		Routed:         telemetry.Route,
	})
	if err != nil {
		return err
	}
	s.handler = see.tracing.Middleware(handler)
	return see.watch(ctx, s, doors, db)
}

// guardedVault lets only those at the keys and the backups who may.
type guardedVault struct {
	guard *access.Guard
	vault *vault
}

// KeyStatus implements native.Vault.
func (v guardedVault) KeyStatus(ctx context.Context) (nf.KeyStatus, error) {
	if err := v.guard.May(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	return v.vault.KeyStatus(ctx)
}

// Reseal implements native.Vault.
func (v guardedVault) Reseal(ctx context.Context) (nf.KeyStatus, error) {
	if err := v.guard.May(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return nf.KeyStatus{}, err
	}
	if _, err := v.vault.Reseal(ctx, leases()...); err != nil {
		return nf.KeyStatus{}, err
	}
	return v.vault.KeyStatus(ctx)
}

// Backup implements native.Vault.
func (v guardedVault) Backup(ctx context.Context, recipient string, w io.Writer) error {
	if err := v.guard.May(ctx, nf.AdministerStore, nf.Scope{}); err != nil {
		return err
	}
	return v.vault.Backup(ctx, recipient, w)
}

// regions are the catalog's, and the connections to them: those of a region that
// is removed go with it, and its credentials with them.
type regions struct {
	*catalog.Catalog

	pool *cluster.Pool
}

// RemoveRegion implements native.Regions.
func (r regions) RemoveRegion(ctx context.Context, id string) error {
	if err := r.Catalog.RemoveRegion(ctx, id); err != nil {
		return err
	}
	r.pool.Forget(id)
	return nil
}

// UpdateRegion implements native.Regions. A new kubeconfig is what everything
// works with from now on, what runs included.
func (r regions) UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	changed, err := r.Catalog.UpdateRegion(ctx, id, edit)
	if err != nil {
		return changed, err
	}
	if _, err := r.pool.Open(id, changed.Kubeconfig); err != nil {
		return changed, fmt.Errorf("cannot use the new kubeconfig: %w", err)
	}
	return changed, nil
}

// RegionState implements native.Conditions.
func (r regions) RegionState(ctx context.Context, id string) (nf.RegionState, error) {
	if _, err := r.Region(ctx, id); err != nil {
		return nf.RegionState{}, err
	}
	return r.pool.State(id), nil
}

// clusters opens the clusters of registered regions.
func clusters(cat *catalog.Catalog, pool *cluster.Pool) lifecycle.OpenCluster {
	return func(ctx context.Context, id, project string) (lifecycle.Cluster, error) {
		region, err := cat.Region(ctx, id)
		if err != nil {
			return nil, err
		}
		c, err := pool.Open(id, region.Kubeconfig)
		if err != nil {
			return nil, err // and not a nil *Cluster, which would be a Cluster
		}
		return c.As(region.Tenancy(project, false).ServiceAccount), nil
	}
}

func opened(cat *catalog.Catalog, pool *cluster.Pool) func(context.Context, string) (*cluster.Cluster, error) {
	return func(ctx context.Context, id string) (*cluster.Cluster, error) {
		region, err := cat.Region(ctx, id)
		if err != nil {
			return nil, err
		}
		return pool.Open(id, region.Kubeconfig)
	}
}

// doors are who may come in, and how.
type doors struct {
	rules         *access.Rules         // nil: access is open
	authenticator *access.Authenticator // likewise
	authorizer    *access.Authorizer
	tls           *access.TLS // nil: connections are not encrypted
}

func (c Config) doors(see sight) (doors, error) {
	d := doors{authorizer: access.Open()}
	var err error
	if c.AccessFile != "" {
		if d.rules, err = access.New(access.Config{File: c.AccessFile, Logger: see.log}); err != nil {
			return d, fmt.Errorf("cannot use the access rules: %w", err)
		}
		d.authenticator = access.NewAuthenticator(d.rules)
		if d.authorizer, err = access.NewAuthorizer(d.rules); err != nil {
			return d, fmt.Errorf("cannot use the access rules: %w", err)
		}
	}
	if c.TLSCert != "" {
		d.tls, err = access.NewTLS(access.TLSConfig{Certificate: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, Logger: see.log})
	}
	return d, err
}

// access returns who proves identities, and a nil interface when nobody has to.
func (d doors) access() northbound.Access {
	if d.authenticator == nil {
		return nil
	}
	return d.authenticator
}
