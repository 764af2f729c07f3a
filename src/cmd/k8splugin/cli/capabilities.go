package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// pluginsFlag is --cni: each use declares a CNI plugin.
type pluginsFlag struct {
	all       map[string]*bool
	removable bool
}

func (f *pluginsFlag) String() string { return "" }
func (f *pluginsFlag) Type() string   { return "plugin[=false]" }

// Set parses "macvlan", "dhcp=false" and, if plugins can be removed, "dhcp-".
func (f *pluginsFlag) Set(text string) error {
	if f.all == nil {
		f.all = map[string]*bool{}
	}
	if name, gone := strings.CutSuffix(text, "-"); gone && f.removable && name != "" {
		f.all[name] = nil
		return nil
	}
	name, value, given := strings.Cut(text, "=")
	there := true
	if given {
		var err error
		if there, err = strconv.ParseBool(value); err != nil {
			return errors.New("must be a plugin, or plugin=false")
		}
	}
	f.all[name] = &there
	return nil
}

// declared returns the plugins that are declared.
func (f *pluginsFlag) declared() map[string]bool {
	out := map[string]bool{}
	for name, there := range f.all {
		if there != nil {
			out[name] = *there
		}
	}
	return out
}

// pluginsOf returns plugins as --cni has them.
func pluginsOf(plugins map[string]bool) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		if !plugins[name] {
			name += "=false"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

func regionCapabilities(s *session) *cobra.Command {
	var refresh bool
	cmd := &cobra.Command{
		Use:   "capabilities REGION",
		Short: "Show what a region offers",
		Long: `Show the API groups, networks, nodes, free resources and storage classes of a cloud
region. The server reads them at most once in 30 s, unless --refresh is given. It lists
the rules that the region's account lacks.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(regions(), false),
	}
	cmd.Flags().BoolVar(&refresh, "refresh", false, "read the region now")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		params := &api.GetCloudRegionCapabilitiesParams{}
		if refresh {
			params.Refresh = &refresh
		}
		a, err := c.call(ctx, ask(api.NewGetCloudRegionCapabilitiesRequest(root, args[0], params)))
		if err != nil {
			return err
		}
		return s.out.print(a, func(w io.Writer) error { return s.out.describeCapabilities(w, a) })
	})
	return cmd
}

// describeCapabilities prints the capabilities of a region. Wide output has the kinds of
// the API groups, too.
func (pr *printer) describeCapabilities(w io.Writer, a answer) error {
	var c wire.RegionCapabilities
	if err := a.decode(&c); err != nil {
		return err
	}
	for _, m := range c.Missing {
		pr.warn("the region's account may not " + m.Verb + " " + strings.TrimSuffix(m.Resource+"."+m.Group, ".") + "; it needs the rule " + m.Rule)
	}
	n := c.Nodes
	nodes := []string{fmt.Sprintf("%d usable of %d", n.Usable, n.Total)}
	for _, part := range []struct {
		count int
		what  string
	}{{n.NotReady, "not ready"}, {n.Cordoned, "cordoned"}, {n.Tainted, "tainted"}} {
		if part.count > 0 {
			nodes = append(nodes, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	var networks, software []string
	for _, f := range c.Networks {
		networks = append(networks, f.Name)
	}
	for _, g := range c.Groups {
		if g.Software != "" {
			software = append(software, g.Software)
		}
	}
	if err := printFields(w, []field{
		{"Region", c.Region}, {"Read", pr.clock.stamp(c.Read)}, {"Kubernetes", c.Version}, {"Software", strings.Join(software, ", ")},
		{"Networks", strings.Join(networks, ", ")}, {"CNI plugins", pluginsOf(c.Plugins)}, {"Nodes", strings.Join(nodes, ", ")}, {"Architectures", counted(n.Architectures)},
		{"OS images", counted(n.Images)}, {"Kernels", counted(n.Kernels)}, {"Kubelets", counted(n.Kubelets)}, {"Runtimes", counted(n.ContainerRuntimes)},
		{"Incomplete", strings.Join(c.Omitted, ", ")},
	}); err != nil {
		return err
	}
	return pr.capabilityTables(w, c)
}

// counted returns values with the numbers of nodes that have them.
func counted(counts map[string]int) string {
	var out []string
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		if value != "" {
			out = append(out, fmt.Sprintf("%s (%d)", value, counts[value]))
		}
	}
	return strings.Join(out, ", ")
}

// freeOf returns a number of free devices, or nothing if it is not known.
func freeOf(free *int) string {
	if free == nil {
		return ""
	}
	return strconv.Itoa(*free)
}

// numaOf returns the free devices of each NUMA node, and all of them: "0: 3/4, 1: 4/4".
func numaOf(all []wire.NUMADevices) string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = fmt.Sprintf("%d: %s/%d", n.Node, cmp.Or(freeOf(n.Free), "?"), n.Total)
	}
	return strings.Join(out, ", ")
}

// capabilityTables prints the lists of capabilities that are not empty.
func (pr *printer) capabilityTables(w io.Writer, c wire.RegionCapabilities) error {
	wide := pr.format.name == formatWide
	groups := c.Groups
	if !wide {
		groups = nil
	}
	return errors.Join(
		section(w, wide, c.Resources, []column[wire.NodeResource]{
			{"RESOURCE", false, func(r wire.NodeResource) string { return r.Name }},
			{"NODES", false, func(r wire.NodeResource) string { return strconv.Itoa(r.Nodes) }},
			{"ALLOCATABLE", false, func(r wire.NodeResource) string { return r.Allocatable }},
			{"FREE", false, func(r wire.NodeResource) string { return r.Free }},
			{"LARGEST", false, func(r wire.NodeResource) string { return r.Largest }},
			{"PENDING", true, func(r wire.NodeResource) string { return r.Pending }},
		}),
		section(w, wide, c.Devices, []column[nf.DeviceCount]{
			{"DEVICES OF", false, func(d nf.DeviceCount) string { return d.Driver }},
			{"TOTAL", false, func(d nf.DeviceCount) string { return strconv.Itoa(d.Total) }},
			{"FREE", false, func(d nf.DeviceCount) string { return strconv.Itoa(d.Free) }},
		}),
		section(w, wide, c.NodeDevices, []column[wire.NodeDevices]{
			{"NODE", false, func(d wire.NodeDevices) string { return d.Node }},
			{"DEVICES", false, func(d wire.NodeDevices) string { return cmp.Or(d.Resource, d.Driver) }},
			{"TOTAL", false, func(d wire.NodeDevices) string { return strconv.Itoa(d.Total) }},
			{"FREE", false, func(d wire.NodeDevices) string { return freeOf(d.Free) }},
			{"FREE BY NUMA", false, func(d wire.NodeDevices) string { return numaOf(d.NUMA) }},
		}),
		section(w, wide, c.Features, []column[nf.NodeFeature]{
			{"FEATURE", false, func(f nf.NodeFeature) string { return f.Name }},
			{"VALUE", false, func(f nf.NodeFeature) string { return f.Value }},
			{"NODES", false, func(f nf.NodeFeature) string { return strconv.Itoa(f.Nodes) }},
		}),
		section(w, wide, c.StorageClasses, []column[nf.StorageClass]{
			{"STORAGE CLASS", false, func(s nf.StorageClass) string { return s.Name }},
			{"PROVISIONER", false, func(s nf.StorageClass) string { return s.Provisioner }},
			{"DEFAULT", false, func(s nf.StorageClass) string { return strconv.FormatBool(s.Default) }},
			{"EXPANSION", false, func(s nf.StorageClass) string { return strconv.FormatBool(s.Expansion) }},
			{"BINDING", false, func(s nf.StorageClass) string { return s.BindingMode }},
			{"RECLAIM", true, func(s nf.StorageClass) string { return s.ReclaimPolicy }},
		}),
		section(w, wide, groups, []column[nf.ServedGroup]{
			{"GROUP", false, func(g nf.ServedGroup) string { return g.Group }},
			{"VERSIONS", false, func(g nf.ServedGroup) string { return strings.Join(g.Versions, ",") }},
			{"KINDS", false, func(g nf.ServedGroup) string { return strings.Join(g.Kinds, ",") }},
		}),
	)
}
