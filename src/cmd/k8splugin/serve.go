package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func serveCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(cmd.Flags(), p.getenv)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, p, func(string) {})
		},
	}
	configFlags(cmd.Flags())
	return cmd
}

// serve runs the service until the context ends, and then drains it. It calls
// listening with the address once requests are taken.
func serve(ctx context.Context, cfg Config, p process, listening func(address string)) error {
	log := cfg.logger(p)
	log.InfoContext(ctx, "k8splugin starts", "version", version, "config", cfg)
	db, err := openStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.ErrorContext(ctx, "the store did not close cleanly", "error", err)
		}
	}()
	s, err := assemble(ctx, cfg, db, log)
	if err != nil {
		return err
	}
	// Listening comes before serving, so that a taken port is this error and
	// not a line in the log.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	log.InfoContext(ctx, "k8splugin serves", "address", listener.Addr().String())
	listening(listener.Addr().String())
	err = s.run(ctx, listener, cfg.DrainTimeout)
	log.InfoContext(ctx, "k8splugin has stopped")
	return err
}

// service is the parts that run.
type service struct {
	engine  *lifecycle.Engine
	handler http.Handler
	log     *slog.Logger
}

// assemble makes the parts from a store, and recovers what a former process
// left.
func assemble(ctx context.Context, cfg Config, db database, log *slog.Logger) (*service, error) {
	if n, err := store.NewBlobs(db).Sweep(ctx); err != nil {
		return nil, fmt.Errorf("cannot sweep the store: %w", err)
	} else if n > 0 {
		log.InfoContext(ctx, "unfinished uploads were removed", "chunks", n)
	}
	limits := render.DefaultLimits()
	limits.Archive = cfg.MaxPackage
	cat, err := catalog.New(catalog.Config{KV: db, Renderers: renderers(), Limits: limits, Probe: cluster.Probe, NewID: newID})
	if err != nil {
		return nil, err
	}
	meter, pool := newMeter(), cluster.New(cluster.PoolConfig{})
	engine, err := lifecycle.New(lifecycle.Config{
		KV: db, Catalog: cat, Renderers: renderers(), Open: clusters(cat, pool), NewID: newID,
		Logger:  slog.New(traced{log.Handler()}),
		Workers: cfg.Workers, Timeout: cfg.OperationTimeout, Drain: cfg.DrainTimeout, Retention: cfg.Retention,
		Finished: meter.finished,
	})
	if err != nil {
		return nil, err
	}
	if err := engine.Recover(ctx); err != nil {
		return nil, err
	}
	api, err := native.New(native.Config{
		Regions: regions{cat, pool}, Packages: cat, Instances: engine, Inspector: engine, Operations: engine, Wait: cfg.SyncWait,
	})
	if err != nil {
		return nil, err
	}
	handler, err := northbound.New(northbound.Config{
		Swagger:     k8splugin.Swagger,
		APIs:        []northbound.API{api},
		UploadLimit: cfg.MaxPackage,
		Checks:      map[string]northbound.Check{"store": db.healthy},
		Logger:      log,
		Registry:    meter.registry,
	})
	if err != nil {
		return nil, err
	}
	return &service{engine: engine, handler: handler, log: log}, nil
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

// clusters opens the clusters of registered regions.
func clusters(cat *catalog.Catalog, pool *cluster.Pool) lifecycle.OpenCluster {
	return func(ctx context.Context, id string) (lifecycle.Cluster, error) {
		region, err := cat.Region(ctx, id)
		if err != nil {
			return nil, err
		}
		c, err := pool.Open(id, region.Kubeconfig)
		if err != nil {
			return nil, err // and not a nil *Cluster, which would be a Cluster
		}
		return c, nil
	}
}

// run serves and carries out operations until the context ends. Then requests
// and operations have the drain time to finish; what is left is cut off, and
// the operations resume with the next start.
func (s *service) run(ctx context.Context, listener net.Listener, drain time.Duration) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve: %w", err)
		}
		return nil
	})
	group.Go(func() error { return s.engine.Run(ctx) })
	group.Go(func() error {
		<-ctx.Done()
		s.log.InfoContext(ctx, "k8splugin drains", "within", drain.String())
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain+time.Second)
		defer cancel()
		if err := server.Shutdown(deadline); err != nil {
			cut()
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}

// newID returns an id for a package or an instance: 16 hexadecimal digits, fit
// for a path, a label and an object's name.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
