package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func regionCommand(s *session) *cobra.Command {
	return s.noun("region", "Register and look after cloud regions",
		regionAdd(s), regionList(s), regionShow(s), regionUpdate(s), regionGrant(s), regionRevoke(s), regionRemove(s))
}

// regionFlags are the flags that say what a region is.
type regionFlags struct {
	kubeconfig, context string
	description, owner  string
	labels              labelsFlag
}

func (f *regionFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file with the credentials; - reads standard input")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig to use instead of the current one")
	flags.StringVar(&f.description, "description", "", "what the region is")
	flags.Var(&f.labels, "label", "a label; may be given several times")
}

// body is the request that the flags make: those that were given.
func (f *regionFlags) body(s *session, cmd *cobra.Command) (map[string]any, error) {
	body := map[string]any{}
	if cmd.Flags().Changed("description") {
		body["description"] = f.description
	}
	if cmd.Flags().Changed("owner") {
		body["cloud_owner"] = f.owner
	}
	if f.labels.labels != nil {
		body["labels"] = f.labels.labels
	}
	if f.kubeconfig == "" {
		if f.context != "" {
			return nil, usagef("--context is of use with --kubeconfig only")
		}
		return body, nil
	}
	text, err := s.readFile(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	// []byte travels as base64.
	body["kubeconfig"], err = extract(text, f.context, filepath.Dir(f.kubeconfig))
	return body, err
}

func regionAdd(s *session) *cobra.Command {
	var f regionFlags
	cmd := &cobra.Command{
		Use:   "add NAME --kubeconfig FILE",
		Short: "Register a cluster as a cloud region",
		Long: `Register a Kubernetes cluster as a cloud region.

Of the kubeconfig only one context is sent, the current one unless --context
names another, with the certificate files that it refers to. The server connects
to the cluster before it registers anything.`,
		Args: oneName,
	}
	f.define(cmd)
	cmd.Flags().StringVar(&f.owner, "owner", "", "who the region belongs to")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if f.kubeconfig == "" {
			return misused(cmd, errors.New("--kubeconfig is required"))
		}
		body, err := f.body(s, cmd)
		if err != nil {
			return err
		}
		body["cloud_region_id"] = args[0]
		a, err := c.send(ctx, request{method: http.MethodPost, path: at("cloud_regions")}, "application/json", body)
		if err != nil {
			return err
		}
		return printOne(s, a, regionColumns(s))
	})
	return cmd
}

func regionUpdate(s *session) *cobra.Command {
	f := regionFlags{labels: labelsFlag{removable: true}}
	cmd := &cobra.Command{
		Use:               "update NAME",
		Short:             "Change a region's labels, description or credentials",
		Long:              "Change a region's labels, description or credentials. --label key- takes a label away.",
		Args:              oneName,
		ValidArgsFunction: s.ids(regions(), false),
	}
	f.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := f.body(s, cmd)
		if err != nil {
			return err
		}
		if len(body) == 0 {
			return usagef("nothing to change: give --label, --description or --kubeconfig")
		}
		r := request{method: http.MethodPatch, path: at("cloud_regions", args[0])}
		a, err := c.send(ctx, r, mergePatch, body)
		if err != nil {
			return err
		}
		return printOne(s, a, regionColumns(s))
	})
	return cmd
}

func regionList(s *session) *cobra.Command {
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cloud regions",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, at("cloud_regions"), "cloud_regions", q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, regionColumns(s))
		}),
	}
	q.add(cmd, "condition", "condition", "in this condition only: unknown, available, expiring or unreachable")
	q.labels(cmd)
	q.pages(cmd)
	completeFlag(cmd, "condition", fixed("unknown", "available", "expiring", "unreachable"))
	return cmd
}

func regionColumns(s *session) []column[region] {
	return []column[region]{
		{"NAME", false, func(r region) string { return r.ID }},
		{"OWNER", false, func(r region) string { return r.Owner }},
		{"VERSION", false, func(r region) string { return r.Version }},
		{"CONDITION", false, func(r region) string { return string(r.State.Condition) }},
		{"SERVER", false, func(r region) string { return r.Server }},
		{"AGE", false, func(r region) string { return s.age(r.Created) }},
		{"MESSAGE", true, func(r region) string { return r.State.Message }},
		{"LABELS", true, func(r region) string { return pairsOf(r.Labels) }},
		{"DESCRIPTION", true, func(r region) string { return r.Description }},
	}
}

func regionShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a cloud region",
		Args:              oneName,
		ValidArgsFunction: s.ids(regions(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.get(ctx, at("cloud_regions", args[0]), nil)
			if err != nil {
				return err
			}
			return s.print(a, func(w io.Writer) error {
				var r region
				if err := a.decode(&r); err != nil {
					return err
				}
				return s.describeRegion(w, r)
			})
		}),
	}
}

func (s *session) describeRegion(w io.Writer, r region) error {
	defer s.warnOf(r)
	state := string(r.State.Condition)
	if r.State.Reason != "" {
		state += " (" + r.State.Reason + ")"
	}
	if since := s.stamp(r.State.Since); since != "" {
		state += " since " + since
	}
	breaker := string(r.State.Breaker)
	if retry := s.until(r.State.Retry); retry != "" {
		breaker += "; the next request goes out " + retry
	}
	credential := r.Credential.Kind
	if expires := s.until(r.Credential.Expires); expires != "" {
		credential += ", expires " + expires
	}
	list := []field{
		{"Name", r.ID}, {"Owner", r.Owner}, {"Description", r.Description},
		{"Labels", pairsOf(r.Labels)}, {"Server", r.Server}, {"Version", r.Version},
		{"APIs", strings.Join(r.APIs, ", ")}, {"Used by", usersOf(r.Users, r.MoreUsers)},
		{"Condition", state}, {"Message", r.State.Message}, {"Checked", s.stamp(r.State.Checked)},
		{"Breaker", breaker}, {"Credential", credential},
		{"Created", s.stamp(r.Created)}, {"Updated", s.stamp(r.Updated)},
	}
	for _, project := range slices.Sorted(maps.Keys(r.Tenants)) {
		list = append(list, field{"Tenant", project + ": " + r.Tenants[project].String()})
	}
	return printFields(w, list)
}

// usersOf lists the instances that use a region or a package.
func usersOf(ids []string, more bool) string {
	if more {
		ids = append(slices.Clone(ids), "…")
	}
	return strings.Join(ids, ", ")
}

// warnOf warns of a region whose credential needs somebody to renew it.
func (s *session) warnOf(r region) {
	expires := r.Credential.Expires
	switch {
	case expires.IsZero():
	case !expires.After(s.Now()):
		s.warn("the credential of region " + r.ID + " has expired; give it a new one with region update --kubeconfig")
	case r.State.Condition == nf.RegionExpiring:
		s.warn("the credential of region " + r.ID + " expires " + s.until(expires) + "; give it a new one with region update --kubeconfig")
	}
}

func regionRemove(s *session) *cobra.Command {
	return s.removal("Forget cloud regions; the clusters stay as they are", regions())
}

// removal is the command that deletes things which need no operation. It tries
// each, and fails when one could not be removed.
func (s *session) removal(short string, from catalogue) *cobra.Command {
	return &cobra.Command{
		Use:               "remove ID...",
		Aliases:           []string{"delete"},
		Short:             short,
		Args:              someNames,
		ValidArgsFunction: s.ids(from, true),
		RunE: s.run(func(ctx context.Context, c *client, ids []string) error {
			var failed several
			for _, id := range ids {
				path := from.path + strings.TrimPrefix(at(id), "/v1")
				if _, err := c.call(ctx, request{method: http.MethodDelete, path: path}); err != nil {
					failed = append(failed, err)
				}
			}
			return failed.orNil()
		}),
	}
}
