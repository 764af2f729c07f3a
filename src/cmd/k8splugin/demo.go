package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
)

const demoAbout = `Start the service on loopback, register the cluster of a kubeconfig as cloud
region "sandbox", upload a package, create two instances of it in two namespaces,
and show the result. The service then runs until it is interrupted.

Every step is a command line that is printed first, so that you can repeat it. A
region and instances of an earlier run are used as they are.`

// demo runs the demo command: a service and a session of client commands.
type demo struct {
	process    process
	kubeconfig string
	pkg        string
}

func demoCommand(p process) *cobra.Command {
	d := demo{process: p}
	cmd := &cobra.Command{
		Use:   "demo --kubeconfig FILE",
		Short: "Run the service with two sample VNF instances",
		Long:  demoAbout,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(cmd.Flags(), p.getenv)
			if err != nil {
				return err
			}
			return d.run(cmd.Context(), cfg)
		},
	}
	configFlags(cmd.Flags())
	// Not KUBECONFIG: that may be the cluster of someone's daily work.
	cmd.Flags().StringVar(&d.kubeconfig, "kubeconfig", p.getenv("DEMO_KUBECONFIG"), "kubeconfig of the cluster to use (env DEMO_KUBECONFIG)")
	cmd.Flags().StringVar(&d.pkg, "package", "deployments/samples/edgex", "package to instantiate: a folder or an archive")
	return cmd
}

func (d demo) run(ctx context.Context, cfg Config) error {
	if d.kubeconfig == "" {
		return cli.Usage(errors.New("no cluster given: give --kubeconfig or set DEMO_KUBECONFIG"))
	}
	logs, err := d.logFile(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }()
	quiet := d.process
	quiet.stderr = logs

	group, ctx := errgroup.WithContext(ctx)
	listening := make(chan string, 1)
	group.Go(func() error {
		return serve(ctx, cfg, quiet, func(address string) { listening <- address })
	})
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case address := <-listening:
			return d.show(ctx, "http://"+address, logs.Name())
		}
	})
	return group.Wait()
}

func (d demo) logFile(cfg Config) (*os.File, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data folder: %w", err)
	}
	logs, err := os.OpenFile(filepath.Join(cfg.Data, "k8splugin.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return logs, nil
}

// show runs the session. When it returns, the service continues.
func (d demo) show(ctx context.Context, server, logs string) error {
	if err := d.play(ctx, server); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // interrupted: the service's own end is what counts
		}
		return fmt.Errorf("the demonstration failed (the service's log is %s): %w", logs, err)
	}
	d.printf("\nThe service runs until you press Ctrl-C. Its log is %s\n", logs)
	for _, path := range []string{"/docs", "/v1/vnf_instances", "/v1/cloud_regions/sandbox", "/v1/operations", "/metrics"} {
		d.printf("  %s%s\n", server, path)
	}
	return nil
}

func (d demo) play(ctx context.Context, server string) error {
	if d.try(ctx, server, "region", "show", "sandbox") == nil {
		d.printf("\n# cloud region sandbox is already registered\n")
	} else if err := d.tell(ctx, server, "region", "add", "sandbox", "--kubeconfig", d.kubeconfig); err != nil {
		return err
	}
	if err := d.tell(ctx, server, "package", "push", d.pkg, "--id", "edgex"); err != nil {
		return err
	}
	// Create two instances of one package, each with its own namespace and
	// values.
	for i, name := range []string{"edgex-a", "edgex-b"} {
		if d.try(ctx, server, "instance", "show", name) == nil {
			d.printf("\n# instance %s already exists\n", name)
			continue
		}
		err := d.tell(ctx, server, "instance", "create", "--region", "sandbox", "--package", "edgex",
			"--namespace", name, "--name", name, "--set", fmt.Sprintf("replicas=%d", i+1),
			"--set-string", "redis_password=only-a-demonstration", "--wait")
		if err != nil {
			return err
		}
	}
	if err := d.tell(ctx, server, "instance", "tree", "edgex-a"); err != nil {
		return err
	}
	return d.tell(ctx, server, "instance", "list")
}

// tell prints a command line and executes it.
func (d demo) tell(ctx context.Context, server string, args ...string) error {
	d.printf("\n$ k8splugin %s\n", strings.Join(args, " "))
	return d.execute(ctx, d.process, server, args)
}

// try executes a command line without output.
func (d demo) try(ctx context.Context, server string, args ...string) error {
	silent := d.process
	silent.stdout, silent.stderr = io.Discard, io.Discard
	return d.execute(ctx, silent, server, args)
}

func (d demo) execute(ctx context.Context, p process, server string, args []string) error {
	root := p.command()
	root.SetArgs(append(args, "--server", server))
	return root.ExecuteContext(ctx)
}

func (d demo) printf(format string, args ...any) { fmt.Fprintf(d.process.stdout, format, args...) }
