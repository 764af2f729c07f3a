package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// getCommand returns the command that lists or shows objects with the noun after the
// verb, as kubectl has it.
func getCommand(s *session) *cobra.Command {
	cmd := s.noun("get", "List objects of a kind, or show one",
		either("region", regionList(s), regionShow(s)),
		either("package", packageList(s), packageShow(s)),
		either("instance", instanceList(s), s.scoped(instanceShow(s))[0]),
		either("operation", operationList(s), operationShow(s)),
		either("network", networkList(s), networkKind().show(s)),
		either("volume", volumeList(s), volumeKind().show(s)),
		either("service", serviceList(s), serviceShow(s)),
		either("site", siteList(s), siteShow(s)),
	)
	cmd.Aliases = nil
	return cmd
}

// either returns a command that shows an object if it is named, and lists all
// otherwise. It has the flags of the list, which tell objects of one name apart.
func either(noun string, list, show *cobra.Command) *cobra.Command {
	all := list.RunE
	list.Use, list.Aliases = noun+" [NAME]", []string{noun + "s"}
	list.Short = "List " + noun + "s, or show one"
	list.ValidArgsFunction = show.ValidArgsFunction
	list.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneName(cmd, args)
	}
	list.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return all(cmd, args)
		}
		var err error
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if there := show.Flags().Lookup(f.Name); there != nil {
				err = errors.Join(err, there.Value.Set(f.Value.String()))
			}
		})
		if err != nil {
			return err
		}
		return show.RunE(cmd, args)
	}
	return list
}
