package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func vnfCommand(s *session) *cobra.Command {
	return s.noun("vnf", "Create and manage VNFs of ETSI SOL003",
		vnfCreate(s), vnfList(s), vnfShow(s), vnfInstantiate(s), vnfScale(s), vnfHeal(s), vnfUpdate(s), vnfConnect(s), vnfChangePackage(s), vnfTerminate(s), vnfDelete(s))
}

// lcm returns a request of the interface of SOL003 3.3.1. Package api/client has the
// native API only.
func lcm(method, path string) request {
	return request{method: method, path: "/vnflcm/v2/" + path, header: http.Header{"Version": {"2.0.0"}, "Accept": {"application/json"}}}
}

// lcmWith returns a request that has a document as its body.
func lcmWith(method, path string) request {
	r := lcm(method, path)
	r.header.Set("Content-Type", jsonMedia)
	return r
}

func vnfs() catalogue {
	return catalogue{list: lcm(http.MethodGet, "vnf_instances"), fields: []string{"vnfInstanceName", "id"}, about: []string{"vnfInstanceName", "vnfProductName", "instantiationState"}}
}

// equals returns the filter for an attribute with a value.
func equals(attribute, value string) string {
	return "(eq," + attribute + ",'" + strings.ReplaceAll(value, "'", "''") + "')"
}

// filterFlags define flags that filter a list of SOL003, by their attributes.
func filterFlags(q *filters, attributes []string) {
	q.prepare = func(_ context.Context, _ *client, query url.Values) error {
		var all []string
		for _, name := range attributes {
			if value := query.Get(name); value != "" {
				all = append(all, equals(name, value))
			}
			query.Del(name)
		}
		if len(all) > 0 {
			query.Set("filter", strings.Join(all, ";"))
		}
		return nil
	}
}

func vnfList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List VNFs", vnfs(), vnfColumns)
	q.add(cmd, "name", "vnfInstanceName", "filter by name")
	q.add(cmd, "vnfd", "vnfdId", "filter by id of the VNFD")
	q.add(cmd, "state", "instantiationState", "filter by state: INSTANTIATED or NOT_INSTANTIATED")
	filterFlags(q, []string{"vnfInstanceName", "vnfdId", "instantiationState"})
	completeFlag(cmd, "state", fixed(nf.VNFInstantiated, nf.VNFNotInstantiated))
	return cmd
}

func vnfColumns(clock) []column[wire.VNF] {
	return []column[wire.VNF]{
		{"ID", false, func(v wire.VNF) string { return v.ID }},
		{"NAME", false, func(v wire.VNF) string { return v.Name }},
		{"STATE", false, func(v wire.VNF) string { return v.State }},
		{"PRODUCT", false, func(v wire.VNF) string { return v.Product }},
		{"VERSION", false, func(v wire.VNF) string { return v.SoftwareVersion }},
		{"PROVIDER", true, func(v wire.VNF) string { return v.Provider }},
		{"VNFD", true, func(v wire.VNF) string { return v.VNFD }},
		{"DESCRIPTION", true, func(v wire.VNF) string { return v.Description }},
	}
}

// findVNF returns the VNF with an id or a name.
func findVNF(ctx context.Context, c *client, what string) (v wire.VNF, a answer, err error) {
	a, err = c.call(ctx, vnfs().item(http.MethodGet, what))
	if ExitCode(err) == exitNotFound {
		p, failed := c.list(ctx, vnfs(), url.Values{"filter": {equals("vnfInstanceName", what)}})
		switch {
		case failed != nil:
			return v, a, failed
		case len(p.items) == 0:
			return v, a, err
		case len(p.items) > 1:
			return v, a, &exitError{exitConflict, fmt.Errorf("%d VNFs are named %q; give the id of one of them", len(p.items), what)}
		}
		if err = (answer{body: p.items[0]}).decode(&v); err == nil {
			a, err = c.call(ctx, vnfs().item(http.MethodGet, v.ID)) // a list leaves attributes out
		}
	}
	if err == nil {
		err = a.decode(&v)
	}
	return v, a, err
}

func vnfShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "show ID|NAME", Aliases: []string{"get", "describe"}, Short: "Show a VNF and its components", Args: oneName, ValidArgsFunction: s.ids(vnfs(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			v, a, err := findVNF(ctx, c, args[0])
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error { return describeVNF(w, v) })
		}),
	}
}

func describeVNF(w io.Writer, v wire.VNF) error {
	list := []field{
		{"Id", v.ID}, {"Name", v.Name}, {"Description", v.Description}, {"State", v.State}, {"VNFD", v.VNFD}, {"Provider", v.Provider}, {"Product", v.Product},
		{"Software version", v.SoftwareVersion}, {"VNFD version", v.Version}, {"Metadata", pairsOf(v.Metadata)}, {"Extensions", pairsOf(v.Extensions)},
		{"Configurable", pairsOf(v.Configurable)}, {"VIMs", vimsOf(v.VIMs)},
	}
	in := v.Instantiated
	if in == nil {
		return printFields(w, list)
	}
	most := map[string]int{}
	for _, m := range in.MaxScale {
		most[m.Aspect] = m.Level
	}
	var scale []string
	for _, level := range in.Scale {
		scale = append(scale, fmt.Sprintf("%s=%d/%d", level.Aspect, level.Level, most[level.Aspect]))
	}
	list = append(list, field{"Flavor", in.Flavor}, field{"Scale", strings.Join(scale, ", ")})
	if namespace, ok := in.Metadata["namespace"].(string); ok {
		list = append(list, field{"Namespace", namespace})
	}
	if err := printFields(w, list); err != nil {
		return err
	}
	return section(w, false, in.Resources, []column[wire.VNFCResource]{
		{"VDU", false, func(r wire.VNFCResource) string { return r.VDU }},
		{"KIND", false, func(r wire.VNFCResource) string { return r.Compute.Type }},
		{"POD", false, func(r wire.VNFCResource) string { return r.Compute.ID }},
		{"VNFC", false, func(r wire.VNFCResource) string { return vnfcOf(in.VNFCs, r.ID) }},
	})
}

// vnfcOf returns the id of the component that has a resource.
func vnfcOf(all []wire.VNFC, resource string) string {
	at := slices.IndexFunc(all, func(c wire.VNFC) bool { return c.Resource == resource })
	if at < 0 {
		return ""
	}
	return all[at].ID
}

// vimsOf returns the ids of the VIMs of connections by key.
func vimsOf(connections any) string {
	byKey, _ := connections.(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		one, _ := byKey[key].(map[string]any)
		out = append(out, fmt.Sprint(one["vimId"]))
	}
	return strings.Join(out, ", ")
}

func vnfCreate(s *session) *cobra.Command {
	var name, description, project string
	var metadata labelsFlag
	cmd := &cobra.Command{
		Use:   "create VNFD",
		Short: "Create a VNF from the package of a VNFD",
		Long: `Create a VNF from the enabled package whose VNF descriptor has the id VNFD. Nothing
runs before the VNF is instantiated.`,
		Example: "  k8splugin vnf create b1bb0ce7-ebca-4fa7-95ed-4840d70a1177 --name fw-1",
		Args:    oneName,
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "name of the VNF")
	flags.StringVar(&description, "description", "", "description of the VNF")
	flags.StringVar(&project, "project", "", "project of the VNF")
	flags.Var(&metadata, "metadata", "metadata of the VNF; can be repeated")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		r := lcmWith(http.MethodPost, "vnf_instances")
		if project != "" {
			r.query = url.Values{"project": {project}}
		}
		body := map[string]any{"vnfdId": args[0]}
		setText(body, "vnfInstanceName", name)
		setText(body, "vnfInstanceDescription", description)
		if all := present(metadata.labels); len(all) > 0 {
			body["metadata"] = all
		}
		a, err := c.send(ctx, r, body)
		if err != nil {
			return err
		}
		return printOne(s.out, a, vnfColumns)
	})
	return cmd
}

// setText adds a text to a document, unless it is empty.
func setText(body map[string]any, key, text string) {
	if text != "" {
		body[key] = text
	}
}

func vnfDelete(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID|NAME...", Aliases: []string{"remove", "rm"}, Short: "Delete VNFs that are not instantiated", Args: someNames, ValidArgsFunction: s.ids(vnfs(), true),
		RunE: s.run(func(ctx context.Context, c *client, names []string) error {
			var failed multiError
			for _, name := range names {
				v, _, err := findVNF(ctx, c, name)
				if err == nil {
					_, err = c.call(ctx, vnfs().item(http.MethodDelete, v.ID))
				}
				if err != nil {
					failed = append(failed, err)
				}
			}
			return failed.orNil()
		}),
	}
}

// vnfRequest describes a command that starts an occurrence of a VNF.
type vnfRequest struct {
	method, path string // the path below that of the VNF
	document     string // the document of SOL003 that --file contains; empty: there is no such flag
	body         func(args []string) (map[string]any, error)
}

// start completes a command that starts an occurrence of the VNF in its first argument.
func (q vnfRequest) start(s *session, cmd *cobra.Command) *cobra.Command {
	var run occurrenceRun
	var file string
	cmd.Long = strings.TrimSuffix(cmp.Or(cmd.Long, cmd.Short+"."), "\n") + occurrenceWaitHelp
	cmd.ValidArgsFunction = s.ids(vnfs(), false)
	if cmd.Args == nil {
		cmd.Args = oneName
	}
	if q.document != "" {
		cmd.Flags().StringVarP(&file, "file", "f", "", "YAML or JSON file with the fields of "+q.document+", which other flags replace; - reads standard input")
	}
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		var err error
		if file != "" {
			if body, err = s.in.yamlMap(file); err != nil {
				return err
			}
		}
		given, err := q.body(args)
		if err != nil {
			return err
		}
		overlay(body, given)
		v, _, err := findVNF(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := lcmWith(q.method, "vnf_instances/"+url.PathEscape(v.ID)+q.path)
		a, err := c.send(ctx, r, body)
		if err != nil {
			return err
		}
		return run.follow(ctx, s, c, idIn(a.header.Get("Location")), nf.OccurrenceCompleted)
	})
	return cmd
}

// overlay replaces the fields of a document. Maps are merged.
func overlay(body, given map[string]any) {
	for key, value := range given {
		below, nested := value.(map[string]any)
		present, there := body[key].(map[string]any)
		if nested && there {
			overlay(present, below)
			continue
		}
		body[key] = value
	}
}

func vnfInstantiate(s *session) *cobra.Command {
	var flavor, level, region, vim, namespace string
	set := newSettings()
	cmd := &cobra.Command{
		Use:   "instantiate ID|NAME --flavor FLAVOR | -f FILE",
		Short: "Instantiate a VNF",
		Long: `Instantiate a VNF in a cloud region, which is a VIM of SOL003. Without --region and
--vim it is the default VIM.`,
		Example: "  k8splugin vnf instantiate fw-1 --flavor simple --region edge-1 --namespace fw\n  k8splugin vnf instantiate fw-1 -f instantiate.yaml",
	}
	flags := cmd.Flags()
	flags.StringVar(&flavor, "flavor", "", "deployment flavor of the VNFD")
	flags.StringVar(&level, "level", "", "instantiation level of the flavor (default that of the VNFD)")
	flags.StringVar(&region, "region", "", "cloud region")
	flags.StringVar(&vim, "vim", "", "id of the VIM, in place of the region")
	flags.StringVarP(&namespace, "namespace", "n", "", "namespace in the region")
	flags.Var(setFlag{set, typed}, "set", "additional parameter; can be repeated")
	cmd.MarkFlagsMutuallyExclusive("region", "vim")
	completeFlag(cmd, "region", s.ids(regions(), true))
	return vnfRequest{method: http.MethodPost, path: "/instantiate", document: "InstantiateVnfRequest", body: func([]string) (map[string]any, error) {
		body := map[string]any{}
		setText(body, "flavourId", flavor)
		setText(body, "instantiationLevelId", level)
		if region != "" {
			vim = nf.Region{ID: region}.VIMID()
		}
		if vim != "" {
			body["vimConnectionInfo"] = map[string]any{"vim1": map[string]any{"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1"}}
		}
		params, err := additional(set, namespace)
		if len(params) > 0 {
			body["additionalParams"] = params
		}
		return body, err
	}}.start(s, cmd)
}

// additional returns the additional parameters of a request.
func additional(set settings, namespace string) (map[string]any, error) {
	for name := range set.texts {
		return nil, usagef("--set: %q is not the name of a parameter, or a path of names", name)
	}
	all := values{}
	if err := set.into(all); err != nil {
		return nil, Usage(err)
	}
	out := all.fields()
	setText(out, "namespace", namespace)
	return out, nil
}

func vnfScale(s *session) *cobra.Command {
	var aspect string
	var in bool
	var steps int
	cmd := &cobra.Command{
		Use: "scale ID|NAME --aspect ASPECT", Short: "Scale a VNF out or in", Long: "Scale a VNF out, or with --in scale it in, by steps of a scaling aspect.",
		Example: "  k8splugin vnf scale fw-1 --aspect front --steps 2\n  k8splugin vnf scale fw-1 --aspect front --in",
	}
	cmd.Flags().StringVar(&aspect, "aspect", "", "scaling aspect of the VNFD")
	cmd.Flags().BoolVar(&in, "in", false, "scale in")
	cmd.Flags().IntVar(&steps, "steps", 1, "number of steps")
	return vnfRequest{method: http.MethodPost, path: "/scale", body: func([]string) (map[string]any, error) {
		if aspect == "" {
			return nil, misused(cmd, errors.New("--aspect is required"))
		}
		if steps < 1 {
			return nil, usagef("--steps: must be at least 1, got %s", strconv.Itoa(steps))
		}
		direction := "SCALE_OUT"
		if in {
			direction = "SCALE_IN"
		}
		return map[string]any{"type": direction, "aspectId": aspect, "numberOfSteps": steps}, nil
	}}.start(s, cmd)
}

func vnfHeal(s *session) *cobra.Command {
	var cause string
	var vnfcs []string
	cmd := &cobra.Command{
		Use: "heal ID|NAME", Short: "Replace the pods of a VNF", Long: "Replace the pods of a VNF, or only those of components, and create missing objects.",
		Example: "  k8splugin vnf heal fw-1 --vnfc VDU1-web-5d5f7c9b6-x2x7q",
	}
	cmd.Flags().StringVar(&cause, "cause", "", "reason, for the record")
	cmd.Flags().StringArrayVar(&vnfcs, "vnfc", nil, "component to heal; can be repeated (default all)")
	return vnfRequest{method: http.MethodPost, path: "/heal", body: func([]string) (map[string]any, error) {
		body := map[string]any{}
		setText(body, "cause", cause)
		if len(vnfcs) > 0 {
			body["vnfcInstanceId"] = vnfcs
		}
		return body, nil
	}}.start(s, cmd)
}
