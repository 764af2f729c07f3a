// Command k8splugin brings up and manages network functions on Kubernetes
// clusters. `k8splugin serve` is the service; the other commands are its client,
// and `k8splugin demo` shows both.
//
// This package names the parts and runs them; it is the only one that reads
// flags, files and the environment. It holds no logic of its own.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/cmd/k8splugin/cli"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// client-go logs through one logger for the whole process.
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	os.Exit(run(ctx, os.Args[1:], process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv,
		terminal: func(f any) bool {
			file, ok := f.(*os.File)
			return ok && term.IsTerminal(int(file.Fd()))
		},
	}))
}

// process is what the program is given by the system. Tests give their own.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	terminal       func(any) bool
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, p process) int {
	root := p.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	cli.Report(p.stderr, err)
	return cli.ExitCode(err)
}

// command returns the whole command tree.
func (p process) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "k8splugin",
		Short:         "Network functions on any number of Kubernetes sites",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Usage(err) })
	root.AddCommand(serveCommand(p), demoCommand(p), backupCommand(p), accessCommand(p), importCommand(p))
	commands := cli.Commands(cli.Env{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		InIsTerminal: p.terminal(p.stdin), IsTerminal: p.terminal(p.stdout), ErrIsTerminal: p.terminal(p.stderr),
		Getenv: p.getenv,
		Lint:   lint,
	})
	// What a client may ask of keys and of the audit is the command line's, what
	// is done to their files is the service's.
	for _, c := range commands {
		switch c.Name() {
		case "keys":
			c.AddCommand(keyCommands(p)...)
		case "audit":
			c.AddCommand(verifyCommand(p))
		}
	}
	root.AddCommand(commands...)
	return root
}

// lint checks a package exactly as an upload to a server of this version does.
func lint(archive []byte) ([]string, error) {
	p, err := catalog.Lint(context.Background(), archive, render.DefaultLimits(), renderers())
	return p.Warnings, err
}
