// Package cli provides the client commands of the program: region, package,
// instance, operation, site, notification, audit, keys and context, get, apply, status, login
// and version, and the exit-codes help topic.
//
// It uses only the server's HTTP API. It prints responses as tables and trees
// for people, or as the server's JSON for programs. A command that stops
// waiting for an operation does not stop the operation. A request whose
// response was lost is resent and executed once.
//
// The package does not serve and does not use a kubeconfig to connect. It shares
// only the package wire with the server, and accesses the environment and the
// terminal only through Env.
package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Env provides the environment of the process to the commands. Every function
// and stream is required, except Now.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	InIsTerminal  bool // Stdin is a terminal, so that questions are possible
	IsTerminal    bool // Stdout is a terminal, so that output may have color and symbols
	ErrIsTerminal bool // Stderr is a terminal, so that progress redraws its lines

	// Getenv returns an environment variable, such as K8SPLUGIN_SERVER or
	// NO_COLOR.
	Getenv func(key string) string

	// Lint checks a package (the bytes of a zip or tar.gz) as an upload does, and
	// returns the name that it declares. Its error contains nf.Violations if there
	// are any.
	Lint func(archive []byte) (name string, warnings []string, err error)

	// Check checks a package as Lint does. It also renders it, without a region, if it is
	// a chart or if there are inputs. Values of a chart may be missing.
	Check func(ctx context.Context, archive []byte, in nf.Inputs) (warnings []string, err error)

	// Render renders a package without a region, and returns its manifests. If
	// secrets is false, they are masked. Its error contains nf.Violations if the
	// package or the inputs are not valid.
	Render func(ctx context.Context, archive []byte, req nf.InstantiateRequest, secrets bool) (nf.Preview, error)

	// Translate translates the VNF descriptor of a CSAR. An empty flavor is the only
	// one, and an empty level the default one. Its error contains nf.Violations if the
	// descriptor cannot be translated.
	Translate func(archive []byte, flavor, level string) (Translation, error)

	// Version is the version of the program.
	Version string

	// Now is the clock for ages; default time.Now.
	Now func() time.Time
}

// Commands returns the commands to add to the root command. They do not print
// their errors: pass those to ExitCode and Report. The root must silence
// cobra's errors and usage.
func Commands(env Env) []*cobra.Command {
	return commands(newSession(env))
}

func commands(s *session) []*cobra.Command {
	return []*cobra.Command{
		getCommand(s),
		applyCommand(s),
		statusCommand(s),
		regionCommand(s),
		packageCommand(s),
		instanceCommand(s),
		operationCommand(s),
		vnfCommand(s),
		occurrenceCommand(s),
		notificationCommand(s),
		inventoryCommand(s),
		networkCommand(s),
		volumeCommand(s),
		serviceCommand(s),
		siteCommand(s),
		auditCommand(s),
		keysCommand(s),
		backupCommand(s),
		contextCommand(s),
		loginCommand(s),
		versionCommand(s),
		exitCodesTopic(),
	}
}
