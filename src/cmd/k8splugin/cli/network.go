package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func networkCommand(s *session) *cobra.Command {
	return s.noun("network", "Create and manage virtual networks of regions",
		networkCreate(s), networkList(s), networkShow(s), networkUpdate(s), networkDelete(s))
}

func networks() catalogue {
	return catalogue{list: ask(api.NewListNetworksRequest(root, nil)), key: "networks", fields: []string{"network_id"}, about: []string{"driver", "state", "description"}}
}

// networkFlags holds the flags that describe a network.
type networkFlags struct {
	file, spec  string
	keep        bool
	description string
	labels      labelsFlag
}

func (f *networkFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with the spec of the network; - reads standard input")
	flags.StringVar(&f.spec, "spec", "", "spec of the network as YAML or JSON")
	flags.BoolVar(&f.keep, "keep", false, "keep the network when nothing holds it")
	flags.StringVar(&f.description, "description", "", "description of the network")
	flags.Var(&f.labels, "label", "label; can be repeated")
	cmd.MarkFlagsMutuallyExclusive("file", "spec")
}

// read returns the spec as JSON, or nil if there is none.
func (f *networkFlags) read(in input) (json.RawMessage, error) {
	text, from := []byte(f.spec), "--spec"
	if f.file != "" {
		var err error
		if text, err = in.readFile(f.file); err != nil {
			return nil, err
		}
		from = f.file
	}
	if len(text) == 0 {
		return nil, nil
	}
	spec := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return nil, usagef("cannot read %s: it must be a YAML map: %w", from, err)
	}
	return jsonOf(spec), nil
}

func networkCreate(s *session) *cobra.Command {
	var f networkFlags
	var body wire.NetworkCreate
	cmd := &cobra.Command{
		Use:   "create NAME --region REGION --spec SPEC | -f FILE",
		Short: "Create a network, or hold one that is equal",
		Long: `Create a virtual network in a cloud region.

If the region has an equal network with the name, the command only adds a holder to
it. The network exists as long as it has a holder: a name, or a VNF instance that
attaches to it. docs/networks.md describes the spec.`,
		Example: "  k8splugin network create oam --region edge-1 -f oam.yaml",
		Args:    oneName,
	}
	f.define(cmd)
	flags := cmd.Flags()
	flags.StringVar(&body.Region, "region", "", "cloud region of the network")
	flags.StringVar(&body.Driver, "driver", "multus", "driver that creates the network")
	flags.StringVar(&body.Holder, "holder", "", "name that holds the network (default your own)")
	flags.StringVar(&body.Project, "project", "", "project of the network")
	completeFlag(cmd, "region", s.ids(regions(), false))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		spec, err := f.read(s.in)
		switch {
		case err != nil:
			return err
		case body.Region == "" || spec == nil:
			return misused(cmd, errors.New("--region and --spec or --file are required"))
		}
		body.Name = args[0]
		body.NetworkEdit = wire.NetworkEdit{Spec: spec, Keep: f.keep, Description: f.description, Labels: present(f.labels.labels)}
		a, err := c.send(ctx, ask(api.NewCreateNetworkRequestWithBody(root, nil, jsonMedia, nil)), body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, networkColumns)
	})
	return cmd
}

func networkUpdate(s *session) *cobra.Command {
	f := networkFlags{labels: labelsFlag{removable: true}}
	cmd := &cobra.Command{
		Use:   "update NETWORK",
		Short: "Change a network",
		Long: `Change a network. The spec is a merge patch: a field that it does not name stays,
and null removes a field. Pods that run get the change when they are created again.
--label key- removes a label.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(networks(), false),
	}
	f.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		spec, err := f.read(s.in)
		if err != nil {
			return err
		}
		body := map[string]any{}
		if spec != nil {
			body["spec"] = spec
		}
		for name, value := range map[string]any{"keep": f.keep, "description": f.description} {
			if cmd.Flags().Changed(name) {
				body[name] = value
			}
		}
		if len(f.labels.labels) > 0 {
			body["labels"] = f.labels.labels
		}
		if len(body) == 0 {
			return misused(cmd, errors.New("nothing to change"))
		}
		a, err := c.send(ctx, ask(api.NewUpdateNetworkRequestWithBody(root, args[0], nil, mergePatch, nil)), body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, networkColumns)
	})
	return cmd
}

func networkDelete(s *session) *cobra.Command {
	return releaseCommand(s, "network", networks(), func(id string) request { return ask(api.NewReleaseNetworkRequest(root, id, nil)) }, networkColumns)
}

// releaseCommand returns the command that releases a shared resource.
func releaseCommand[T any](s *session, noun string, all catalogue, release func(id string) request, columns func(clock) []column[T]) *cobra.Command {
	var holder string
	var unused bool
	cmd := &cobra.Command{
		Use:     "delete " + strings.ToUpper(noun),
		Aliases: []string{"release", "remove", "rm"},
		Short:   "Release a " + noun + "; the last holder deletes it",
		Long: fmt.Sprintf(`End your hold on a %[1]s, or that of --holder. If the %[1]s has other holders,
it remains. Otherwise it is deleted.`, noun),
		Args:              oneName,
		ValidArgsFunction: s.ids(all, false),
	}
	cmd.Flags().StringVar(&holder, "holder", "", "name that releases the "+noun+" (default your own)")
	cmd.Flags().BoolVar(&unused, "if-unused", false, "fail if the "+noun+" has other holders")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		query := url.Values{}
		if holder != "" {
			query.Set("holder", holder)
		}
		if unused {
			query.Set("if_unused", "true")
		}
		r := release(args[0])
		r.query = query
		a, err := c.call(ctx, r)
		if err != nil || len(a.body) == 0 {
			return err
		}
		return printOne(s.out, a, columns)
	})
	return cmd
}

func networkList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List networks", networks(), networkColumns)
	q.add(cmd, "region", "cloud_region_id", "filter by cloud region")
	q.add(cmd, "driver", "driver", "filter by driver")
	q.add(cmd, "state", "state", "filter by state: creating, active, changing, deleting or failed")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "region", s.ids(regions(), false))
	completeFlag(cmd, "state", fixed("creating", "active", "changing", "deleting", "failed"))
	return cmd
}

func networkColumns(now clock) []column[wire.Network] {
	return []column[wire.Network]{
		{"NETWORK", false, func(n wire.Network) string { return n.ID }},
		{"STATE", false, func(n wire.Network) string { return string(n.State) }},
		{"DRIVER", false, func(n wire.Network) string { return n.Driver }},
		{"USERS", false, func(n wire.Network) string { return countOf(n.UseCount) }},
		{"KEEP", true, func(n wire.Network) string { return strconv.FormatBool(n.Keep) }},
		{"AGE", false, func(n wire.Network) string { return now.age(n.Created) }},
		{"PROJECT", true, func(n wire.Network) string { return n.Project }},
		{"DESCRIPTION", true, func(n wire.Network) string { return n.Description }},
	}
}

// countOf returns the number of holders; lists do not have it.
func countOf(count *int) string {
	if count == nil {
		return "-"
	}
	return strconv.Itoa(*count)
}

func networkShow(s *session) *cobra.Command {
	return s.showCommand("show NETWORK", "Show a network and its users", networks(), s.out.describeNetwork)
}

func (pr *printer) describeNetwork(w io.Writer, a answer) error {
	var n wire.Network
	if err := a.decode(&n); err != nil {
		return err
	}
	var objects []string
	for _, r := range n.Refs {
		objects = append(objects, strings.TrimPrefix(r.Kind+" "+r.Namespace+"/"+r.Name, "/"))
	}
	if err := printFields(w, []field{
		{"Id", n.ID}, {"Description", n.Description}, {"Project", n.Project}, {"Region", n.Region}, {"State", string(n.State)}, {"Message", n.Message},
		{"Driver", n.Driver}, {"Spec", string(n.Spec)}, {"Keep", strconv.FormatBool(n.Keep)}, {"Objects", strings.Join(objects, ", ")},
		{"Operation", n.Operation}, {"Created", pr.clock.stamp(n.Created)}, {"Updated", pr.clock.stamp(n.Updated)}, {"Users", countOf(n.UseCount)},
	}); err != nil {
		return err
	}
	return pr.users(w, n.Users)
}

// users prints the holders of a shared resource, if there are any.
func (pr *printer) users(w io.Writer, users []wire.Subject) error {
	if len(users) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, pr.format.name == formatWide, []column[wire.Subject]{
		{"KIND", false, func(u wire.Subject) string { return string(u.Kind) }},
		{"USER", false, func(u wire.Subject) string { return u.ID }},
	}, users)
}

// attachFlag is --attach: each use is one attachment.
type attachFlag struct {
	all   []wire.Attachment
	specs map[int]string // the files with the specs of networks that attachments create, by their indexes
}

func (f *attachFlag) String() string { return "" }
func (f *attachFlag) Type() string   { return "name[,key=value...]" }

// Set parses "oam,workload=router,ip=10.0.0.9/24,mac=…,interface=net1,create=oam.yaml".
func (f *attachFlag) Set(text string) error {
	name, rest, _ := strings.Cut(text, ",")
	a, file, driver := wire.Attachment{Network: name}, "", ""
	keys := map[string]func(string){
		"workload": func(v string) { a.Workload = v }, "interface": func(v string) { a.Interface = v }, "mac": func(v string) { a.MAC = v },
		"ip":            func(v string) { a.IPs = append(a.IPs, v) },
		"default-route": func(v string) { a.DefaultRoute = append(a.DefaultRoute, v) },
		"create":        func(v string) { file = v },
		"driver":        func(v string) { driver = v },
	}
	if name == "" || strings.Contains(name, "=") {
		return errors.New("it must begin with the name of a network, as in oam,workload=router,ip=10.0.0.9/24")
	}
	for part := range strings.SplitSeq(rest, ",") {
		if rest == "" {
			break
		}
		key, value, _ := strings.Cut(part, "=")
		set := keys[key]
		if set == nil || value == "" {
			return fmt.Errorf("%q is not one of %s, with a value", part, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		set(value)
	}
	if driver != "" && file == "" {
		return errors.New("driver needs create, the file with the spec of the network")
	}
	if file != "" {
		a.Create = &wire.Creation{Driver: cmp.Or(driver, "multus")}
		if f.specs == nil {
			f.specs = map[int]string{}
		}
		f.specs[len(f.all)] = file
	}
	f.all = append(f.all, a)
	return nil
}

// read returns the attachments with the specs from their files.
func (f *attachFlag) read(in input) ([]wire.Attachment, error) {
	for i, file := range f.specs {
		spec, err := (&networkFlags{file: file}).read(in)
		if err != nil {
			return nil, err
		}
		f.all[i].Create.Spec = spec
	}
	return f.all, nil
}

// attachmentsOf returns attachments as --attach has them.
func attachmentsOf(all []wire.Attachment) string {
	var out []string
	for _, a := range all {
		parts := []string{a.Network}
		for _, part := range []struct{ key, value string }{
			{"workload", a.Workload}, {"interface", a.Interface}, {"ip", strings.Join(a.IPs, " ")}, {"mac", a.MAC}, {"default-route", strings.Join(a.DefaultRoute, " ")},
		} {
			if part.value != "" {
				parts = append(parts, part.key+"="+part.value)
			}
		}
		out = append(out, strings.Join(parts, " "))
	}
	return strings.Join(out, "; ")
}
