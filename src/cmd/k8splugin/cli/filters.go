package cli

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// filters holds the flags of a list command: those that become query parameters, and
// the order of the items.
type filters struct {
	flags []filter
	label *[]string
	order order
	watch bool

	// prepare changes the query before it is sent. It may be nil.
	prepare func(ctx context.Context, c *client, query url.Values) error
}

// order is the order in which a list is printed. The default applies to tables and
// names of complete lists. It is the server's order unless natural or newest is set.
type order struct {
	sortBy  pathFlag
	natural pathFlag // not a flag
	newest  bool     // the server's order, reversed
	first   int      // maximum number of items in this order; 0: all
}

// defineOrder defines the flags of each list.
func (f *filters) defineOrder(cmd *cobra.Command, out *printer) {
	cmd.Flags().BoolVar(&out.noHeaders, "no-headers", false, "print no line of column heads")
	cmd.Flags().Var(&f.order.sortBy, "sort-by", "sort by a field of the JSON output, such as .created_at")
}

// defaults reports whether a complete list has the default order in an output.
func (o order) defaults(out format) bool { return out.people() || out.name == formatName }

// newestFirst has a list with --limit begin with the newest items, as the complete list
// does. A list with --marker, and the output for programs, keep the server's pages.
func (o *order) newestFirst(query url.Values, out format) {
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || query.Has("marker") || o.sortBy.path != nil || !o.defaults(out) {
		return
	}
	o.first = limit
	query.Del("limit")
}

// apply sorts the items for an output.
func (o order) apply(p *page, out format) error {
	complete := o.defaults(out) && p.next == ""
	switch {
	case o.sortBy.path != nil:
		return p.sortBy(o.sortBy.path)
	case complete && o.newest:
		slices.Reverse(p.items)
		if o.first > 0 {
			p.items = p.items[:min(o.first, len(p.items))]
		}
		p.changed = true
	case complete && o.natural.path != nil:
		return p.sortBy(o.natural.path)
	}
	return nil
}

type filter struct {
	parameter string
	value     *string
}

// add defines a flag for a query parameter.
func (f *filters) add(cmd *cobra.Command, flag, parameter, usage string) {
	f.flags = append(f.flags, filter{parameter, cmd.Flags().String(flag, "", usage)})
}

// namespace defines -n and -A, as kubectl has them. Lists have all namespaces by
// default.
func (f *filters) namespace(cmd *cobra.Command) {
	f.flags = append(f.flags, filter{"namespace", cmd.Flags().StringP("namespace", "n", "", "filter by namespace")})
	cmd.Flags().BoolP("all-namespaces", "A", false, "")
	_ = cmd.Flags().MarkHidden("all-namespaces") // fails only for an unknown flag
}

// project defines --project.
func (f *filters) project(cmd *cobra.Command) {
	f.add(cmd, "project", "project", "filter by project")
}

// labels defines --label.
func (f *filters) labels(cmd *cobra.Command) {
	f.label = cmd.Flags().StringArrayP("label", "l", nil, "label selector, such as site=east,tier!=core or 'site in (east, west)'; can be repeated")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "selector" { // kubectl's name
			name = "label"
		}
		return pflag.NormalizedName(name)
	})
}

// pages defines the paging flags for a collection that is read completely by
// default.
func (f *filters) pages(cmd *cobra.Command) { f.page(cmd, "", "maximum number of items (default all)") }

// page defines the paging flags for a collection of which a part is read by
// default.
func (f *filters) page(cmd *cobra.Command, limit, usage string) {
	count := countFlag(limit)
	cmd.Flags().Var(&count, "limit", usage)
	f.flags = append(f.flags, filter{"limit", (*string)(&count)})
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
