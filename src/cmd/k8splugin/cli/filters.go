package cli

import (
	"net/url"

	"github.com/spf13/cobra"
)

// filters holds the flags of a list command that become query parameters.
type filters struct {
	flags []filter
	label *[]string
}

type filter struct {
	parameter string
	value     *string
}

// add defines a flag for a query parameter.
func (f *filters) add(cmd *cobra.Command, flag, parameter, usage string) {
	f.flags = append(f.flags, filter{parameter, cmd.Flags().String(flag, "", usage)})
}

// project defines --project.
func (f *filters) project(cmd *cobra.Command) {
	f.add(cmd, "project", "project", "filter by project")
}

// labels defines --label.
func (f *filters) labels(cmd *cobra.Command) {
	f.label = cmd.Flags().StringArray("label", nil, "filter by label: key=value; can be repeated")
}

// pages defines the paging flags for a collection that is read completely by
// default.
func (f *filters) pages(cmd *cobra.Command) { f.page(cmd, "", "maximum number of items (default all)") }

// page defines the paging flags for a collection of which a part is read by
// default.
func (f *filters) page(cmd *cobra.Command, limit, usage string) {
	f.flags = append(f.flags, filter{"limit", cmd.Flags().String("limit", limit, usage)})
	f.add(cmd, "marker", "marker", "start of the next page, as printed by a list with --limit")
}

// values returns the query for the given flags.
func (f *filters) values() url.Values {
	out := url.Values{}
	for _, one := range f.flags {
		if *one.value != "" {
			out.Set(one.parameter, *one.value)
		}
	}
	if f.label != nil && len(*f.label) > 0 {
		out["label"] = *f.label
	}
	return out
}
