// Package cli is the command line of the service: the region, package, instance,
// operation, site, audit and keys commands, and the exit-codes help topic.
//
// It speaks to a server through its HTTP API only, and prints what that
// answers: for people as tables and trees, for programs as the server's own
// JSON. Waiting for an operation never owns it: whoever stops waiting leaves it
// running. A request whose answer was lost is sent again, and done once.
//
// The package does not serve, does not read kubeconfigs for itself, and knows
// of the answers only the fields that it shows. It reads no environment and
// opens no terminal but what Env gives it.
package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
)

// Env is what the commands are given of the process that they run in. Every
// function and stream is required, except Now.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	InIsTerminal  bool // Stdin is a terminal: somebody may be asked
	IsTerminal    bool // Stdout is a terminal: answers may use colour and symbols
	ErrIsTerminal bool // Stderr is a terminal: progress redraws its lines

	// Getenv reads the environment: K8SPLUGIN_SERVER and its like, NO_COLOR.
	Getenv func(key string) string

	// Lint checks a package (the bytes of a zip or tar.gz) as an upload does.
	// Its error carries nf.Violations where there are any.
	Lint func(archive []byte) (warnings []string, err error)

	// Now is the clock that ages are counted by; time.Now when nil.
	Now func() time.Time
}

// Commands returns the commands to add to the root command. Their errors are
// for ExitCode and Report; they print none themselves, so the root must silence
// cobra's errors and usage.
func Commands(env Env) []*cobra.Command {
	if env.Now == nil {
		env.Now = time.Now
	}
	return commands(&session{Env: env, retries: retries(), redraw: time.Second})
}

func commands(s *session) []*cobra.Command {
	return []*cobra.Command{
		regionCommand(s),
		packageCommand(s),
		instanceCommand(s),
		operationCommand(s),
		notificationCommand(s),
		siteCommand(s),
		auditCommand(s),
		keysCommand(s),
		exitCodesTopic(),
	}
}
