package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
)

func instanceAdopt(s *session) *cobra.Command {
	var region, namespace, release, pkg, name, project, description string
	var labels labelsFlag
	var m mannerFlags
	var w waiting
	cmd := &cobra.Command{
		Use:   "adopt --region REGION --release RELEASE --package PACKAGE",
		Short: "Make an instance of a release that Helm has made",
		Long: `Make an instance of a release that Helm has made. The package is the release's
chart. Nothing of what runs is changed but whose it is, and what was released is
the instance's first revision. Helm's own record of the release stays.

The command returns when every object is the instance's; with --no-wait at once.
An interrupt ends the waiting only: the operation goes on.`,
		Args: noArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&region, "region", "", "cloud region that the release is in")
	flags.StringVar(&namespace, "namespace", "", `namespace that the release is in (default "default")`)
	flags.StringVar(&release, "release", "", "name of the release")
	flags.StringVar(&pkg, "package", "", "csar_id of the package, the release's chart")
	flags.StringVar(&name, "name", "", "name of the instance, unique in its region and namespace")
	flags.StringVar(&description, "description", "", "what the instance is for")
	flags.StringVar(&project, "project", "", `project that it belongs to (default "default")`)
	flags.Var(&labels, "label", "a label; may be given several times")
	m.define(cmd)
	flags.BoolVar(&w.noWait, "no-wait", false, "return when the operation is accepted")
	completeFlag(cmd, "region", s.ids(regions(), true))
	completeFlag(cmd, "package", s.ids(packages(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		if region == "" || release == "" || pkg == "" {
			return misused(cmd, errors.New("--region, --release and --package are required"))
		}
		f := specFlags{
			region: region, namespace: namespace, name: name, description: description, pkg: pkg, release: release,
			labels: labels, project: project, manner: m,
		}
		body, err := f.body(s)
		if err != nil {
			return err
		}
		return s.change(ctx, c, request{method: http.MethodPost, path: at("vnf_instances", "adopt")}, body, how{waiting: w})
	})
	return cmd
}
