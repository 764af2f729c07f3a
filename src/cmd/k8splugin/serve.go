package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
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
// listening with the address once the service accepts requests.
func serve(ctx context.Context, cfg Config, p process, listening func(address string)) error {
	obs, err := cfg.observability(ctx, p)
	if err != nil {
		return err
	}
	log := obs.log
	log.InfoContext(ctx, "service starting", "version", version(), "config", cfg)
	limitMemory(ctx, log, os.DirFS("/"), p.getenv)
	db, err := openSecureStore(ctx, cfg, obs, p.decorate)
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.ErrorContext(ctx, "failed to close the store", "error", err)
		}
	}()
	s, err := assemble(ctx, cfg, db, obs)
	if err != nil {
		return err
	}
	// Listen before serving, so that a port in use is an error of the command
	// and not only in the log.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	log.InfoContext(ctx, "service listening", "address", listener.Addr().String())
	listening(listener.Addr().String())
	err = errors.Join(s.run(ctx, listener, cfg.DrainTimeout), s.audit.Close())
	obs.close(ctx)
	log.InfoContext(ctx, "service stopped")
	return err
}

// run serves requests and executes operations until the context ends. Then
// requests and operations have the drain time to finish. After it, requests are
// cut off, and the operations resume with the next start.
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
	if config := s.listenerTLS(); config != nil {
		listener = tls.NewListener(listener, config)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve: %w", err)
		}
		return nil
	})
	group.Go(func() error { return s.wait(ctx) })
	group.Go(func() error { return s.workers.Run(ctx) })
	group.Go(func() error { return s.keepCertificate(ctx) })
	group.Go(func() error { return s.index.Run(ctx) })
	group.Go(func() error { return s.pool.Run(ctx, s.reachable) })
	group.Go(func() error { return s.audit.Run(ctx) })
	group.Go(func() error { return s.notifier.Run(ctx) })
	group.Go(func() error { return s.health.Run(ctx) })
	group.Go(func() error { return s.sdc.run(ctx) })
	group.Go(func() error { return s.networks.Run(ctx) })
	group.Go(func() error { return s.volumes.Run(ctx) })
	group.Go(func() error { return s.drift.Run(ctx) })
	group.Go(func() error { return s.workloads.Run(ctx) })
	group.Go(func() error { return s.handOvers.Run(ctx) })
	group.Go(func() error { return s.vnfs.run(ctx) })
	group.Go(func() error { return s.inventory.run(ctx) })
	group.Go(func() error { return s.followRegions(ctx) })
	group.Go(func() error { s.bundles.Run(ctx, s.engine, s.catalog.Region, s.log); return nil })
	group.Go(func() error {
		<-ctx.Done()
		s.log.InfoContext(ctx, "service draining", "within", drain.String())
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

// newID returns a new id: 16 random hexadecimal digits, valid in a path, a
// label and an object's name.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
