package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func instanceCommand(s *session) *cobra.Command {
	cmd := s.noun("instance", "Create, change and delete VNF instances", instanceCreate(s), instanceAdopt(s), instanceList(s))
	cmd.AddCommand(s.scoped(
		instanceShow(s), instanceTree(s), instanceDrift(s), instanceUpdate(s), instanceApply(s), instanceDiff(s), instanceConfigure(s), instanceTest(s),
		instanceScale(s), instanceRestart(s), instanceHeal(s))...)
	cmd.AddCommand(s.scoped(instanceMachines(s)...)...)
	cmd.AddCommand(s.scoped(
		instanceRevisions(s), instanceNotes(s), instanceRollback(s), instanceWait(s), instanceRetry(s), instanceUndo(s), instanceCancel(s), instanceDelete(s))...)
	return cmd
}

func instanceList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List instances", instances(), instanceColumns)
	q.add(cmd, "region", "cloud_region_id", "filter by region")
	q.namespace(cmd)
	_ = q.order.natural.Set(".vnf_instance_name") // it is a path
	q.add(cmd, "name", "vnf_instance_name", "filter by name")
	q.add(cmd, "package", "csar_id", "filter by package")
	q.add(cmd, "state", "state", "filter by state: instantiating, ready, updating, failed or terminating")
	q.add(cmd, "health", "health", "filter by health: healthy, unhealthy or unknown")
	q.project(cmd)
	q.labels(cmd)
	q.pages(cmd)
	completeFlag(cmd, "health", fixed("healthy", "unhealthy", "unknown"))
	completeFlag(cmd, "region", s.ids(regions(), true))
	completeFlag(cmd, "package", s.ids(packages(), true))
	completeFlag(cmd, "state", fixed("instantiating", "ready", "updating", "failed", "terminating"))
	return cmd
}

func instanceColumns(now clock) []column[wire.Instance] {
	return []column[wire.Instance]{
		{"ID", false, func(i wire.Instance) string { return i.ID }},
		{"NAME", false, func(i wire.Instance) string { return i.Name }},
		{"REGION", false, func(i wire.Instance) string { return i.Region }},
		{"NAMESPACE", false, func(i wire.Instance) string { return i.Namespace }},
		{"PACKAGE", false, func(i wire.Instance) string { return i.Package }},
		{"STATE", false, func(i wire.Instance) string { return string(i.State) }},
		{"HEALTH", false, func(i wire.Instance) string { return string(i.Health) }},
		{"REVISION", false, func(i wire.Instance) string { return strconv.Itoa(i.Revision) }},
		{"AGE", false, func(i wire.Instance) string { return now.age(i.Created) }},
		{"PROJECT", true, func(i wire.Instance) string { return i.Project }},
		{"OPERATION", true, func(i wire.Instance) string { return i.RunningOperation }},
		{"LABELS", true, func(i wire.Instance) string { return pairsOf(i.Labels) }},
		{"MESSAGE", true, func(i wire.Instance) string { return cmp.Or(i.Message, i.HealthMessage) }},
	}
}

// scope tells instances of one name apart.
type scope struct{ region, namespace, project string }

// has reports whether an instance is in the scope.
func (s scope) has(in wire.Instance) bool {
	for _, of := range [][2]string{{s.region, in.Region}, {s.namespace, in.Namespace}, {s.project, in.Project}} {
		if of[0] != "" && of[0] != of[1] {
			return false
		}
	}
	return true
}

// scoped adds the flags that tell instances of one name apart to commands that take
// names of instances.
func (s *session) scoped(verbs ...*cobra.Command) []*cobra.Command {
	for _, cmd := range verbs {
		cmd.Flags().StringVar(&s.scope.region, "region", "", "region of the named instance")
		cmd.Flags().StringVarP(&s.scope.namespace, "namespace", "n", "", "namespace of the named instance")
		completeFlag(cmd, "region", s.ids(regions(), true))
	}
	return verbs
}

// find reads the instance with the id or, if there is none, with the name.
func (s *session) find(ctx context.Context, c *client, what string) (wire.Instance, answer, error) {
	return s.findWith(ctx, c, what, nil)
}

// findWith is find with parameters of the request. An instance with the id is found only
// in the scope of the flags.
func (s *session) findWith(ctx context.Context, c *client, what string, params *api.GetVnfInstanceParams) (wire.Instance, answer, error) {
	var found, elsewhere wire.Instance
	// Text with a slash is not an id, and would be another path.
	if !strings.Contains(what, "/") {
		a, err := c.call(ctx, ask(api.NewGetVnfInstanceRequest(root, what, params)))
		if err == nil {
			err = a.decode(&elsewhere)
			if err != nil || s.scope.has(elsewhere) {
				return elsewhere, a, err
			}
		} else if ExitCode(err) != exitNotFound {
			return found, a, err
		}
	}
	id, err := c.idOf(ctx, what, s.scope)
	if ExitCode(err) == exitNotFound && elsewhere.ID != "" {
		err = &exitError{exitNotFound, fmt.Errorf("no instance is named %q there; the instance with this id is in region %s, namespace %s", what, elsewhere.Region, elsewhere.Namespace)}
	}
	if err != nil {
		return found, answer{}, err
	}
	a, err := c.call(ctx, ask(api.NewGetVnfInstanceRequest(root, id, params)))
	if err != nil {
		return found, answer{}, err
	}
	return found, a, a.decode(&found)
}

// idOf returns the id of the only instance with the name in the scope.
func (c *client) idOf(ctx context.Context, name string, in scope) (string, error) {
	all, err := c.named(ctx, name, in)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", &exitError{exitNotFound, fmt.Errorf("no instance has the id or name %q", name)}
	case len(all) == 1:
		return all[0].ID, nil
	}
	return "", usagef("%d instances are named %q; give the id of one of them, or --region and --namespace:%s", len(all), name, placesOf(all))
}

// named returns the instances with a name, or an id, in a scope.
func (c *client) named(ctx context.Context, name string, in scope) ([]wire.Instance, error) {
	query := url.Values{"vnf_instance_name": {name}}
	for parameter, value := range map[string]string{"cloud_region_id": in.region, "namespace": in.namespace, "project": in.project} {
		if value != "" {
			query.Set(parameter, value)
		}
	}
	p, err := c.list(ctx, instances(), query)
	if err != nil {
		return nil, err
	}
	return decodeAll[wire.Instance](p)
}

// placesOf returns a line for each instance.
func placesOf(all []wire.Instance) string {
	var b strings.Builder
	for _, i := range all {
		fmt.Fprintf(&b, "\n  %s in region %s, namespace %s", i.ID, i.Region, i.Namespace)
	}
	return b.String()
}

func instanceShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID|NAME",
		Aliases:           []string{"get", "describe", "status"},
		Short:             "Show an instance and the health of its objects",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, a, err := s.find(ctx, c, args[0])
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error { return s.out.describeInstance(w, i) })
		}),
	}
}

func (pr *printer) describeInstance(w io.Writer, i wire.Instance) error {
	list := []field{
		{"ID", i.ID}, {"Name", i.Name}, {"Description", i.Description},
		{"Project", i.Project}, {"Region", i.Region}, {"Namespace", i.Namespace}, {"Namespaces", strings.Join(i.Namespaces, ", ")}, {"Networks", attachmentsOf(i.Attachments)}, {"Volumes", volumeUsesOf(i.Bindings)}, {"Compute profiles", profilesOf(i.Compute)}, {"Workload clusters", workloadsOf(i.Workloads)}, {"Package", i.Package}, {"Release", i.Release},
		{"Revision", strconv.Itoa(i.Revision)}, {"State", string(i.State)}, {"Health", string(i.Health)}, {"Health message", i.HealthMessage},
		{"Drift", driftLine(i)}, {"Claims", string(i.Claims)}, {"A&AI", inventoryLine(i.AAI)},
		{"Message", i.Message}, {"Operation", i.RunningOperation}, {"Labels", pairsOf(i.Labels)},
		{"Created", pr.clock.stamp(i.Created)}, {"Updated", pr.clock.stamp(i.Updated)},
	}
	for _, name := range slices.Sorted(maps.Keys(i.Parameters)) {
		list = append(list, field{"Parameter", name + " = " + string(jsonOf(i.Parameters[name]))})
	}
	for _, answer := range i.OOFParameters {
		list = append(list, field{"OOF", string(jsonOf(answer))})
	}
	for _, name := range slices.Sorted(maps.Keys(i.NetworkParameters)) {
		list = append(list, field{"Network", name + " = " + string(jsonOf(i.NetworkParameters[name]))})
	}
	if len(i.Overrides) > 0 {
		list = append(list, field{"Set", pairsOf(i.Overrides)})
	}
	for _, am := range i.Amendments {
		list = append(list, field{"Amendment", amendmentLine(am)})
	}
	if err := printFields(w, list); err != nil {
		return err
	}
	return section(w, false, i.Objects, objectColumns())
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "yes"
	}
	return "no"
}

func objectColumns() []column[wire.Object] {
	return []column[wire.Object]{
		{"KIND", false, func(o wire.Object) string { return o.Kind }},
		{"NAMESPACE", false, func(o wire.Object) string { return o.Namespace }},
		{"NAME", false, func(o wire.Object) string { return o.Name }},
		{"STATUS", false, func(o wire.Object) string { return string(o.Status) }},
		{"MESSAGE", false, func(o wire.Object) string { return o.Message }},
	}
}

// claimsKeep is the opposite of wire.ClaimsDelete.
const claimsKeep = "keep"

func instanceDelete(s *session) *cobra.Command {
	var wait, orphan, cascade, dry bool
	var claims string
	var m executionFlags
	cmd := &cobra.Command{
		Use:     "delete ID|NAME...",
		Aliases: []string{"remove", "rm", "uninstall", "terminate"},
		Short:   "Delete instances and all their objects",
		Long: "Delete instances and all their objects. With --orphan the objects stay, unowned.\n" +
			"PersistentVolumeClaims that StatefulSets created stay, and the operation's warnings\n" +
			"name them. --claims delete deletes them with their data.\n" +
			"If clusters of an instance became cloud regions, it is deleted only when no instances\n" +
			"run there. --cascade deletes those first.",
		Args:              someNames,
		ValidArgsFunction: s.ids(instances(), true),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until every object is deleted, and show progress")
	cmd.Flags().BoolVar(&orphan, "orphan", false, "leave the objects in place, unowned")
	cmd.Flags().BoolVar(&cascade, "cascade", false, "first delete the instances in the cloud regions that clusters of the instance became")
	cmd.Flags().StringVar(&claims, "claims", "", "treatment of the PersistentVolumeClaims that StatefulSets created: keep or delete (default that of the instance)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the objects that would be deleted, and those that would stay")
	completeFlag(cmd, "claims", fixed(claimsKeep, wire.ClaimsDelete))
	m.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, names []string) error {
		asked, err := m.options()
		if err != nil {
			return err
		}
		query := queryOf(asked)
		switch claims {
		case "":
		case claimsKeep:
			query.Set("claims", claims)
		case wire.ClaimsDelete:
			if orphan {
				return usagef("--claims delete and --orphan are mutually exclusive")
			}
			query.Set("claims", claims)
		default:
			return usagef("--claims: must be keep or delete, got %q", claims)
		}
		if orphan {
			query.Set("orphan", "true")
		}
		if cascade {
			query.Set("cascade", "true")
		}
		if dry {
			return previewDelete(ctx, s, c, names, query)
		}
		return s.deleteAll(ctx, c, names, query, wait)
	})
	return cmd
}

// deleteAll requests the deletion of every instance before it waits for any, so
// that they run concurrently. It deletes none if one does not exist.
func (s *session) deleteAll(ctx context.Context, c *client, names []string, query url.Values, wait bool) error {
	var failed multiError
	ids, err := idsOf(ctx, s, c, names)
	if err != nil {
		return err
	}
	begun := page{key: "operations"}
	var running []string
	for _, id := range ids {
		r := ask(api.NewDeleteVnfInstanceRequest(root, id, nil))
		r.query = query
		r.respondAsync()
		a, err := c.call(ctx, r)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if id := a.operation(); id != "" { // otherwise it is already deleted
			begun.join(a)
			running = append(running, id)
		}
	}
	if !wait && begun.parts > 0 {
		if err := printAll(s.out, begun, operationColumns); err != nil {
			failed = append(failed, err)
		}
		return failed.orNil()
	}
	for _, id := range running {
		if _, err := s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, id, nil)), ended, s.out.progress()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.orNil()
}
