package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/simulator/so"
)

// flowFlags are the flags of one flow.
type flowFlags struct {
	config  so.Config
	vnf     so.VNF
	request so.Request
	links   string
	listen  string
	upgrade map[string]string
}

const soAbout = `Run one flow of SO against a service and an A&AI. SO's own objects in A&AI are
created before, and deleted at the end, or if the instance cannot be created. The
region and the tenant must exist.

  heat     create, poll, update A&AI and delete a stack through infra_workload
  macro    the same through /v1/instance, with an upgrade, as SO's CNF adapter
  native   the same through /v1/vnf_instances
  network  create networks, share them, and delete them

Passwords and tokens are read from the environment: SERVICE_TOKEN, or SERVICE_USER and
SERVICE_PASSWORD; AAI_USER and AAI_PASSWORD.`

func soCommand() *cobra.Command {
	f := &flowFlags{}
	cmd := &cobra.Command{Use: "so", Short: "Run one flow of SO", Long: soAbout}
	for name, one := range map[string]struct {
		about string
		run   func(context.Context, *so.Driver) error
		needs []string // flags, besides those that all flows need
	}{
		"heat":    {"Create and delete a stack through infra_workload", func(ctx context.Context, d *so.Driver) error { return d.Heat(ctx, f.vnf) }, nil},
		"macro":   {"Create, upgrade and delete an instance as SO's CNF adapter", func(ctx context.Context, d *so.Driver) error { return d.Macro(ctx, f.vnf, f.upgrade, f.listen) }, nil},
		"native":  {"Create and delete a VNF instance of the native API", func(ctx context.Context, d *so.Driver) error { return d.Native(ctx, f.vnf, f.request) }, []string{"package"}},
		"network": {"Create, share and delete networks", f.networks, []string{"package", "links"}},
	} {
		flow := &cobra.Command{Use: name, Short: one.about, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			f.config.Report = func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			d, err := so.New(f.connection(os.Getenv))
			if err != nil {
				return err //nolint:wrapcheck // the error is complete
			}
			return one.run(cmd.Context(), d)
		}}
		f.define(flow)
		for _, needed := range one.needs {
			_ = flow.MarkFlagRequired(needed) // it is defined above
		}
		cmd.AddCommand(flow)
	}
	return cmd
}

// define defines the flags of a flow.
func (f *flowFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	for name, one := range map[string]struct {
		value           *string
		fallback, about string
	}{
		"service":       {&f.config.Service.URL, "", "URL of the service (required)"},
		"aai":           {&f.config.AAI.URL, "", "URL of A&AI, without /aai (required)"},
		"owner":         {&f.vnf.Owner, "k8s", "owner of the cloud region"},
		"region":        {&f.vnf.Region, "", "id of the cloud region (required)"},
		"tenant":        {&f.vnf.Tenant, "", "id of the tenant (required)"},
		"service-id":    {&f.vnf.Service, "trial-service", "id of the service-instance that SO creates in A&AI"},
		"vnf":           {&f.vnf.ID, "trial-vnf", "id of the generic-vnf that SO creates"},
		"vf-module":     {&f.vnf.Module, "trial-module", "id of the vf-module that SO creates"},
		"vnf-type":      {&f.vnf.Type, "trial", "type of the generic-vnf"},
		"definition":    {&f.vnf.Invariant, "trial", "name of the definition: the invariant UUID of the module's model"},
		"version":       {&f.vnf.Customization, "trial", "version of the definition: the customization UUID of the module's model"},
		"model-version": {&f.vnf.Version, "trial", "UUID of the module's model"},
		"profile":       {&f.vnf.Profile, "default", "profile of the definition"},
		"release":       {&f.vnf.Release, "trial", "name of the stack or the release"},
		"package":       {&f.request.Package, "", "native, network: csar_id of the package"},
		"name":          {&f.request.Name, "trial", "native, network: name of the instance"},
		"namespace":     {&f.request.Namespace, "", "native, network: namespace of the instance"},
		"listen":        {&f.listen, "127.0.0.1:0", "macro: address that receives notifications; the service must reach it, and allow it"},
		"links":         {&f.links, "", "network: file with the networks as JSON: Network, Second and Refused, each with Region, Tenant, Name, Driver, Spec, Subnets and VLANs"},
	} {
		flags.StringVar(one.value, name, one.fallback, one.about)
	}
	flags.DurationVar(&f.config.Interval, "interval", 15*time.Second, "interval between polls")
	flags.DurationVar(&f.config.Limit, "limit", 10*time.Minute, "time limit of a poll")
	flags.StringToStringVar(&f.vnf.Values, "set", nil, "heat, macro: values of the chart")
	flags.StringToStringVar(&f.upgrade, "upgrade", map[string]string{"k8splugin-trial": "upgraded"}, "macro: values of the upgrade")
	for _, name := range []string{"service", "aai", "region", "tenant"} {
		_ = cmd.MarkFlagRequired(name) // they are defined above
	}
}

// connection returns the configuration, with the credentials of the environment.
func (f *flowFlags) connection(getenv func(string) string) so.Config {
	cfg := f.config
	cfg.Service.Token, cfg.Service.User, cfg.Service.Password = getenv("SERVICE_TOKEN"), getenv("SERVICE_USER"), getenv("SERVICE_PASSWORD")
	cfg.AAI.User, cfg.AAI.Password = getenv("AAI_USER"), getenv("AAI_PASSWORD")
	return cfg
}

// networks runs the flow of networks with those of a file.
func (f *flowFlags) networks(ctx context.Context, d *so.Driver) error {
	links, err := readLinks(f.links)
	if err != nil {
		return fmt.Errorf("cannot read --links: %w", err)
	}
	links.VNF = f.request
	return d.Networks(ctx, f.vnf, links) //nolint:wrapcheck // the error is complete
}

// readLinks reads the networks of a file.
func readLinks(name string) (links so.Links, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return links, err //nolint:wrapcheck // it names the file
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&links); err != nil {
		return links, err //nolint:wrapcheck // the caller names the flag
	}
	if links.Network.Name == "" || links.Network.Driver == "" {
		return links, errors.New("the Network has no Name or no Driver")
	}
	return links, nil
}
