package cli

import (
	"context"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func packageCreate(s *session) *cobra.Command {
	var body wire.PackageCreate
	var data labelsFlag
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a package before its content",
		Long: `Create a package without content, and print its csar_id.

Nothing can be deployed from the package until "package push --id" uploads its
content.`,
		Example: "  k8splugin package create --id firewall --user-data ticket=4711",
		Args:    noArgs,
	}
	cmd.Flags().StringVar(&body.ID, "id", "", "csar_id of the package (default a new id)")
	cmd.Flags().StringVar(&body.Name, "name", "", "name of the package until its content declares one")
	cmd.Flags().StringVar(&body.Project, "project", "", `project of the package (default "default")`)
	cmd.Flags().Var(&data, "user-data", "user data; can be repeated")
	cmd.RunE = s.run(func(ctx context.Context, c *client, _ []string) error {
		body.UserData = map[string]any{}
		for name, value := range data.labels {
			body.UserData[name] = value
		}
		a, err := c.send(ctx, ask(api.NewCreatePackageRequestWithBody(root, nil, jsonMedia, nil)), body)
		if err != nil {
			return err
		}
		return s.out.printPackageID(a)
	})
	return cmd
}

func packageEnable(s *session) *cobra.Command {
	return packageSwitch(s, true, cobra.Command{
		Use:   "enable ID",
		Short: "Allow new instances of a package",
		Long:  "Allow new instances of a package, and upgrades to it, after it was disabled.",
	})
}

func packageDisable(s *session) *cobra.Command {
	return packageSwitch(s, false, cobra.Command{
		Use:   "disable ID",
		Short: "Reject new instances of a package",
		Long: `Reject new instances of a package, and upgrades to it.

Instances that have the package are unaffected. They can still be changed, rolled
back and terminated.`,
	})
}

// packageSwitch completes the command that enables or disables a package.
func packageSwitch(s *session, enabled bool, cmd cobra.Command) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = oneName, s.ids(packages(), false)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		r := ask(api.NewUpdatePackageRequestWithBody(root, args[0], mergePatch, nil))
		a, err := c.send(ctx, r, wire.PackageEdit{Enabled: enabled})
		if err != nil {
			return err
		}
		return printOne(s.out, a, packageColumns)
	})
	return &cmd
}

// packageState returns the state of a package, with the remark that it is disabled.
func packageState(p wire.Package) string {
	if !p.Enabled {
		return string(p.State) + ", disabled"
	}
	return string(p.State)
}
