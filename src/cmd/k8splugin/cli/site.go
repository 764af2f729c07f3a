package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func siteCommand(s *session) *cobra.Command {
	return s.noun("site", "Build and manage sites, and their hosts",
		siteCreate(s), siteList(s), siteShow(s), siteUpdate(s), siteAddWorker(s), siteRemoveWorker(s), siteScale(s), siteRemove(s), siteWatch(s), siteCancel(s))
}

func sites() catalogue {
	return catalogue{list: ask(api.NewListSitesRequest(root, nil)), key: "sites", fields: []string{"site_id"}}
}

const siteWaitHelp = `

The command waits until the operation ends, and shows its progress. An interrupt
ends only the waiting; the operation continues. --no-wait returns as soon as the
operation is accepted.`

// siteRun holds the flags of a command that runs a site operation.
type siteRun struct {
	noWait  bool
	timeout time.Duration
}

func (f *siteRun) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "return as soon as the operation is accepted")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "maximum duration of the whole operation, such as 2h")
}

func siteCreate(s *session) *cobra.Command {
	var file string
	var run siteRun
	cmd := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Build a site and register it as a cloud region",
		Long: `Build a site and register it as a cloud region.

The file is YAML or JSON with the fields of POST /v1/sites. In addition,
credential.private_key_file, credential.password_file,
credential.become_password_file, script.file and script.remove_file may name files
that contain the values. Their paths are relative to the folder of the file.` + siteWaitHelp,
		Example: "  k8splugin site create -f site.yaml",
		Args:    noArgs,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the description of the site; - reads standard input")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if file == "" {
			return misused(cmd, errors.New("--file is required"))
		}
		body, err := s.in.siteFile(file)
		if err != nil {
			return err
		}
		return s.runSite(ctx, c, ask(api.NewCreateSiteRequestWithBody(root, nil, jsonMedia, nil)), body, run)
	})
	return cmd
}

func siteUpdate(s *session) *cobra.Command {
	var file string
	var run siteRun
	cmd := &cobra.Command{
		Use:   "update NAME [-f FILE]",
		Short: "Change a site, or run its build again",
		Long: `Change a site, or run its build again without a change.

The file is a merge patch with the fields of PATCH /v1/sites/NAME. As with create,
it may name files that contain values. Without a file the description of the site
does not change, and the playbooks or the script run again.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the changes; - reads standard input")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if file != "" {
			var err error
			if body, err = s.in.siteFile(file); err != nil {
				return err
			}
		}
		return s.runSite(ctx, c, ask(api.NewUpdateSiteRequestWithBody(root, args[0], nil, mergePatch, nil)), body, run)
	})
	return cmd
}

func siteAddWorker(s *session) *cobra.Command {
	var host wire.SiteHost
	var keyFile string
	var run siteRun
	cmd := &cobra.Command{
		Use:               "add-worker NAME --host HOST --address ADDRESS",
		Short:             "Add a worker to a site",
		Long:              "Add a worker to a site. Without --user, the user of the site's first host is used." + siteWaitHelp,
		Example:           "  k8splugin site add-worker edge-1 --host n4 --address 10.0.0.14 --host-key-file n4.pub",
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	flags := cmd.Flags()
	flags.StringVar(&host.Name, "host", "", "name of the host")
	flags.StringVar(&host.Address, "address", "", "address of the host")
	flags.IntVar(&host.Port, "port", 0, "port of the host's SSH server (default 22)")
	flags.StringVar(&host.User, "user", "", "user on the host with permission to become root")
	flags.StringVar(&host.Key, "host-key", "", "public key of the host, as ssh-keyscan prints it after the name: ssh-ed25519 AAAA…")
	flags.StringVar(&keyFile, "host-key-file", "", "file with the public key of the host")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if host.Name == "" || host.Address == "" {
			return misused(cmd, errors.New("--host and --address are required"))
		}
		add, err := s.worker(ctx, c, args[0], host, keyFile)
		if err != nil {
			return err
		}
		return s.runSite(ctx, c, ask(api.NewUpdateSiteRequestWithBody(root, args[0], nil, mergePatch, nil)), map[string]any{"add_hosts": []wire.SiteHost{add}}, run)
	})
	return cmd
}

// worker returns the request for a new worker.
func (s *session) worker(ctx context.Context, c *client, id string, h wire.SiteHost, keyFile string) (wire.SiteHost, error) {
	if keyFile != "" {
		text, err := s.in.readFile(keyFile)
		if err != nil {
			return h, err
		}
		h.Key = strings.TrimSpace(string(text))
	}
	if h.User == "" {
		a, err := c.call(ctx, ask(api.NewGetSiteRequest(root, id)))
		if err != nil {
			return h, err
		}
		var in wire.Site
		if err := a.decode(&in); err != nil {
			return h, err
		}
		if len(in.Hosts) > 0 {
			h.User = in.Hosts[0].User
		}
	}
	// Omit the comment in "ssh-ed25519 AAAA… comment".
	words := strings.Fields(h.Key)
	if h.Key = ""; len(words) >= 2 {
		h.Key = words[0] + " " + words[1]
	}
	h.Role = nf.Worker
	return h, nil
}

func siteScale(s *session) *cobra.Command {
	var workers int
	var run siteRun
	cmd := &cobra.Command{
		Use:   "scale NAME --workers N",
		Short: "Change the number of a site's workers",
		Long: `Change the number of workers of a site whose hosts are machines that the service
creates. Workers are added with new names; those that were added last are removed.` + siteWaitHelp,
		Example:           "  k8splugin site scale edge-1 --workers 3",
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	cmd.Flags().IntVar(&workers, "workers", 0, "number of workers")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if !cmd.Flags().Changed("workers") {
			return misused(cmd, errors.New("--workers is required"))
		}
		return s.runSite(ctx, c, ask(api.NewUpdateSiteRequestWithBody(root, args[0], nil, mergePatch, nil)), map[string]any{"machines": wire.MachineCounts{Workers: &workers}}, run)
	})
	return cmd
}

func siteRemoveWorker(s *session) *cobra.Command {
	var run siteRun
	cmd := &cobra.Command{
		Use:               "remove-worker NAME HOST...",
		Short:             "Remove workers from a site",
		Long:              "Remove workers from a site. A worker that is unreachable is removed without being reset." + siteWaitHelp,
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.MinimumNArgs(2), args) },
		ValidArgsFunction: s.ids(sites(), false),
	}
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return s.runSite(ctx, c, ask(api.NewUpdateSiteRequestWithBody(root, args[0], nil, mergePatch, nil)), map[string]any{"remove_hosts": args[1:]}, run)
	})
	return cmd
}

func siteRemove(s *session) *cobra.Command {
	var cascade, keepHosts bool
	var run siteRun
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"remove", "rm"},
		Short:   "Deregister a site's region and reset its hosts",
		Long: `Deregister a site's region and reset its hosts.

While VNF instances run on the region, the request fails with a conflict, unless
--cascade terminates them. An operation that runs on one of them ends first.
--keep-hosts does not reset the hosts; it is the only choice if they no longer
exist.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	cmd.Flags().BoolVar(&cascade, "cascade", false, "terminate the VNF instances on the region")
	cmd.Flags().BoolVar(&keepHosts, "keep-hosts", false, "do not reset the hosts")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		for name, value := range map[string]bool{"cascade": cascade, "keep_hosts": keepHosts} {
			if value {
				body[name] = true
			}
		}
		return s.runSite(ctx, c, ask(api.NewDeleteSiteRequest(root, args[0], nil)), body, run)
	})
	return cmd
}

// runSite sends a request that starts a site operation, and follows the
// operation.
func (s *session) runSite(ctx context.Context, c *client, r request, body map[string]any, run siteRun) error {
	r.respondAsync()
	if run.timeout != 0 {
		body["timeout"] = run.timeout.String()
	}
	a, err := c.submit(ctx, r, body)
	if err != nil {
		return err
	}
	name, op, ok := siteOperationOf(a.header.Get("Location"))
	if !ok {
		return &exitError{exitNoServer, errors.New("the server's response does not name the operation that was started")}
	}
	if !run.noWait {
		if _, err := s.watcher.follow(ctx, c, ask(api.NewFollowSiteOperationRequest(root, name, op, nil)), ended, s.out.progress()); err != nil {
			return err
		}
	}
	switch {
	case r.method == http.MethodDelete:
		return nil
	case !run.noWait:
		if a, err = c.call(ctx, ask(api.NewGetSiteRequest(root, name))); err != nil {
			return err
		}
	}
	return printOne(s.out, a, siteColumns)
}

// siteOperationOf parses the path of an operation.
func siteOperationOf(location string) (site, operation string, ok bool) {
	u, err := url.Parse(location)
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/v1/sites/"), "/")
	if len(parts) != 3 || parts[1] != "operations" {
		return "", "", false
	}
	return parts[0], parts[2], true
}

func siteList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List sites", sites(), siteColumns)
	q.add(cmd, "state", "state", "filter by state: building, ready, changing, removing or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "state", fixed("building", "ready", "changing", "removing", "failed"))
	return cmd
}

func siteColumns(now clock) []column[wire.Site] {
	return []column[wire.Site]{
		{"NAME", false, func(in wire.Site) string { return in.ID }},
		{"STATE", false, func(in wire.Site) string { return string(in.State) }},
		{"REGION", false, func(in wire.Site) string { return in.Region }},
		{"HOSTS", false, func(in wire.Site) string { return strconv.Itoa(len(in.Hosts)) }},
		{"ROLES", false, func(in wire.Site) string { return strings.Join(in.Roles, ", ") }},
		{"AGE", false, func(in wire.Site) string { return now.age(in.Created) }},
		{"OPERATION", true, func(in wire.Site) string { return in.Operation }},
		{"PROJECT", true, func(in wire.Site) string { return in.Project }},
		{"DESCRIPTION", true, func(in wire.Site) string { return in.Description }},
	}
}

func siteShow(s *session) *cobra.Command {
	return s.showCommand("show NAME", "Show a site and its hosts", sites(), s.out.describeSite)
}

func (pr *printer) describeSite(w io.Writer, a answer) error {
	var in wire.Site
	if err := a.decode(&in); err != nil {
		return err
	}
	region := in.Region
	if !in.Registered {
		region += " (not registered)"
	}
	var parameters []string
	for name := range maps.Keys(in.Parameters) {
		parameters = append(parameters, name)
	}
	if err := printFields(w, []field{
		{"Name", in.ID}, {"Description", in.Description}, {"Project", in.Project}, {"State", string(in.State)}, {"Region", region},
		{"Driver", string(in.Driver)}, {"Roles", strings.Join(in.Roles, ", ")}, {"Parameters", sorted(parameters)}, {"Secrets", sorted(in.Secrets)},
		{"Operation", in.Operation}, {"Created", pr.clock.stamp(in.Created)}, {"Updated", pr.clock.stamp(in.Updated)},
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table(w, pr.format.name == formatWide, []column[wire.SiteHost]{
		{"HOST", false, func(h wire.SiteHost) string { return h.Name }},
		{"ADDRESS", false, func(h wire.SiteHost) string {
			if h.Address == "" {
				return "" // of a machine that does not run yet
			}
			return h.Address + ":" + strconv.Itoa(h.Port)
		}},
		{"USER", false, func(h wire.SiteHost) string { return h.User }},
		{"ROLE", false, func(h wire.SiteHost) string { return string(h.Role) }},
		{"STATE", false, func(h wire.SiteHost) string { return string(h.State) }},
		{"KEY", true, func(h wire.SiteHost) string { return h.Key }},
	}, in.Hosts)
}
