package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func serviceWait(s *session) *cobra.Command {
	var until string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a network service meets a condition",
		Long: `Wait until a network service is ready, or meets another condition: deleted, or
state=STATE. The command fails at once if the network service has failed.`,
		Example:           "  k8splugin service wait vpn --for ready --timeout 10m",
		Args:              oneName,
		ValidArgsFunction: s.ids(services(), false),
	}
	cmd.Flags().StringVar(&until, "for", forReady, "condition: ready, deleted, or state=STATE")
	cmd.Flags().DurationVar(&limit, "timeout", 30*time.Minute, "maximum time to wait")
	completeFlag(cmd, "for", fixed(forReady, forDeleted, "state=failed", "state=ready"))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		state, named := strings.CutPrefix(until, "state=")
		if !named && !slices.Contains([]string{forReady, forDeleted}, until) {
			return usagef("--for: must be ready, deleted or state=STATE, got %q", until)
		}
		return awaitService(ctx, s, c, args[0], waitFor{until, state, limit})
	})
	return cmd
}

// awaitService reads a network service until it meets a condition.
func awaitService(ctx context.Context, s *session, c *client, id string, w waitFor) error {
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	last := wire.Service{State: "not known yet"}
	for {
		a, err := c.call(limited, services().item(http.MethodGet, id))
		if limited.Err() != nil {
			break
		}
		if w.until == forDeleted && ExitCode(err) == exitNotFound {
			return nil
		}
		now := wire.Service{}
		if err == nil {
			err = a.decode(&now)
		}
		if err != nil {
			return err
		}
		last = now
		switch {
		case w.until == forReady && now.State == nf.ServiceFailed:
			return &exitError{exitFailed, fmt.Errorf("network service %s has failed: %s", id, now.Message)}
		case w.until == forReady && now.State == nf.ServiceReady, w.state != "" && string(now.State) == w.state:
			return printOne(s.out, a, serviceColumns)
		}
		if !pause(limited, s.interval) {
			break
		}
	}
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, fmt.Errorf("interrupted; network service %s is %s", id, last.State)}
	}
	return &exitError{exitTimeout, fmt.Errorf("timed out after %s: network service %s is %s", w.limit, id, last.State)}
}
