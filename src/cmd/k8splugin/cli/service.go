package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func serviceCommand(s *session) *cobra.Command {
	return s.noun("service", "Create and manage network services",
		serviceCreate(s), serviceList(s), serviceShow(s), serviceUpdate(s), serviceUndo(s), serviceWait(s), serviceDelete(s))
}

func services() catalogue {
	return catalogue{list: ask(api.NewListServicesRequest(root, nil)), key: "services", fields: []string{"service_id"}, about: []string{"state", "description"}}
}

// serviceRun holds the flags of a command that runs an operation on a network service.
type serviceRun struct {
	wait siteRun
	dry  bool
	keep bool
}

func (f *serviceRun) define(cmd *cobra.Command, undoable bool) {
	f.wait.define(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show the changes of each member without making them")
	if undoable {
		cmd.Flags().BoolVar(&f.keep, "keep-on-failure", false, "keep the members as they are if one of them fails")
	}
}

// body adds the options of the operation to a request.
func (f *serviceRun) body(body map[string]any) map[string]any {
	if f.keep {
		body["on_failure"] = nf.Keep
	}
	if f.wait.timeout != 0 {
		body["timeout"] = f.wait.timeout.String()
	}
	return body
}

func serviceCreate(s *session) *cobra.Command {
	var file, nsd string
	var run serviceRun
	cmd := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Create a network service",
		Long: `Create a network service with all its members.

The file is YAML or JSON with the fields of POST /v1/services. docs/services.md
describes them. If a member fails, all members are terminated again, unless
--keep-on-failure keeps them.

--nsd has a network service descriptor of ETSI SOL001, in place of the field nsd.` + siteWaitHelp,
		Example: "  k8splugin service create -f vpn.yaml\n  k8splugin service create -f vpn.yaml --nsd vpn.nsd.yaml",
		Args:    noArgs,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the description of the service; - reads standard input")
	cmd.Flags().StringVar(&nsd, "nsd", "", "file with a network service descriptor")
	run.define(cmd, true)
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if file == "" {
			return misused(cmd, errors.New("--file is required"))
		}
		body, err := s.in.serviceFile(file, nsd)
		if err != nil {
			return err
		}
		return run.send(ctx, s, c, ask(api.NewCreateServiceRequestWithBody(root, nil, jsonMedia, nil)), body)
	})
	return cmd
}

// serviceFile reads the description of a network service, and its NSD. Each may be missing.
func (in input) serviceFile(file, nsd string) (map[string]any, error) {
	body := map[string]any{}
	if file != "" {
		var err error
		if body, err = in.yamlMap(file); err != nil {
			return nil, err
		}
	}
	if nsd != "" {
		text, err := in.readFile(nsd)
		if err != nil {
			return nil, err
		}
		body["nsd"] = string(text)
	}
	return body, nil
}

// yamlMap reads a file that is a YAML map.
func (in input) yamlMap(name string) (map[string]any, error) {
	text, err := in.readFile(name)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &body); err != nil {
		return nil, fmt.Errorf("cannot read %s: it must be a YAML map: %w", name, err)
	}
	return body, nil
}

func serviceUpdate(s *session) *cobra.Command {
	var file, nsd string
	var run serviceRun
	cmd := &cobra.Command{
		Use:   "update NAME [-f FILE]",
		Short: "Change a network service, or retry its failure",
		Long: `Change a network service, or apply its description to its members again.

The file is a merge patch with the fields of PATCH /v1/services/NAME. Its list of
members replaces the former one. Without a file, the description does not change:
this retries a failed operation.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(services(), false),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the changes; - reads standard input")
	cmd.Flags().StringVar(&nsd, "nsd", "", "file with a network service descriptor")
	run.define(cmd, true)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := s.in.serviceFile(file, nsd)
		if err != nil {
			return err
		}
		return run.send(ctx, s, c, ask(api.NewUpdateServiceRequestWithBody(root, args[0], nil, mergePatch, nil)), body)
	})
	return cmd
}

func serviceUndo(s *session) *cobra.Command {
	var run serviceRun
	cmd := &cobra.Command{
		Use:   "undo NAME",
		Short: "Undo the failed operation of a network service",
		Long: `Undo the failed operation of a network service, with its changes to the members. A
network service that was never ready is deleted.` + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(services(), false),
	}
	run.wait.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return run.send(ctx, s, c, ask(api.NewUndoServiceRequestWithBody(root, args[0], nil, jsonMedia, nil)), map[string]any{})
	})
	return cmd
}

func serviceDelete(s *session) *cobra.Command {
	var run serviceRun
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Aliases:           []string{"remove", "rm"},
		Short:             "Terminate a network service with all its members",
		Long:              "Terminate a network service with all its members, in reverse order." + siteWaitHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(services(), false),
	}
	run.define(cmd, false)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return run.send(ctx, s, c, ask(api.NewTerminateServiceRequest(root, args[0], nil)), map[string]any{})
	})
	return cmd
}

// send sends a request that starts an operation on a network service, and follows the
// operation; or it prints what the request would do.
func (f *serviceRun) send(ctx context.Context, s *session, c *client, r request, body map[string]any) error {
	body = f.body(body)
	if f.dry {
		r.query = url.Values{"dry_run": {"true"}}
		a, err := c.submit(ctx, r, body)
		if err != nil {
			return err
		}
		return s.out.printServicePreview(a)
	}
	r.respondAsync()
	a, err := c.submit(ctx, r, body)
	if err != nil {
		return err
	}
	op, named := strings.CutPrefix(a.header.Get("Location"), wire.OperationPath(""))
	if !named {
		return &exitError{exitNoServer, errors.New("the server's response does not name the operation that was started")}
	}
	if f.wait.noWait {
		if r.method == http.MethodDelete {
			return nil
		}
		return printOne(s.out, a, serviceColumns)
	}
	last, err := s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, op, nil)), ended, s.out.progress())
	if err != nil || r.method == http.MethodDelete {
		return err
	}
	a, err = c.call(ctx, ask(api.NewGetServiceRequest(root, last.Subject.ID)))
	if gone, ok := errors.AsType[*problem](err); ok && gone.Status == http.StatusNotFound && strings.HasSuffix(r.path, "/undo") {
		return nil // the undo has deleted it
	}
	if err != nil {
		return err
	}
	return printOne(s.out, a, serviceColumns)
}

// printServicePreview prints what a request would do to the members of a service.
func (pr *printer) printServicePreview(a answer) error {
	var p wire.ServicePreview
	if err := a.decode(&p); err != nil {
		return err
	}
	for _, m := range p.Members {
		pr.warn(m.Warnings...)
	}
	return pr.print(a, func(w io.Writer) error {
		return table(w, pr.format.name == formatWide, []column[wire.MemberPreview]{
			{"MEMBER", false, func(m wire.MemberPreview) string { return m.Name }},
			{"VERB", false, func(m wire.MemberPreview) string { return string(m.Verb) }},
			{"REGION", false, func(m wire.MemberPreview) string { return m.Region }},
			{"CHANGES", false, func(m wire.MemberPreview) string { return strconv.Itoa(len(m.Changes)) }},
		}, p.Members)
	})
}

func serviceList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List network services", services(), serviceColumns)
	q.add(cmd, "state", "state", "filter by state: creating, ready, changing, terminating or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "state", fixed("creating", "ready", "changing", "terminating", "failed"))
	return cmd
}

func serviceColumns(now clock) []column[wire.Service] {
	return []column[wire.Service]{
		{"NAME", false, func(in wire.Service) string { return in.ID }},
		{"STATE", false, func(in wire.Service) string { return string(in.State) }},
		{"MEMBERS", false, func(in wire.Service) string { return strconv.Itoa(len(in.Members)) }},
		{"AGE", false, func(in wire.Service) string { return now.age(in.Created) }},
		{"OPERATION", true, func(in wire.Service) string { return in.Operation }},
		{"PROJECT", true, func(in wire.Service) string { return in.Project }},
		{"DESCRIPTION", true, func(in wire.Service) string { return in.Description }},
	}
}

func serviceShow(s *session) *cobra.Command {
	return s.showCommand("show NAME", "Show a network service and its members", services(), s.out.describeService)
}

func (pr *printer) describeService(w io.Writer, a answer) error {
	var in wire.Service
	if err := a.decode(&in); err != nil {
		return err
	}
	var networks []string
	for _, n := range in.Networks {
		networks = append(networks, n.Name)
	}
	if err := printFields(w, []field{
		{"Name", in.ID}, {"Description", in.Description}, {"Project", in.Project}, {"State", string(in.State)}, {"Message", in.Message},
		{"Networks", strings.Join(networks, ", ")}, {"Operation", in.Operation}, {"Created", pr.clock.stamp(in.Created)}, {"Updated", pr.clock.stamp(in.Updated)},
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table(w, pr.format.name == formatWide, []column[wire.ServiceMember]{
		{"MEMBER", false, func(m wire.ServiceMember) string { return m.Name }},
		{"GROUP", false, func(m wire.ServiceMember) string { return strconv.Itoa(m.Group) }},
		{"INSTANCE", false, func(m wire.ServiceMember) string { return m.Instance }},
		{"PACKAGE", false, func(m wire.ServiceMember) string { return m.Package }},
		{"REGION", false, func(m wire.ServiceMember) string { return m.Region }},
		{"NAMESPACE", true, func(m wire.ServiceMember) string { return m.Namespace }},
	}, in.Members)
}
