package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func instanceUpdate(s *session) *cobra.Command {
	var f specFlags
	var w waiting
	var k confirmFlags
	var dry bool
	cmd := &cobra.Command{
		Use:     "update ID|NAME",
		Aliases: []string{"upgrade"},
		Short:   "Update an instance's package, parameters or labels",
		Long: `Update an instance's package, parameters or labels. All else stays unchanged.

Objects that the new revision no longer contains are deleted. --unset removes a
parameter, and --label key- removes a label. The list of --oof replaces the
existing list. --attach replaces all attachments, --volume all volumes,
--compute-profile all compute profiles, and --drift-ignore all ignored fields.` + waitHelp + confirmHelp,
		Example: `  k8splugin instance update fw-1 --package firewall-2 --wait
  k8splugin instance update fw-1 --set replicas=5 --unset proxy --label tier-`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	f.defineChange(s, cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them; \"instance diff\" shows their fields")
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := f.patch(s.in)
		if err != nil {
			return err
		}
		if string(jsonOf(body)) == "{}" || f.strict && string(jsonOf(body)) == `{"strict":true}` {
			return usagef("nothing to change: give --package, --set, --unset, --values, --oof, --network, --namespaces, --attach, --volume, --compute-profile, --drift, --claims, --label or --description; "+
				"to correct drift: k8splugin instance apply %s", args[0])
		}
		r, err := s.changeOf(ctx, c, args[0], f.answers, body)
		if err != nil {
			return err
		}
		if dry {
			return s.dryRun(ctx, c, r, body)
		}
		return s.change(ctx, c, r, body, changeOptions{w, k})
	})
	return cmd
}

// instanceApply returns the command that applies an instance as it is.
func instanceApply(s *session) *cobra.Command {
	var m executionFlags
	var w waiting
	var k confirmFlags
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply ID|NAME",
		Short: "Apply an instance again, to correct drift",
		Long: `Apply the objects of an instance's active revision again. Objects that others have
changed or deleted become as they were. "instance diff" without flags shows what
this would change.` + waitHelp + confirmHelp,
		Example:           "  k8splugin instance apply fw-1 --wait",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	m.define(cmd)
	m.defineOnFailure(cmd, "undo")
	m.defineValidate(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them")
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		options, err := m.options()
		if err != nil {
			return err
		}
		r, err := s.patchOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		if dry {
			return s.dryRun(ctx, c, r, &wire.InstancePatch{Execution: options})
		}
		return s.change(ctx, c, r, &wire.InstancePatch{Execution: options}, changeOptions{w, k})
	})
	return cmd
}

func instanceDiff(s *session) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "diff ID|NAME",
		Short: "Show the changes that an update would make",
		Long: `Show the changes that an update with the same flags would make in the cluster,
without making them. Without flags, show the changes that applying the instance
again would make.

As with diff(1), the exit code is 0 if there are no changes and 1 if there are.
Values of Secrets are masked.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	f.defineChange(s, cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := f.patch(s.in)
		if err != nil {
			return err
		}
		r, err := s.changeOf(ctx, c, args[0], f.answers, body)
		if err != nil {
			return err
		}
		p, a, err := s.preview(ctx, c, r, body)
		if err != nil {
			return err
		}
		err = s.out.print(a, func(w io.Writer) error {
			defer s.out.printSummary(p)
			return writeDiff(w, p.Changes, s.out.colour(s.out.outTerminal))
		})
		if err == nil && p.differs() {
			return errSilent
		}
		return err
	})
	return cmd
}

// defineChange defines the flags of an update, which can also delete values.
func (f *specFlags) defineChange(s *session, cmd *cobra.Command) {
	f.labels.removable = true
	f.define(s, cmd)
	cmd.Flags().Var(unsetFlag{f.set}, "unset", "parameter to remove")
}

// patchOf returns the request that changes the instance with the id or name.
func (s *session) patchOf(ctx context.Context, c *client, what string) (request, error) {
	i, _, err := s.find(ctx, c, what)
	return ask(api.NewUpdateVnfInstanceRequestWithBody(root, i.ID, nil, mergePatch, nil)), err
}

// changeOf is patchOf for a change. Without --oof, the other oof_parameters of the instance
// stay beside new compute profiles.
func (s *session) changeOf(ctx context.Context, c *client, what string, given placementAnswers, body *wire.InstancePatch) (request, error) {
	i, _, err := s.find(ctx, c, what)
	if len(given.oof) == 0 {
		given.profiles.keep(body, i)
	}
	return ask(api.NewUpdateVnfInstanceRequestWithBody(root, i.ID, nil, mergePatch, nil)), err
}
