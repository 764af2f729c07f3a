package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/csar"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/ansible"
	"github.com/multicloud-k8s/k8splugin/src/site/script"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// This file names every driver. To add one, add a folder and a line here. A site
// driver is also a value of driver in swagger.yaml, and a store a form in
// storeUsage and storeForms.

// newAPI creates an API on the components of the service.
type newAPI func(s *service, cfg Config, db *secureStore, obs observability, guarded *access.Guarded) (northbound.API, error)

// apis returns the HTTP APIs.
func apis() []newAPI {
	return []newAPI{
		(*service).nativeAPI, (*service).onapAPI, (*service).tackerAPI, (*service).vnfPackagesAPI, (*service).vnfsAPI, (*service).vnfSubscriptionsAPI, (*service).vnfAlarmsAPI, (*service).vnfPerformanceAPI,
	}
}

// siteDrivers returns the tools that build sites. Without a playbook collection,
// only scripts build them.
func siteDrivers(cfg Config, log *slog.Logger) (map[nf.SiteDriver]site.Runner, error) {
	drivers := map[nf.SiteDriver]site.Runner{nf.SiteByScript: script.Runner{}}
	if cfg.Kud != "" {
		operators := map[string]any{}
		if cfg.KudArtifacts != "" {
			operators["kud_artifacts"] = cfg.KudArtifacts
		}
		runner, err := ansible.New(ansible.Config{Kud: cfg.Kud, Vars: operators, Logger: log})
		if err != nil {
			return nil, err
		}
		drivers[nf.SiteByAnsible] = runner
	}
	return drivers, nil
}

// chartKind is the kind of packages that are Helm charts.
const chartKind = "helm"

// renderers returns the supported kinds of packages. Each call returns new
// renderers, which do not share limits with those of another call. Manifests do
// not wait for charts, which may take 30 seconds. If roots is not nil, CSARs must be signed.
func renderers(roots *x509.CertPool) map[string]render.Renderer {
	charts, manifests := helm.New(helm.Config{Gate: render.NewGate(render.GateConfig{})}), manifest.New(render.NewGate(render.GateConfig{}))
	return map[string]render.Renderer{
		"csar":     csar.New(csar.Config{Manifests: manifests, Charts: charts, Roots: roots}),
		chartKind:  charts,
		"manifest": manifests,
	}
}

// database is an opened store with functions to check its state.
type database struct {
	store.KV

	healthy func(context.Context) error
	wait    func(context.Context) error // returns when the database cannot be used any longer, or nil when the context ends
	space   func() telemetry.StoreSpace // nil: unknown
	changes store.Watcher               // nil: it does not report changes
	sole    bool                        // no other process can have it open
}

// opener opens one kind of store. The location is the part after "kind://" in
// the configuration, and may be empty.
type opener func(ctx context.Context, cfg Config, location string, log *slog.Logger) (database, error)

// The forms of the store's location, in the help and in errors.
const (
	storeUsage = "etcd (embedded), etcd://[user:password@]host:port,… (an external cluster), mongodb://… or memory (no persistence)"
	storeForms = "etcd, etcd://host:port,…, mongodb://… or memory"
)

// stores returns the supported kinds of databases.
func stores() map[string]opener {
	return map[string]opener{
		"etcd": func(ctx context.Context, cfg Config, location string, log *slog.Logger) (database, error) {
			opts := etcd.Config{Dir: cfg.Data, Quota: cfg.StoreQuota}
			if location != "" {
				var err error
				if opts, err = etcd.ParseLocation(location); err != nil {
					return database{}, err
				}
			}
			opts.Logger = log
			kv, err := etcd.Open(ctx, opts)
			if err != nil {
				return database{}, err
			}
			return database{KV: kv, healthy: kv.Healthy, wait: kv.Wait, space: func() telemetry.StoreSpace { return telemetry.StoreSpace(kv.Space()) }, changes: kv, sole: location == ""}, nil
		},
		"mongodb":     mongoOpener("mongodb://"),
		"mongodb+srv": mongoOpener("mongodb+srv://"),
		"memory": func(context.Context, Config, string, *slog.Logger) (database, error) {
			return database{KV: memory.New(), healthy: func(context.Context) error { return nil }, sole: true}, nil
		},
	}
}

// mongoOpener opens a MongoDB by its connection URI.
func mongoOpener(scheme string) opener {
	return func(ctx context.Context, _ Config, location string, log *slog.Logger) (database, error) {
		kv, err := mongo.Open(ctx, mongo.Config{URI: nf.Secret(scheme + location), Logger: log})
		if err != nil {
			return database{}, err
		}
		return database{KV: kv, healthy: kv.Healthy}, nil
	}
}

// openStore opens the store that the configuration names.
func openStore(ctx context.Context, cfg Config, log *slog.Logger) (database, error) {
	kind, location, _ := strings.Cut(cfg.Store, "://")
	open, ok := stores()[kind]
	if !ok {
		return database{}, fmt.Errorf("cannot open store %q: unknown kind", masked(cfg.Store))
	}
	db, err := open(ctx, cfg, location, log)
	if err != nil {
		return database{}, fmt.Errorf("cannot open store %q: %w", masked(cfg.Store), err)
	}
	if db.wait == nil {
		db.wait = func(ctx context.Context) error { <-ctx.Done(); return nil }
	}
	return db, nil
}

// masked hides the password in a URL.
func masked(raw string) string {
	if !strings.Contains(raw, "@") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
