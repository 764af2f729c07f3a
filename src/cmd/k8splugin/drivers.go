package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm"
	"github.com/multicloud-k8s/k8splugin/src/render/manifest"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/etcd"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/mongo"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// renderers are the kinds of packages that this program understands. Each call
// makes others, which do not wait for those of another call.
func renderers() map[string]render.Renderer {
	return map[string]render.Renderer{
		"helm":     helm.New(helm.Config{}),
		"manifest": manifest.Renderer{},
	}
}

// database is an opened store and how to ask after its health.
type database struct {
	store.KV

	healthy func(context.Context) error
	wait    func(context.Context) error // returns when the database cannot be used any longer, or with nil when the context ends
	space   func() telemetry.StoreSpace // nil: it is not known
	sole    bool                        // no other process can have it open
}

// opener opens one kind of store. The location is what follows "kind://" in the
// configuration, and may be empty.
type opener func(ctx context.Context, cfg Config, location string, log *slog.Logger) (database, error)

// stores are the kinds of databases that this program can use.
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
			return database{KV: kv, healthy: kv.Healthy, wait: kv.Wait, space: func() telemetry.StoreSpace { return telemetry.StoreSpace(kv.Space()) }, sole: location == ""}, nil
		},
		"mongodb":     mongoOpener("mongodb://"),
		"mongodb+srv": mongoOpener("mongodb+srv://"),
		"memory": func(context.Context, Config, string, *slog.Logger) (database, error) {
			return database{KV: memory.New(), healthy: func(context.Context) error { return nil }, sole: true}, nil
		},
	}
}

// mongoOpener opens a MongoDB by its own URI.
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
		return database{}, fmt.Errorf("cannot open store %q: its kind is unknown", masked(cfg.Store))
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
	u, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
