package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// siteEvent is one event of a site operation.
type siteEvent struct{ wire.SubjectEvent }

// line returns the event as a line, or "" if the event is not of interest to a
// reader.
func (e siteEvent) line() string {
	text := e.Task
	switch {
	case text == "" && e.Kind == nf.EventPlay:
		text = e.Play
	case e.Message != "" && text != "":
		text += ": " + e.Message
	case text == "":
		text = e.Message
	}
	switch e.Kind {
	case nf.EventSkipped, nf.EventTask: // its result is a separate event
		return ""
	case nf.EventLine, nf.EventNote:
		return strings.TrimSpace("  " + e.Host + " " + text)
	case nf.EventPlay, nf.EventOK, nf.EventChanged, nf.EventRetry, nf.EventIgnored, nf.EventFailed, nf.EventUnreachable, nf.EventStats:
	}
	return strings.Join(strings.Fields(e.Host+" "+string(e.Kind)+" "+text), " ")
}

func siteWatch(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME [OPERATION]",
		Short: "Watch a site's operation until it ends",
		Long: `Watch a site's operation until it ends. The exit code reports its outcome.

Without OPERATION, the command watches the site's last operation. With -o json or
yaml each state of the operation is a document on standard output. An interrupt
ends only the watching; the operation continues.`,
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.RangeArgs(1, 2), args) },
		ValidArgsFunction: s.ids(sites(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			op, err := c.siteOperation(ctx, args)
			if err != nil {
				return err
			}
			_, err = s.watcher.follow(ctx, c, ask(api.NewFollowSiteOperationRequest(root, args[0], op, nil)), ended, s.out.states())
			return err
		}),
	}
}

func siteCancel(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "cancel NAME [OPERATION]",
		Short:             "Cancel a site's operation",
		Long:              "Cancel a site's operation: the last one, unless OPERATION names another. Completed work stays.",
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.RangeArgs(1, 2), args) },
		ValidArgsFunction: s.ids(sites(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			op, err := c.siteOperation(ctx, args)
			if err != nil {
				return err
			}
			a, err := c.call(ctx, ask(api.NewCancelSiteOperationRequest(root, args[0], op, nil)))
			if err != nil {
				return err
			}
			return printOne(s.out, a, operationColumns)
		}),
	}
}

// siteOperation returns the operation that the arguments name, or the site's
// last one.
func (c *client) siteOperation(ctx context.Context, args []string) (string, error) {
	if len(args) > 1 {
		return args[1], nil
	}
	a, err := c.call(ctx, ask(api.NewGetSiteRequest(root, args[0])))
	if err != nil {
		return "", err
	}
	var in wire.Site
	err = a.decode(&in)
	return in.Operation, err
}

// event prints an event if the display prints lines.
func (p *progress) event(e siteEvent) {
	if p == nil {
		return
	}
	if line := e.line(); line != "" && !p.live && p.report == nil {
		fmt.Fprintln(p.out, flat(line))
	}
}
