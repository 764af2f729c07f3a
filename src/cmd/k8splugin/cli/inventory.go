package cli

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// inventoryFlags say what A&AI is to have of an instance.
type inventoryFlags struct{ writer, vnf, module, tenant string }

func (f *inventoryFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.writer, "aai-writer", "", "what writes the objects to A&AI: service, adapter or none (default service)")
	flags.StringVar(&f.vnf, "generic-vnf", "", "id of the generic-vnf of A&AI that the instance belongs to")
	flags.StringVar(&f.module, "vf-module", "", "id of the vf-module of the generic-vnf")
	flags.StringVar(&f.tenant, "aai-tenant", "", "id of the tenant of A&AI that contains the objects (default that of the region)")
}

// document returns the given flags; nil: none.
func (f *inventoryFlags) document() *wire.AAI {
	return wire.AAIOf(nf.AAI{Writer: nf.AAIWriter(f.writer), VNF: f.vnf, Module: f.module, Tenant: f.tenant})
}

// inventoryLine describes what A&AI is to have of an instance.
func inventoryLine(a *wire.AAI) string {
	if a == nil {
		return ""
	}
	parts := []string{"written by " + string(cmp.Or(a.Writer, nf.AAIService))}
	for _, part := range []struct{ name, value string }{{"generic-vnf", a.VNF}, {"vf-module", a.Module}, {"tenant", a.Tenant}} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, ", ")
}

func inventoryCommand(s *session) *cobra.Command {
	return s.noun("inventory", "Show and compare what A&AI has", inventoryList(s), inventoryShow(s), inventorySync(s))
}

func listings() catalogue {
	return catalogue{list: ask(api.NewListListingsRequest(root, nil)), key: "listings", fields: []string{"vnf_id", "network_id", "cloud_region_id"}}
}

func inventoryList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List what A&AI has", listings(), listingColumns)
	cmd.Long = `List the instances, networks and cloud regions of which ONAP's inventory A&AI has, or is
to have, objects, and whether A&AI is equal.`
	q.add(cmd, "instance", "vnf_id", "filter by id of the instance")
	q.add(cmd, "network", "network_id", "filter by id of the network")
	q.add(cmd, "region", "cloud_region_id", "filter by id of the cloud region")
	q.add(cmd, "state", "state", "filter by state: clean, dirty, waiting, parked or orphaned")
	completeFlag(cmd, "state", fixed(string(nf.ListingClean), string(nf.ListingDirty), string(nf.ListingWaiting), string(nf.ListingParked), string(nf.ListingOrphaned)))
	q.pages(cmd)
	return cmd
}

func listingColumns(now clock) []column[wire.Listing] {
	return []column[wire.Listing]{
		{"SUBJECT", false, subjectOfListing},
		{"STATE", false, func(l wire.Listing) string { return string(l.State) }},
		{"OBJECTS", false, func(l wire.Listing) string { return strconv.Itoa(len(l.Objects)) }},
		{"SINCE", false, func(l wire.Listing) string { return now.age(l.Since) }},
		{"MESSAGE", false, messageOfListing},
		{"NEXT ATTEMPT", true, func(l wire.Listing) string { return now.until(l.Retry) }},
	}
}

func subjectOfListing(l wire.Listing) string {
	switch {
	case l.Network != "":
		return "network " + l.Network
	case l.Region != "":
		return "region " + l.Region
	}
	return "instance " + l.Instance
}

// messageOfListing says why A&AI is not equal.
func messageOfListing(l wire.Listing) string {
	switch {
	case l.Reason != "":
		return l.Reason
	case len(l.Missing) > 0:
		return "waits for " + strings.Join(l.Missing, ", ")
	case len(l.Rejected) > 0:
		return l.Rejected[0].Path + ": " + l.Rejected[0].Reason
	}
	return ""
}

func inventoryShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show INSTANCE",
		Aliases:           []string{"get", "describe"},
		Short:             "Show what A&AI has of an instance",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.call(ctx, ask(api.NewGetListingRequest(root, args[0])))
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error { return s.out.describeListing(w, a) })
		}),
	}
}

func (pr *printer) describeListing(w io.Writer, a answer) error {
	var l wire.Listing
	if err := a.decode(&l); err != nil {
		return err
	}
	list := []field{
		{"Instance", l.Instance}, {"Network", l.Network}, {"State", string(l.State)}, {"Reason", l.Reason}, {"Was clean", pr.clock.stamp(l.Since)},
		{"Next attempt", pr.clock.until(l.Retry)},
	}
	for _, path := range l.Missing {
		list = append(list, field{"Waits for", path})
	}
	for _, r := range l.Rejected {
		list = append(list, field{"Rejected", r.Path + ": " + r.Reason})
	}
	for _, path := range l.Objects {
		list = append(list, field{"Object", path})
	}
	return printFields(w, list)
}

func inventorySync(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "sync INSTANCE",
		Short:             "Compare an instance with A&AI",
		Long:              "Compare an instance with A&AI, and write what differs. The service does this on its own; the\ncommand is useful after another client has changed A&AI, for example if it had rejected an object.",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.call(ctx, ask(api.NewSyncListingRequest(root, args[0])))
			if err != nil {
				return err
			}
			return printOne(s.out, a, listingColumns)
		}),
	}
}
