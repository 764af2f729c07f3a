package cli

import (
	"net/url"

	"github.com/spf13/cobra"
)

// filters are the flags of a list that become parameters of the query.
type filters struct {
	flags []filter
	label *[]string
}

type filter struct {
	parameter string
	value     *string
}

// add defines a flag that becomes the parameter.
func (f *filters) add(cmd *cobra.Command, flag, parameter, usage string) {
	f.flags = append(f.flags, filter{parameter, cmd.Flags().String(flag, "", usage)})
}

// project defines --project.
func (f *filters) project(cmd *cobra.Command) {
	f.add(cmd, "project", "project", "in this project only")
}

// labels defines --label.
func (f *filters) labels(cmd *cobra.Command) {
	f.label = cmd.Flags().StringArray("label", nil, "with this label only: key=value; may be given several times")
}

// pages defines the flags that read a collection page by page.
func (f *filters) pages(cmd *cobra.Command) { f.page(cmd, "", "at most this many; without it, all") }

// page does the same for a collection of which a part is read unless more is
// asked for.
func (f *filters) page(cmd *cobra.Command, limit, usage string) {
	f.flags = append(f.flags, filter{"limit", cmd.Flags().String("limit", limit, usage)})
	f.add(cmd, "marker", "marker", "go on after a page that --limit ended")
}

// values is the query that the flags make.
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
