package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// sharedKind has the commands for one kind of the resources that VNF instances share.
// T is the document of one resource.
type sharedKind[T any] struct {
	noun     string // "network"
	restarts bool   // a change can restart workloads
	all      catalogue
	columns  func(clock) []column[T]
	describe func(*printer, io.Writer, answer) error
	creation request
	change   func(id string) request
}

// sharedFlags holds the flags of a shared resource that can change.
type sharedFlags struct {
	keep        bool
	description string
	labels      labelsFlag
}

func (f *sharedFlags) define(cmd *cobra.Command, noun string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.keep, "keep", false, "keep the "+noun+" when nothing holds it")
	flags.StringVar(&f.description, "description", "", "description of the "+noun)
	flags.Var(&f.labels, "label", "label; can be repeated")
}

// newShared is a new shared resource, as the flags and the argument describe it.
type newShared struct {
	name, region, holder, project string
	flags                         sharedFlags
}

// create completes the command that creates a resource. Body returns its request.
func (k sharedKind[T]) create(s *session, cmd *cobra.Command, body func(wanted newShared) (any, error)) *cobra.Command {
	var wanted newShared
	cmd.Short = "Create a " + k.noun + ", or hold one that is equal"
	cmd.Args = oneName
	wanted.flags.define(cmd, k.noun)
	flags := cmd.Flags()
	flags.StringVar(&wanted.region, "region", "", "cloud region of the "+k.noun)
	flags.StringVar(&wanted.holder, "holder", "", "name that holds the "+k.noun+" (default your own)")
	flags.StringVar(&wanted.project, "project", "", "project of the "+k.noun)
	completeFlag(cmd, "region", s.ids(regions(), false))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		wanted.name = args[0]
		document, err := body(wanted)
		if err != nil {
			return err
		}
		a, err := c.send(ctx, k.creation, document)
		if err != nil {
			return err
		}
		return printOne(s.out, a, k.columns)
	})
	return cmd
}

// update completes the command that changes a resource. Edit adds the fields of the kind
// to the merge patch.
func (k sharedKind[T]) update(s *session, cmd *cobra.Command, edit func(patch map[string]any) error) *cobra.Command {
	f := sharedFlags{labels: labelsFlag{removable: true}}
	var dry, restart bool
	cmd.Use = "update " + strings.ToUpper(k.noun)
	cmd.Short = "Change a " + k.noun
	cmd.Args = oneName
	cmd.ValidArgsFunction = s.ids(k.all, false)
	f.define(cmd, k.noun)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them")
	if k.restarts {
		cmd.Flags().BoolVar(&restart, "restart", false, "restart the workloads that see the change only then, and wait for them")
	}
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		patch := map[string]any{}
		if err := edit(patch); err != nil {
			return err
		}
		addChanged(patch, cmd, map[string]any{"keep": f.keep, "description": f.description})
		if len(f.labels.labels) > 0 {
			patch["labels"] = f.labels.labels
		}
		if len(patch) == 0 {
			return misused(cmd, errors.New("nothing to change"))
		}
		r := k.change(args[0])
		r.query = url.Values{}
		for name, set := range map[string]bool{"dry_run": dry, "restart": restart} {
			if set {
				r.query.Set(name, "true")
			}
		}
		a, err := c.send(ctx, r, patch)
		if err != nil {
			return err
		}
		if dry {
			return s.out.printSharedPreview(a)
		}
		return printOne(s.out, a, k.columns)
	})
	return cmd
}

// printSharedPreview prints what a change of a shared resource would do.
func (pr *printer) printSharedPreview(a answer) error {
	var p wire.SharedPreview
	if err := a.decode(&p); err != nil {
		return err
	}
	pr.warn(p.Warnings...)
	return pr.print(a, func(w io.Writer) error {
		fields := []column[wire.FieldChange]{
			{"FIELD", false, func(f wire.FieldChange) string { return f.Path }},
			{"OLD", false, func(f wire.FieldChange) string { return strings.Join(textLines(f.Old), " ") }},
			{"NEW", false, func(f wire.FieldChange) string { return strings.Join(textLines(f.New), " ") }},
		}
		type row struct {
			instance string
			wire.SharedWorkload
		}
		var rows []row
		for _, u := range p.Users {
			for _, workload := range u.Workloads {
				rows = append(rows, row{u.Instance, workload})
			}
		}
		if p.Hidden > 0 {
			fmt.Fprintf(pr.stderr, "%d more instances use it, which you may not see\n", p.Hidden)
		}
		return cmp.Or(table(w, false, fields, p.Fields), section(w, false, p.Changes, changeColumns()), section(w, false, rows, []column[row]{
			{"INSTANCE", false, func(r row) string { return r.instance }},
			{"WORKLOAD", false, func(r row) string { return r.Kind + "/" + r.Name }},
			{"RESTARTABLE", false, func(r row) string { return strconv.FormatBool(r.Restartable) }},
		}))
	})
}

// addChanged adds the values of the flags that are given, by the names of the flags.
func addChanged(patch map[string]any, cmd *cobra.Command, values map[string]any) {
	for name, value := range values {
		if cmd.Flags().Changed(name) {
			patch[name] = value
		}
	}
}

// release returns the command that ends a hold on a resource.
func (k sharedKind[T]) release(s *session) *cobra.Command {
	var holder string
	var unused bool
	cmd := &cobra.Command{
		Use:     "delete " + strings.ToUpper(k.noun),
		Aliases: []string{"release", "remove", "rm"},
		Short:   "Release a " + k.noun + "; the last holder deletes it",
		Long: fmt.Sprintf(`End your hold on a %[1]s, or that of --holder. If the %[1]s has other holders,
it remains. Otherwise it is deleted.`, k.noun),
		Args:              oneName,
		ValidArgsFunction: s.ids(k.all, false),
	}
	cmd.Flags().StringVar(&holder, "holder", "", "name that releases the "+k.noun+" (default your own)")
	cmd.Flags().BoolVar(&unused, "if-unused", false, "fail if the "+k.noun+" has other holders")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		query := url.Values{}
		if holder != "" {
			query.Set("holder", holder)
		}
		if unused {
			query.Set("if_unused", "true")
		}
		r := k.all.item(http.MethodDelete, args[0])
		r.query = query
		a, err := c.call(ctx, r)
		if err != nil || len(a.body) == 0 {
			return err
		}
		return printOne(s.out, a, k.columns)
	})
	return cmd
}

// list returns the command that lists the resources, and its filters.
func (k sharedKind[T]) list(s *session) (*cobra.Command, *filters) {
	cmd, q := listCommand(s, "List "+k.noun+"s", k.all, k.columns)
	q.add(cmd, "region", "cloud_region_id", "filter by cloud region")
	q.add(cmd, "state", "state", "filter by state: creating, active, changing, deleting or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "region", s.ids(regions(), false))
	completeFlag(cmd, "state", fixed("creating", "active", "changing", "deleting", "failed"))
	return cmd, q
}

// show returns the command that shows a resource.
func (k sharedKind[T]) show(s *session) *cobra.Command {
	return s.showCommand("show "+strings.ToUpper(k.noun), "Show a "+k.noun+" and its users", k.all,
		func(w io.Writer, a answer) error { return k.describe(s.out, w, a) })
}

// countOf returns the number of holders; lists do not have it.
func countOf(count *int) string {
	if count == nil {
		return "-"
	}
	return strconv.Itoa(*count)
}

// users prints the holders of a shared resource, if there are any.
func (pr *printer) users(w io.Writer, users []wire.Subject) error {
	return section(w, pr.format.name == formatWide, users, []column[wire.Subject]{
		{"KIND", false, func(u wire.Subject) string { return string(u.Kind) }},
		{"USER", false, func(u wire.Subject) string { return u.ID }},
	})
}
