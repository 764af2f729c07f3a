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
)

// site is a site, as far as it is shown.
type site struct {
	ID          string         `json:"site_id"`
	Project     string         `json:"project"`
	Description string         `json:"description"`
	Region      string         `json:"cloud_region_id"`
	Driver      string         `json:"driver"`
	Hosts       []siteHost     `json:"hosts"`
	Roles       []string       `json:"roles"`
	Parameters  map[string]any `json:"parameters"`
	Secrets     []string       `json:"secrets"`
	State       string         `json:"state"`
	Registered  bool           `json:"registered"`
	Operation   string         `json:"operation_id"`
	Created     time.Time      `json:"created_at"`
	Updated     time.Time      `json:"updated_at"`
}

type siteHost struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	User    string `json:"user"`
	Key     string `json:"host_key"`
	Role    string `json:"role"`
	State   string `json:"state"`
}

func siteCommand(s *session) *cobra.Command {
	return s.noun("site", "Make hosts a cloud region, and look after them",
		siteCreate(s), siteList(s), siteShow(s), siteUpdate(s), siteAddWorker(s), siteRemoveWorker(s), siteRemove(s), siteWatch(s), siteCancel(s))
}

func sites() catalogue { return catalogue{at("sites"), "sites", []string{"site_id"}} }

const siteWaitHelp = `

The command follows the run to its end and shows what happens; an interrupt ends
the watching only. --no-wait returns as soon as the request is accepted.`

// siteRun are the flags of a command that has something run.
type siteRun struct {
	noWait  bool
	timeout time.Duration
}

func (f *siteRun) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "return when the request is accepted")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "how long the whole operation may take, such as 2h")
}

func siteCreate(s *session) *cobra.Command {
	var file string
	var run siteRun
	cmd := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Build a site and register it as a cloud region",
		Long: `Build a site and register it as a cloud region.

The file is YAML or JSON with the fields of POST /v1/sites. In it
credential.private_key_file, credential.password_file, script.file and
script.remove_file name files to take the text from, relative to its folder.` + siteWaitHelp,
		Args: noArgs,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file that describes the site; - reads standard input")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if file == "" {
			return misused(cmd, errors.New("--file is required"))
		}
		body, err := s.siteFile(file)
		if err != nil {
			return err
		}
		return s.runSite(ctx, c, request{method: http.MethodPost, path: sites().path}, body, run)
	})
	return cmd
}

func siteUpdate(s *session) *cobra.Command {
	var file string
	var run siteRun
	cmd := &cobra.Command{
		Use:   "update NAME [-f FILE]",
		Short: "Change a site, or run everything again as it is",
		Long: `Change a site, or run everything again as it is.

The file is a merge patch with the fields of PATCH /v1/sites/NAME, and may name
files as that of create. Without a file nothing is changed, and the playbooks or
the script run once more.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with what to change; - reads standard input")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if file != "" {
			var err error
			if body, err = s.siteFile(file); err != nil {
				return err
			}
		}
		return s.runSite(ctx, c, request{method: http.MethodPatch, path: at("sites", args[0])}, body, run)
	})
	return cmd
}

func siteAddWorker(s *session) *cobra.Command {
	var host siteHost
	var keyFile string
	var run siteRun
	cmd := &cobra.Command{
		Use:               "add-worker NAME --host HOST --address ADDRESS",
		Short:             "Add a worker to a site",
		Long:              "Add a worker to a site. The user is the first host's unless --user names another." + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	flags := cmd.Flags()
	flags.StringVar(&host.Name, "host", "", "name of the host")
	flags.StringVar(&host.Address, "address", "", "its address")
	flags.IntVar(&host.Port, "port", 0, "port of its SSH server (default 22)")
	flags.StringVar(&host.User, "user", "", "who may become root there")
	flags.StringVar(&host.Key, "host-key", "", "its public key, as ssh-keyscan prints it behind the name: ssh-ed25519 AAAA…")
	flags.StringVar(&keyFile, "host-key-file", "", "file with that")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if host.Name == "" || host.Address == "" {
			return misused(cmd, errors.New("--host and --address are required"))
		}
		add, err := s.worker(ctx, c, args[0], host, keyFile)
		if err != nil {
			return err
		}
		return s.runSite(ctx, c, request{method: http.MethodPatch, path: at("sites", args[0])}, map[string]any{"add_hosts": []any{add}}, run)
	})
	return cmd
}

// worker is what is sent of a new worker.
func (s *session) worker(ctx context.Context, c *client, id string, h siteHost, keyFile string) (map[string]any, error) {
	add := map[string]any{"name": h.Name, "address": h.Address, "role": "worker"}
	if keyFile != "" {
		text, err := s.readFile(keyFile)
		if err != nil {
			return nil, err
		}
		h.Key = strings.TrimSpace(string(text))
	}
	if h.User == "" {
		a, err := c.get(ctx, at("sites", id), nil)
		if err != nil {
			return nil, err
		}
		var in site
		if err := a.decode(&in); err != nil {
			return nil, err
		}
		if len(in.Hosts) > 0 {
			h.User = in.Hosts[0].User
		}
	}
	add["user"] = h.User
	// Of "ssh-ed25519 AAAA… comment" the comment is nobody's.
	if words := strings.Fields(h.Key); len(words) >= 2 {
		add["host_key"] = words[0] + " " + words[1]
	}
	if h.Port != 0 {
		add["port"] = h.Port
	}
	return add, nil
}

func siteRemoveWorker(s *session) *cobra.Command {
	var run siteRun
	cmd := &cobra.Command{
		Use:               "remove-worker NAME HOST...",
		Short:             "Take workers out of a site",
		Long:              "Take workers out of a site. One that cannot be reached any more leaves without being reset." + siteWaitHelp,
		Args:              func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.MinimumNArgs(2), args) },
		ValidArgsFunction: s.ids(sites(), false),
	}
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return s.runSite(ctx, c, request{method: http.MethodPatch, path: at("sites", args[0])}, map[string]any{"remove_hosts": args[1:]}, run)
	})
	return cmd
}

func siteRemove(s *session) *cobra.Command {
	var cascade, keepHosts bool
	var run siteRun
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"delete"},
		Short:   "Deregister a site's region and reset its hosts",
		Long: `Deregister a site's region and reset its hosts.

While VNF instances run on the region that is refused, unless --cascade
terminates them; what is running on one of them is let come to its end first.
--keep-hosts leaves the hosts as they are, which is all that can be done when they
are gone.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
	}
	cmd.Flags().BoolVar(&cascade, "cascade", false, "terminate the VNF instances that run on the region")
	cmd.Flags().BoolVar(&keepHosts, "keep-hosts", false, "leave the hosts as they are")
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		for name, value := range map[string]bool{"cascade": cascade, "keep_hosts": keepHosts} {
			if value {
				body[name] = true
			}
		}
		return s.runSite(ctx, c, request{method: http.MethodDelete, path: at("sites", args[0])}, body, run)
	})
	return cmd
}

// runSite sends a request that has something run, and follows that.
func (s *session) runSite(ctx context.Context, c *client, r request, body map[string]any, run siteRun) error {
	r.header = map[string]string{"Prefer": "respond-async"}
	if run.timeout != 0 {
		body["timeout"] = run.timeout.String()
	}
	a, err := c.submit(ctx, r, body)
	if err != nil {
		return ofSite(err)
	}
	name, op, ok := siteOperationOf(a.header.Get("Location"))
	if !ok {
		return &exitError{exitNoServer, errors.New("the server does not say which operation it has begun")}
	}
	if !run.noWait {
		if err := s.followSite(ctx, c, name, op, s.progress()); err != nil {
			return err
		}
	}
	switch {
	case r.method == http.MethodDelete:
		return nil
	case !run.noWait:
		if a, err = c.get(ctx, at("sites", name), nil); err != nil {
			return err
		}
	}
	return printOne(s, a, siteColumns(s))
}

// siteOperationOf reads the path of an operation.
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

// ofSite makes an error of an operation name the command that shows it.
func ofSite(err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok || p.Operation == "" {
		return err
	}
	shown := *p
	shown.Operation = ""
	if shown.Detail = p.Error(); !strings.Contains(shown.Detail, p.Operation) {
		shown.Detail += " (operation " + p.Operation + ")"
	}
	return &shown
}

func siteList(s *session) *cobra.Command {
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sites",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, sites().path, sites().key, q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, siteColumns(s))
		}),
	}
	q.add(cmd, "state", "state", "in this state only: building, ready, changing, removing or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "state", fixed("building", "ready", "changing", "removing", "failed"))
	return cmd
}

func siteColumns(s *session) []column[site] {
	return []column[site]{
		{"NAME", false, func(in site) string { return in.ID }},
		{"STATE", false, func(in site) string { return in.State }},
		{"REGION", false, func(in site) string { return in.Region }},
		{"HOSTS", false, func(in site) string { return strconv.Itoa(len(in.Hosts)) }},
		{"ROLES", false, func(in site) string { return strings.Join(in.Roles, ", ") }},
		{"AGE", false, func(in site) string { return s.age(in.Created) }},
		{"OPERATION", true, func(in site) string { return in.Operation }},
		{"PROJECT", true, func(in site) string { return in.Project }},
		{"DESCRIPTION", true, func(in site) string { return in.Description }},
	}
}

func siteShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a site and its hosts",
		Args:              oneName,
		ValidArgsFunction: s.ids(sites(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.get(ctx, at("sites", args[0]), nil)
			if err != nil {
				return err
			}
			return s.print(a, func(w io.Writer) error { return s.describeSite(w, a) })
		}),
	}
}

func (s *session) describeSite(w io.Writer, a answer) error {
	var in site
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
		{"Name", in.ID}, {"Description", in.Description}, {"Project", in.Project}, {"State", in.State}, {"Region", region},
		{"Driver", in.Driver}, {"Roles", strings.Join(in.Roles, ", ")}, {"Parameters", sorted(parameters)}, {"Secrets", sorted(in.Secrets)},
		{"Operation", in.Operation}, {"Created", s.stamp(in.Created)}, {"Updated", s.stamp(in.Updated)},
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table(w, s.output == formatWide, []column[siteHost]{
		{"HOST", false, func(h siteHost) string { return h.Name }},
		{"ADDRESS", false, func(h siteHost) string { return h.Address + ":" + strconv.Itoa(h.Port) }},
		{"USER", false, func(h siteHost) string { return h.User }},
		{"ROLE", false, func(h siteHost) string { return h.Role }},
		{"STATE", false, func(h siteHost) string { return h.State }},
		{"KEY", true, func(h siteHost) string { return h.Key }},
	}, in.Hosts)
}
