package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// tenant is what a project may use of a region.
type tenant nf.Tenant

// String describes in one line what a project may use.
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

// tenantFlags holds the flags for what a project may use of a region.
type tenantFlags struct{ tenant }

func (f *tenantFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Namespaces, "namespace", nil, "namespace; * matches any characters; can be repeated")
	flags.StringSliceVar(&f.ClusterKinds, "cluster-kind", nil, "cluster-scoped kind, such as ClusterRole.rbac.authorization.k8s.io; * matches any characters; can be repeated")
}

func (t tenant) empty() bool {
	return len(t.Namespaces) == 0 && len(t.ClusterKinds) == 0 && t.ServiceAccount == ""
}

func regionGrant(s *session) *cobra.Command {
	var f tenantFlags
	cmd := &cobra.Command{
		Use:   "grant NAME PROJECT",
		Short: "Grant a project namespaces and kinds of a region",
		Long: `Grant a project the use of namespaces and cluster-scoped kinds of a cloud region.

A project may always use the namespaces that the service creates for it. A grant
adds to these namespaces and to earlier grants. The project "*" means every
project.`,
		Example:           "  k8splugin region grant east blue --namespace edge-* --cluster-kind ClusterRole.rbac.authorization.k8s.io",
		Args:              twoNames,
		ValidArgsFunction: s.ids(regions(), false),
	}
	f.define(cmd)
	cmd.Flags().StringVar(&f.ServiceAccount, "service-account", "", "NAMESPACE/NAME of the service account that the service impersonates for the project")
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
		Short: "Revoke a project's grants in a region",
		Long: `Revoke a project's grants in a cloud region: those that the flags name, or all.
Existing objects of the project's instances do not change.`,
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

// regrant changes what a project may use of a region.
func (s *session) regrant(ctx context.Context, c *client, args []string, edit func(tenant) tenant) error {
	a, err := c.call(ctx, ask(api.NewGetCloudRegionRequest(root, args[0])))
	if err != nil {
		return err
	}
	var r wire.Region
	if err := a.decode(&r); err != nil {
		return err
	}
	// A merge patch keeps fields that it does not name, so it always names the
	// lists.
	var entry any
	if to := edit(tenant(r.Tenants[args[1]])); !to.empty() {
		entry = map[string]any{"namespaces": list(to.Namespaces), "cluster_kinds": list(to.ClusterKinds), "service_account": to.ServiceAccount}
	}
	body := map[string]any{"tenants": map[string]any{args[1]: entry}}
	if a, err = c.send(ctx, ask(api.NewUpdateCloudRegionRequestWithBody(root, args[0], mergePatch, nil)), body); err != nil {
		return err
	}
	return printOne(s.out, a, regionColumns)
}

func list(names []string) []string { return append([]string{}, names...) }

// with returns both lists of names, sorted and without duplicates.
func with(names, further []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, further))))
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
