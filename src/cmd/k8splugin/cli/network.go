package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func networkCommand(s *session) *cobra.Command {
	k := networkKind()
	return s.noun("network", "Create and manage virtual networks of regions",
		networkCreate(s), networkList(s), k.show(s), networkUpdate(s), k.release(s))
}

func networkKind() sharedKind[wire.Network] {
	return sharedKind[wire.Network]{
		noun: "network", restarts: true, columns: networkColumns, describe: (*printer).describeNetwork,
		all:      catalogue{list: ask(api.NewListNetworksRequest(root, nil)), key: "networks", fields: []string{"network_id"}, about: []string{"driver", "state", "description"}},
		creation: ask(api.NewCreateNetworkRequestWithBody(root, nil, jsonMedia, nil)),
		change: func(id string) request {
			return ask(api.NewUpdateNetworkRequestWithBody(root, id, nil, mergePatch, nil))
		},
	}
}

// networkSpec holds the flags that have the spec of a network.
type networkSpec struct{ file, text string }

func (f *networkSpec) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with the spec of the network; - reads standard input")
	flags.StringVar(&f.text, "spec", "", "spec of the network as YAML or JSON")
	cmd.MarkFlagsMutuallyExclusive("file", "spec")
}

// read returns the spec as JSON, or nil if there is none.
func (f *networkSpec) read(in input) (json.RawMessage, error) {
	text, from := []byte(f.text), "--spec"
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
		err = fmt.Errorf("cannot read %s: it must be a YAML map: %w", from, err)
		if f.file == "" {
			return nil, Usage(err)
		}
		return nil, err
	}
	return jsonOf(spec), nil
}

func networkCreate(s *session) *cobra.Command {
	var f networkSpec
	var driver string
	cmd := &cobra.Command{
		Use: "create NAME --region REGION --spec SPEC | -f FILE",
		Long: `Create a virtual network in a cloud region.

If the region has an equal network with the name, the command only adds a holder to
it. The network exists as long as it has a holder: a name, or a VNF instance that
attaches to it. docs/networks.md describes the spec.`,
		Example: "  k8splugin network create oam --region edge-1 -f oam.yaml",
	}
	f.define(cmd)
	cmd.Flags().StringVar(&driver, "driver", "multus", "driver that creates the network")
	return networkKind().create(s, cmd, func(wanted newShared) (any, error) {
		spec, err := f.read(s.in)
		switch {
		case err != nil:
			return nil, err
		case wanted.region == "" || spec == nil:
			return nil, misused(cmd, errors.New("--region and --spec or --file are required"))
		}
		return wire.NetworkCreate{
			Name: wanted.name, Region: wanted.region, Project: wanted.project, Driver: driver, Holder: wanted.holder,
			NetworkEdit: wire.NetworkEdit{Spec: spec, Keep: wanted.flags.keep, Description: wanted.flags.description, Labels: present(wanted.flags.labels.labels)},
		}, nil
	})
}

func networkUpdate(s *session) *cobra.Command {
	var f networkSpec
	cmd := &cobra.Command{
		Long: `Change a network. The spec is a merge patch: a field that it does not name stays,
and null removes a field. Pods that run get the change when they are created again:
--dry-run lists their workloads, and --restart restarts them. --label key- removes a label.`,
	}
	f.define(cmd)
	return networkKind().update(s, cmd, func(patch map[string]any) error {
		spec, err := f.read(s.in)
		if spec != nil {
			patch["spec"] = spec
		}
		return err
	})
}

func networkList(s *session) *cobra.Command {
	cmd, q := networkKind().list(s)
	q.add(cmd, "driver", "driver", "filter by driver")
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
	if err := setPairs(rest, keys); err != nil {
		return err
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

// setPairs calls the function of each key in "key=value,key=value".
func setPairs(text string, keys map[string]func(string)) error {
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		key, value, _ := strings.Cut(part, "=")
		set := keys[key]
		if set == nil || value == "" {
			return fmt.Errorf("%q is not one of %s, with a value", part, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		set(value)
	}
	return nil
}

// read returns the attachments with the specs from their files.
func (f *attachFlag) read(in input) ([]wire.Attachment, error) {
	for i, file := range f.specs {
		spec, err := (&networkSpec{file: file}).read(in)
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
