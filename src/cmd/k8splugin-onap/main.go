// Command k8splugin-onap runs the service among simulators of ONAP's components, for
// trials without ONAP:
//
//	k8splugin-onap up --kubeconfig FILE     A&AI, SDC with its Kafka, the service, and one flow with all of them
//	k8splugin-onap so FLOW --service URL …  one flow of SO against any service and any A&AI
//
// Everything that it starts listens on loopback, and ends with it. It does not start a
// cluster: `make onap` uses the sandbox.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run executes a command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use: "k8splugin-onap", Short: "Run the service among simulators of ONAP's components",
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(upCommand(), soCommand()) //nolint:contextcheck // cobra passes the context of ExecuteContext to them
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err //nolint:wrapcheck // the error of a command is complete
	}
	return nil
}
