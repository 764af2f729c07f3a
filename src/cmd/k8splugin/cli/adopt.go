package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func instanceAdopt(s *session) *cobra.Command {
	var body wire.InstanceAdopt
	var labels labelsFlag
	var m executionFlags
	var w waiting
	var dry bool
	cmd := &cobra.Command{
		Use:   "adopt --region REGION --release RELEASE --package PACKAGE",
		Short: "Adopt a Helm release as an instance",
		Long: `Adopt a Helm release as an instance. The package is the release's chart. Only the
ownership of the running objects changes. The released content becomes the
instance's first revision. Helm's record of the release stays. Objects that no release created
are adopted by: k8splugin instance create --adopt

The command returns when the instance owns every object. With --no-wait it returns
as soon as the operation is accepted. An interrupt ends only the waiting; the
operation continues.`,
		Example: "  k8splugin instance adopt --region east --namespace edge --release web --package web --name web",
		Args:    noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&body.Region, "region", "", "cloud region of the release")
	flags.StringVarP(&body.Namespace, "namespace", "n", "", `namespace of the release (default: the region's, or "default")`)
	flags.StringVar(&body.Release, "release", "", "name of the release")
	flags.StringVar(&body.Package, "package", "", "csar_id of the package, which is the release's chart")
	flags.StringVar(&body.Name, "name", "", "name of the instance, unique in its region and namespace")
	flags.StringVar(&body.Description, "description", "", "description of the instance")
	flags.StringVar(&body.Project, "project", "", `project of the instance (default "default")`)
	flags.Var(&labels, "label", "label; can be repeated")
	m.define(cmd)
	flags.BoolVar(&dry, "dry-run", false, "show the objects that would be adopted, without changing anything")
	flags.BoolVar(&w.noWait, "no-wait", false, "return as soon as the operation is accepted")
	completeFlag(cmd, "region", s.ids(regions(), true))
	completeFlag(cmd, "package", s.ids(packages(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if body.Region == "" || body.Release == "" || body.Package == "" {
			return misused(cmd, errors.New("--region, --release and --package are required"))
		}
		var err error
		if body.Execution, err = m.options(); err != nil {
			return err
		}
		body.Labels = present(labels.labels)
		r := ask(api.NewAdoptVnfInstanceRequestWithBody(root, nil, jsonMedia, nil))
		if dry {
			return s.dryRun(ctx, c, r, &body)
		}
		return s.change(ctx, c, r, &body, changeOptions{waiting: w})
	})
	return cmd
}
