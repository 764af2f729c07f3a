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
// listening with the address once requests are taken.
func serve(ctx context.Context, cfg Config, p process, listening func(address string)) error {
	see, err := cfg.sight(ctx, p)
	if err != nil {
		return err
	}
	log := see.log
	log.InfoContext(ctx, "k8splugin starts", "version", version, "config", cfg)
	db, err := openVault(ctx, cfg, see)
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.ErrorContext(ctx, "the store did not close cleanly", "error", err)
		}
	}()
	s, err := assemble(ctx, cfg, db, see)
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
	err = errors.Join(s.run(ctx, listener, cfg.DrainTimeout), s.audit.Close())
	see.close(ctx)
	log.InfoContext(ctx, "k8splugin has stopped")
	return err
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
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls.Config())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("cannot serve: %w", err)
		}
		return nil
	})
	group.Go(func() error { return s.wait(ctx) })
	group.Go(func() error { return s.engine.Run(ctx) })
	group.Go(func() error { return s.pool.Run(ctx, s.catalog.Regions) })
	group.Go(func() error { return s.audit.Run(ctx) })
	group.Go(func() error { return s.notifier.Run(ctx) })
	group.Go(func() error { return s.sites.Run(ctx) })
	group.Go(func() error { s.sweep(ctx); return nil })
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

// newID returns an id for whatever needs one: 16 random hexadecimal digits, fit
// for a path, a label and an object's name.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
