// Command k8splugin deploys and manages network functions on Kubernetes
// clusters. `k8splugin serve` is the service; the other commands are its
// client, and `k8splugin demo` shows both.
//
// This package creates the components, connects them and runs them. It is the
// only one that reads flags, configuration files and the environment. It also
// backs up the store. It does not execute operations, authorize requests or
// define wire formats.
package main

import (
	"context"
	"io"
	"log" //nolint:depguard // the logger of libraries
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func main() { os.Exit(execute(nil)) }

// execute executes the command line of the process and returns the exit code. The store of
// the service gets a decorator unless it is nil.
func execute(decorate func(store.KV) store.KV) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// client-go has one logger for the whole process.
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	// Helm prints values of charts that it cannot merge, which may be secret.
	log.SetOutput(io.Discard)
	return run(ctx, os.Args[1:], process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, decorate: decorate,
		terminal: func(f any) bool {
			file, ok := f.(*os.File)
			return ok && term.IsTerminal(int(file.Fd()))
		},
	})
}

// process holds the streams and functions that the system gives to the program.
// Tests replace it.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	terminal       func(any) bool
	decorate       func(store.KV) store.KV // of the store of the service; nil: it is used as it is
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, p process) int {
	root := p.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	cli.Report(p.stderr, err)
	return cli.ExitCode(err)
}

// command returns the root of the command tree.
func (p process) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "k8splugin",
		Short:         "Manage network functions on Kubernetes clusters",
		Version:       version(),
		Args:          cli.NoSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(serveCommand(p), demoCommand(p), accessCommand(p), importCommand(p))
	commands := cli.Commands(cli.Env{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		InIsTerminal: p.terminal(p.stdin), IsTerminal: p.terminal(p.stdout), ErrIsTerminal: p.terminal(p.stderr),
		Getenv: p.getenv,
		Lint:   lint, Check: check, Render: template, Translate: translate, Version: version(),
	})
	// Package cli has the client's subcommands for keys, backups and audit; this package
	// adds those that work on files and on the store itself.
	for _, c := range commands {
		switch c.Name() {
		case "keys":
			c.AddCommand(keyCommands(p)...)
		case "backup":
			c.AddCommand(backupCommands(p)...)
		case "audit":
			c.AddCommand(verifyCommand(p))
		}
	}
	root.AddCommand(commands...)
	cli.CheckUsage(root)
	return root
}

// lint checks a package as an upload to a server of this version does.
func lint(archive []byte) (string, []string, error) {
	p, err := inspect(context.Background(), archive)
	return p.Name, p.Warnings, err
}
