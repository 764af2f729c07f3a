package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// driftFlags holds the flags for the policy on changes by other clients.
type driftFlags struct {
	mode   string
	ignore []string
}

func (f *driftFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "drift", "", "action if other clients change or delete objects: off, warn or correct (default off)")
	flags.StringArrayVar(&f.ignore, "drift-ignore", nil, "field that other clients may change, as in Deployment/router:spec.replicas or metadata.labels; can be repeated")
	completeFlag(cmd, "drift", fixed("off", "warn", "correct"))
}

// policy returns the given flags; nil if there are none.
func (f *driftFlags) policy() (*wire.DriftPolicy, error) {
	if f.mode == "" && len(f.ignore) == 0 {
		return nil, nil
	}
	if !slices.Contains([]string{"", "off", "warn", "correct"}, f.mode) {
		return nil, usagef("--drift: must be off, warn or correct, got %q", f.mode)
	}
	out := &wire.DriftPolicy{Mode: nf.DriftMode(f.mode)}
	for _, text := range f.ignore {
		object, path, found := strings.Cut(text, ":")
		if !found {
			object, path = "", text
		}
		if path == "" {
			return nil, usagef("--drift-ignore: %q is not the path of a field, with or without an object, as in Deployment/router:spec.replicas", text)
		}
		out.Ignore = append(out.Ignore, wire.DriftIgnore{Object: object, Path: path})
	}
	return out, nil
}

// driftLine returns the policy and the state of an instance's drift.
func driftLine(i wire.Instance) string {
	if i.Drift == nil {
		return ""
	}
	line := string(i.Drift.Mode)
	if i.DriftState != "" {
		line += ": " + string(i.DriftState)
	}
	if i.DriftMessage != "" {
		line += ", " + i.DriftMessage
	}
	return line
}

func instanceDrift(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "drift ID|NAME",
		Short: "Show what other clients have changed or deleted",
		Long: `Show the objects of an instance that differ from those that the service has applied,
with the field manager that has changed each field, such as kubectl-edit. The instance
must have a policy: give --drift to "instance create" or "instance update".
"instance heal --drift" corrects them.`,
		Example:           "  k8splugin instance drift fw-1",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, a, err := s.find(ctx, c, args[0])
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error {
				if err := printFields(w, []field{{"ID", i.ID}, {"Name", i.Name}, {"Drift", driftLine(i)}, {"Since", s.out.sinceOf(i)}}); err != nil {
					return err
				}
				return section(w, false, driftRows(i), driftColumns(s.out.clock))
			})
		}),
	}
}

func (pr *printer) sinceOf(i wire.Instance) string {
	if i.DriftSince == nil {
		return ""
	}
	return pr.clock.stamp(*i.DriftSince)
}

// driftRow is a field that differs, or an object that is missing or cannot be compared.
type driftRow struct {
	object string
	field  wire.DriftField
	note   string
}

func driftRows(i wire.Instance) (rows []driftRow) {
	for _, o := range i.Objects {
		if o.Drift == nil {
			continue
		}
		name := o.Kind + "/" + o.Name
		switch {
		case o.Drift.Missing:
			rows = append(rows, driftRow{object: name, note: "the object is missing"})
		case o.Drift.Message != "":
			rows = append(rows, driftRow{object: name, note: o.Drift.Message})
		}
		for _, f := range o.Drift.Fields {
			row := driftRow{object: name, field: f}
			if f.Taken {
				row.note = "only the owner differs"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func driftColumns(now clock) []column[driftRow] {
	return []column[driftRow]{
		{"OBJECT", false, func(r driftRow) string { return r.object }},
		{"FIELD", false, func(r driftRow) string { return r.field.Path }},
		{"APPLIED", false, func(r driftRow) string { return driftValue(r.field.Applied) }},
		{"FOUND", false, func(r driftRow) string { return driftValue(r.field.Found) }},
		{"CHANGED BY", false, func(r driftRow) string {
			if r.field.Subresource != "" {
				return r.field.Manager + " (" + r.field.Subresource + ")"
			}
			return r.field.Manager
		}},
		{"CHANGED", false, func(r driftRow) string {
			if r.field.Changed == nil {
				return ""
			}
			return now.stamp(*r.field.Changed)
		}},
		{"NOTE", false, func(r driftRow) string { return r.note }},
	}
}

// longestCell is the maximum length of a value in a table.
const longestCell = 40

func driftValue(v any) string {
	if v == nil {
		return ""
	}
	text, ok := v.(string)
	if !ok {
		text = string(jsonOf(v))
	}
	if len(text) > longestCell {
		text = strings.ToValidUTF8(text[:longestCell], "") + "…"
	}
	return text
}
