package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func instanceCommand(s *session) *cobra.Command {
	return s.noun("instance", "Bring up, change and remove VNF instances",
		instanceCreate(s), instanceAdopt(s), instanceList(s), instanceShow(s), instanceTree(s),
		instanceUpdate(s), instanceDiff(s), instanceConfigure(s), instanceTest(s), instanceRevisions(s), instanceRollback(s), instanceDelete(s))
}

func instanceList(s *session) *cobra.Command {
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the instances",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, at("vnf_instances"), "vnf_instances", q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, instanceColumns(s))
		}),
	}
	q.add(cmd, "region", "cloud_region_id", "in this region only")
	q.add(cmd, "namespace", "namespace", "in this namespace only")
	q.add(cmd, "name", "vnf_instance_name", "of this name only")
	q.add(cmd, "package", "csar_id", "of this package only")
	q.add(cmd, "state", "state", "in this state only: instantiating, ready, updating, failed or terminating")
	q.project(cmd)
	q.labels(cmd)
	q.pages(cmd)
	completeFlag(cmd, "region", s.ids(regions(), true))
	completeFlag(cmd, "package", s.ids(packages(), true))
	completeFlag(cmd, "state", fixed("instantiating", "ready", "updating", "failed", "terminating"))
	return cmd
}

func instanceColumns(s *session) []column[instance] {
	return []column[instance]{
		{"ID", false, func(i instance) string { return i.ID }},
		{"NAME", false, func(i instance) string { return i.Name }},
		{"REGION", false, func(i instance) string { return i.Region }},
		{"NAMESPACE", false, func(i instance) string { return i.Namespace }},
		{"PACKAGE", false, func(i instance) string { return i.Package }},
		{"STATE", false, func(i instance) string { return i.State }},
		{"REVISION", false, func(i instance) string { return strconv.Itoa(i.Revision) }},
		{"AGE", false, func(i instance) string { return s.age(i.Created) }},
		{"PROJECT", true, func(i instance) string { return i.Project }},
		{"OPERATION", true, func(i instance) string { return i.Operation }},
		{"LABELS", true, func(i instance) string { return pairsOf(i.Labels) }},
		{"MESSAGE", true, func(i instance) string { return i.Message }},
	}
}

// find reads the instance that has the id or, failing that, the name.
func (c *client) find(ctx context.Context, what string) (instance, answer, error) {
	var found instance
	// What has a slash is no id, and would name something else in a path.
	if !strings.Contains(what, "/") {
		a, err := c.get(ctx, at("vnf_instances", what), nil)
		if err == nil {
			return found, a, a.decode(&found)
		}
		if ExitCode(err) != exitNotFound {
			return found, a, err
		}
	}
	id, err := c.idOf(ctx, what)
	if err != nil {
		return found, answer{}, err
	}
	a, err := c.get(ctx, at("vnf_instances", id), nil)
	if err != nil {
		return found, answer{}, err
	}
	return found, a, a.decode(&found)
}

// idOf returns the id of the one instance that has the name.
func (c *client) idOf(ctx context.Context, name string) (string, error) {
	p, err := c.list(ctx, at("vnf_instances"), "vnf_instances", url.Values{"vnf_instance_name": {name}})
	if err != nil {
		return "", err
	}
	all, err := decodeAll[instance](p)
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 0:
		return "", &exitError{exitNotFound, fmt.Errorf("no instance has the id or name %q", name)}
	case 1:
		return all[0].ID, nil
	}
	var b strings.Builder
	for _, i := range all {
		fmt.Fprintf(&b, "\n  %s in region %s, namespace %s", i.ID, i.Region, i.Namespace)
	}
	return "", usagef("%d instances are named %q; say which by its id:%s", len(all), name, b.String())
}

func instanceShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID|NAME",
		Short:             "Show an instance and the health of each of its objects",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, a, err := c.find(ctx, args[0])
			if err != nil {
				return err
			}
			return s.print(a, func(w io.Writer) error { return s.describeInstance(w, i) })
		}),
	}
}

func (s *session) describeInstance(w io.Writer, i instance) error {
	list := []field{
		{"ID", i.ID}, {"Name", i.Name}, {"Description", i.Description},
		{"Project", i.Project}, {"Region", i.Region}, {"Namespace", i.Namespace}, {"Namespaces", strings.Join(i.Namespaces, ", ")}, {"Package", i.Package}, {"Release", i.Release},
		{"Revision", strconv.Itoa(i.Revision)}, {"State", i.State}, {"Healthy", yesNo(i.Healthy)},
		{"Message", i.Message}, {"Operation", i.Operation}, {"Labels", pairsOf(i.Labels)},
		{"Created", s.stamp(i.Created)}, {"Updated", s.stamp(i.Updated)},
	}
	for _, name := range slices.Sorted(maps.Keys(i.Parameters)) {
		list = append(list, field{"Parameter", name + " = " + string(i.Parameters[name])})
	}
	for _, answer := range i.OOF {
		list = append(list, field{"OOF", string(answer)})
	}
	for _, name := range slices.Sorted(maps.Keys(i.Network)) {
		list = append(list, field{"Network", name + " = " + string(i.Network[name])})
	}
	if len(i.Set) > 0 {
		list = append(list, field{"Set", pairsOf(i.Set)})
	}
	for _, am := range i.Amendments {
		list = append(list, field{"Amendment", am.String()})
	}
	if err := printFields(w, list); err != nil || len(i.Objects) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return table(w, false, objectColumns(), i.Objects)
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

func objectColumns() []column[object] {
	return []column[object]{
		{"KIND", false, func(o object) string { return o.Kind }},
		{"NAMESPACE", false, func(o object) string { return o.Namespace }},
		{"NAME", false, func(o object) string { return o.Name }},
		{"STATUS", false, func(o object) string { return string(o.Status) }},
		{"MESSAGE", false, func(o object) string { return o.Message }},
	}
}

// What becomes of the volume claims of an instance that is removed.
const (
	claimsKeep   = "keep"
	claimsDelete = "delete"
)

func instanceDelete(s *session) *cobra.Command {
	var wait, orphan bool
	var claims string
	var m mannerFlags
	cmd := &cobra.Command{
		Use:     "delete ID|NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove instances and all their objects",
		Long: "Remove instances and all their objects. With --orphan the objects stay, as nobody's. PersistentVolumeClaims\n" +
			"that StatefulSets made stay, and the operation's warnings name them; with --claims delete they are deleted, with their data.",
		Args:              someNames,
		ValidArgsFunction: s.ids(instances(), true),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until every object is gone, and show how it comes along")
	cmd.Flags().BoolVar(&orphan, "orphan", false, "leave the objects in place, as nobody's")
	cmd.Flags().StringVar(&claims, "claims", "", "keep or delete the PersistentVolumeClaims that StatefulSets made (default keep)")
	completeFlag(cmd, "claims", fixed(claimsKeep, claimsDelete))
	m.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, names []string) error {
		if err := m.check(); err != nil {
			return err
		}
		query := url.Values{}
		switch claims {
		case "", claimsKeep:
		case claimsDelete:
			if orphan {
				return usagef("--claims delete does not go with --orphan")
			}
			query.Set("claims", claims)
		default:
			return usagef("--claims is keep or delete, not %q", claims)
		}
		if m.timeout != 0 {
			query.Set("timeout", m.timeout.String())
		}
		if m.onUnreachable != "" {
			query.Set("on_unreachable", m.onUnreachable)
		}
		if orphan {
			query.Set("orphan", "true")
		}
		return s.deleteAll(ctx, c, names, query, wait)
	})
	return cmd
}

// deleteAll asks for the removal of every instance before it waits for any, so
// that they go side by side.
func (s *session) deleteAll(ctx context.Context, c *client, names []string, query url.Values, wait bool) error {
	begun := page{key: "operations"}
	var running []string
	var failed several
	for _, name := range names {
		a, err := c.delete(ctx, name, query)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if id := a.operation(); id != "" { // else it is gone already
			begun.join(a)
			running = append(running, id)
		}
	}
	if !wait && begun.parts > 0 {
		if err := printAll(s, begun, operationColumns(s)); err != nil {
			failed = append(failed, err)
		}
		return failed.orNil()
	}
	for _, id := range running {
		if _, err := s.follow(ctx, c, id, ended, s.progress()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.orNil()
}

// delete begins the removal of the instance that has the id or name.
func (c *client) delete(ctx context.Context, what string, query url.Values) (answer, error) {
	i, _, err := c.find(ctx, what)
	if err != nil {
		return answer{}, err
	}
	return c.call(ctx, request{method: http.MethodDelete, path: at("vnf_instances", i.ID), query: query, header: async()})
}
