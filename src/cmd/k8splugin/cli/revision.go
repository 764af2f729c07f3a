package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func instanceRevisions(s *session) *cobra.Command {
	return &cobra.Command{
		Use:     "revisions ID|NAME",
		Aliases: []string{"history"},
		Short:   "List an instance's revisions",
		Long: `List an instance's revisions.

The state of a revision is active, superseded (it was active before), pending (the
running operation applies it) or failed (its operation failed, and its results were
kept). A number is missing if its revision was undone or replaced after it had failed, or
if it is older than the revisions that the server keeps. "operation list --instance"
shows how each change ended.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, _, err := s.find(ctx, c, args[0])
			if err != nil {
				return err
			}
			p, err := c.list(ctx, catalogue{list: ask(api.NewListRevisionsRequest(root, i.ID, nil)), key: "revisions"}, nil)
			if err != nil {
				return err
			}
			return printAll(s.out, p, revisionColumns)
		}),
	}
}

func instanceNotes(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notes ID|NAME [REVISION]",
		Short: "Show what an instance's chart tells its users",
		Long: `Show the notes of an instance's chart (NOTES.txt): those of the active revision, or of
the given one. Secrets are masked. Packages without a chart have no notes.`,
		Example:           "  k8splugin instance notes fw-1",
		Args:              nameAndRevision,
		ValidArgsFunction: s.ids(instances(), false),
	}
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		number, err := revisionOf(cmd, args, 0)
		if err != nil {
			return err
		}
		i, _, err := s.find(ctx, c, args[0])
		if err != nil {
			return err
		}
		a, err := c.call(ctx, ask(api.NewGetRevisionRequest(root, i.ID, cmp.Or(number, i.Revision))))
		if err != nil {
			return err
		}
		var r wire.Revision
		if err := a.decode(&r); err != nil {
			return err
		}
		return s.out.print(a, func(w io.Writer) error {
			if r.Notes == "" {
				fmt.Fprintf(s.out.stderr, "revision %d of %s has no notes\n", r.Number, printable(args[0]))
				return nil
			}
			_, err := fmt.Fprintln(w, printable(r.Notes))
			return err
		})
	})
	return cmd
}

func revisionColumns(now clock) []column[wire.Revision] {
	return []column[wire.Revision]{
		{"REVISION", false, func(r wire.Revision) string { return strconv.Itoa(r.Number) }},
		{"STATE", false, func(r wire.Revision) string { return string(r.State) }},
		{"RESTORES", false, func(r wire.Revision) string {
			if r.Restores == 0 {
				return ""
			}
			return strconv.Itoa(r.Restores)
		}},
		{"PACKAGE", false, func(r wire.Revision) string { return r.Package }},
		{"AGE", false, func(r wire.Revision) string { return now.age(r.Created) }},
		{"DESCRIPTION", false, func(r wire.Revision) string { return r.Description }},
		{"OPERATION", true, func(r wire.Revision) string { return r.Operation }},
		{"PARAMETERS", true, func(r wire.Revision) string { return jsonPairs(r.Parameters) }},
		{"LABELS", true, func(r wire.Revision) string { return pairsOf(r.Labels) }},
		{"DIGEST", true, func(r wire.Revision) string { return r.PackageDigest }},
	}
}

// jsonPairs formats values as name=value, each as JSON.
func jsonPairs(m map[string]any) string {
	texts := make(map[string]string, len(m))
	for name, value := range m {
		texts[name] = string(jsonOf(value))
	}
	return pairsOf(texts)
}

func instanceRollback(s *session) *cobra.Command {
	var w waiting
	var k confirmFlags
	var m executionFlags
	var body wire.Rollback
	var dry bool
	cmd := &cobra.Command{
		Use:   "rollback ID|NAME [REVISION]",
		Short: "Roll an instance back to an earlier revision",
		Long: `Roll an instance back to an earlier revision: the one before the active revision, or
the given one. The content of the earlier revision is applied unchanged,
and becomes a new revision.` + waitHelp + confirmHelp,
		Example:           "  k8splugin instance rollback fw-1 3 --dry-run",
		Args:              nameAndRevision,
		ValidArgsFunction: s.ids(instances(), false),
	}
	cmd.Flags().IntVar(&body.Revision, "to", 0, "number of the revision, as listed by \"instance revisions\"")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them")
	m.define(cmd)
	m.defineOnFailure(cmd, "undo")
	m.defineValidate(cmd)
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		var err error
		if body.Revision, err = revisionOf(cmd, args, body.Revision); err != nil {
			return err
		}
		if body.Execution, err = m.options(); err != nil {
			return err
		}
		i, _, err := s.find(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := ask(api.NewRollBackVnfInstanceRequestWithBody(root, i.ID, nil, jsonMedia, nil))
		if dry {
			return s.dryRun(ctx, c, r, &body)
		}
		return s.change(ctx, c, r, &body, changeOptions{w, k})
	})
	return cmd
}

// nameAndRevision accepts the name of an instance and the number of a revision.
func nameAndRevision(cmd *cobra.Command, args []string) error {
	return cmp.Or(checkArgs(cmd, cobra.RangeArgs(1, 2), args), checkNames(cmd, args))
}

// revisionOf returns the revision that the second argument or --to gives; 0 if none.
func revisionOf(cmd *cobra.Command, args []string, to int) (int, error) {
	given := cmd.Flags().Changed("to")
	switch {
	case len(args) == 2 && given:
		return 0, usagef("give the revision as an argument or with --to, not both")
	case len(args) == 2:
		number, err := strconv.Atoi(args[1])
		if err != nil || number < 1 {
			return 0, usagef("the revision must be a number, at least 1, got %q", args[1])
		}
		return number, nil
	case given && to < 1:
		return 0, usagef("--to: must be the number of a revision, at least 1, got %d", to)
	}
	return to, nil
}
