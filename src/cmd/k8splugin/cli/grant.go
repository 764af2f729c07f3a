package cli

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// String returns what a project may use, in a line.
func (t tenant) String() string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"namespaces", strings.Join(t.Namespaces, ", ")}, {"cluster-scoped kinds", strings.Join(t.ClusterKinds, ", ")},
		{"as service account", t.ServiceAccount},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, "; ")
}

// tenantFlags are the flags that say what a project may use of a region.
type tenantFlags struct{ tenant }

func (f *tenantFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Namespaces, "namespace", nil, "a namespace; * stands for any characters; may be given several times")
	flags.StringSliceVar(&f.ClusterKinds, "cluster-kind", nil, "a cluster-scoped kind, such as ClusterRole.rbac.authorization.k8s.io; * stands for any characters; may be given several times")
}

func (t tenant) empty() bool {
	return len(t.Namespaces) == 0 && len(t.ClusterKinds) == 0 && t.ServiceAccount == ""
}

func regionGrant(s *session) *cobra.Command {
	var f tenantFlags
	cmd := &cobra.Command{
		Use:   "grant NAME PROJECT",
		Short: "Let a project use namespaces and cluster-scoped kinds of a region",
		Long: `Let a project use namespaces and cluster-scoped kinds of a cloud region.

A project may always use the namespaces that the service makes for it. What is
granted comes on top of that, and of what was granted before. The project "*" is
every project.`,
		Args:              twoNames,
		ValidArgsFunction: s.ids(regions(), false),
	}
	f.define(cmd)
	cmd.Flags().StringVar(&f.ServiceAccount, "service-account", "", "NAMESPACE/NAME that the service acts as in the cluster for the project")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if f.empty() {
			return misused(cmd, errors.New("nothing to grant: give --namespace, --cluster-kind or --service-account"))
		}
		return s.regrant(ctx, c, args, func(t tenant) tenant {
			t.Namespaces, t.ClusterKinds = with(t.Namespaces, f.Namespaces), with(t.ClusterKinds, f.ClusterKinds)
			if f.ServiceAccount != "" {
				t.ServiceAccount = f.ServiceAccount
			}
			return t
		})
	})
	return cmd
}

func regionRevoke(s *session) *cobra.Command {
	var f tenantFlags
	cmd := &cobra.Command{
		Use:   "revoke NAME PROJECT",
		Short: "Take back what a project was granted in a region",
		Long: `Take back what a project was granted in a cloud region: what the flags name, or
everything. What its instances have already stays as it is.`,
		Args:              twoNames,
		ValidArgsFunction: s.ids(regions(), false),
	}
	f.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return s.regrant(ctx, c, args, func(t tenant) tenant {
			if f.empty() {
				return tenant{}
			}
			t.Namespaces, t.ClusterKinds = without(t.Namespaces, f.Namespaces), without(t.ClusterKinds, f.ClusterKinds)
			return t
		})
	})
	return cmd
}

// regrant changes what a project is granted.
func (s *session) regrant(ctx context.Context, c *client, args []string, edit func(tenant) tenant) error {
	a, err := c.get(ctx, at("cloud_regions", args[0]), nil)
	if err != nil {
		return err
	}
	var r region
	if err := a.decode(&r); err != nil {
		return err
	}
	// A merge patch keeps what it does not name, so the lists are always named.
	var entry any
	if to := edit(r.Tenants[args[1]]); !to.empty() {
		entry = map[string]any{"namespaces": list(to.Namespaces), "cluster_kinds": list(to.ClusterKinds), "service_account": to.ServiceAccount}
	}
	body := map[string]any{"tenants": map[string]any{args[1]: entry}}
	if a, err = c.send(ctx, request{method: http.MethodPatch, path: at("cloud_regions", args[0])}, mergePatch, body); err != nil {
		return err
	}
	return printOne(s, a, regionColumns(s))
}

func list(names []string) []string { return append([]string{}, names...) }

// with returns the names and the further ones, each once.
func with(names, further []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, further))))
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
