package cli

import (
	"context"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

func instanceUpdate(s *session) *cobra.Command {
	var f specFlags
	var w waiting
	var k consent
	cmd := &cobra.Command{
		Use:     "update ID|NAME",
		Aliases: []string{"upgrade"},
		Short:   "Change an instance's package, parameters or labels",
		Long: `Change an instance's package, parameters or labels. What is not named stays as it is.

Objects that the new revision no longer has are removed. --unset takes a
parameter away and --label key- a label; the list of --oof replaces the one that
is there.` + waitHelp + confirmHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	f.defineChange(s, cmd)
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := f.body(s)
		if err != nil {
			return err
		}
		if len(body) == 0 {
			return usagef("nothing to change: give --package, --set, --unset, --values, --oof, --network, --namespaces, --label or --description")
		}
		r, err := patchOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		return s.change(ctx, c, r, body, how{w, k})
	})
	return cmd
}

func instanceDiff(s *session) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "diff ID|NAME",
		Short: "Show what an update would change in the cluster, without doing it",
		Long: `Show what an update with the same flags would change in the cluster, without
doing it. Without flags it shows what applying the instance again would change.

As for diff(1) the exit code is 0 when nothing would change and 1 when something
would. Values of Secrets are masked.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	f.defineChange(s, cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := f.body(s)
		if err != nil {
			return err
		}
		r, err := patchOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		p, a, err := s.preview(ctx, c, r, body)
		if err != nil {
			return err
		}
		err = s.print(a, func(w io.Writer) error {
			defer s.conclude(p)
			return writeDiff(w, p.Changes, s.colour())
		})
		if err == nil && p.differs() {
			return errSilent
		}
		return err
	})
	return cmd
}

// defineChange defines the flags of an update, which can also take away.
func (f *specFlags) defineChange(s *session, cmd *cobra.Command) {
	f.labels.removable = true
	f.define(s, cmd)
	cmd.Flags().Var(unsetFlag{f.set}, "unset", "a parameter to take away")
}

// patchOf is the request that changes the instance which has the id or name.
func patchOf(ctx context.Context, c *client, what string) (request, error) {
	i, _, err := c.find(ctx, what)
	return request{method: http.MethodPatch, path: at("vnf_instances", i.ID)}, err
}
