package cli

import (
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func vnfUpdate(s *session) *cobra.Command {
	var name, description string
	metadata := labelsFlag{removable: true}
	cmd := &cobra.Command{
		Use: "update ID|NAME", Aliases: []string{"modify"}, Short: "Change the name and the metadata of a VNF",
		Long: "Change attributes of a VNF. Its objects do not change. --metadata key- removes a key.",
	}
	cmd.Flags().StringVar(&name, "name", "", "new name")
	cmd.Flags().StringVar(&description, "description", "", "new description")
	cmd.Flags().Var(&metadata, "metadata", "metadata to set; can be repeated")
	return vnfRequest{method: http.MethodPatch, document: "VnfInfoModificationRequest", body: func([]string) (map[string]any, error) {
		body := map[string]any{}
		if cmd.Flags().Changed("name") {
			body["vnfInstanceName"] = name
		}
		if cmd.Flags().Changed("description") {
			body["vnfInstanceDescription"] = description
		}
		if len(metadata.labels) > 0 {
			changes := map[string]any{}
			for key, value := range metadata.labels {
				changes[key] = value // nil removes it
			}
			body["metadata"] = changes
		}
		return body, nil
	}}.start(s, cmd)
}

func vnfConnect(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "connect ID|NAME -f FILE", Short: "Change the external connections of a VNF",
		Long:    "Attach the external connection points of a VNF to networks of the cloud region.",
		Example: "  k8splugin vnf connect fw-1 -f links.yaml",
	}
	return vnfRequest{method: http.MethodPost, path: "/change_ext_conn", document: "ChangeExtVnfConnectivityRequest", body: func([]string) (map[string]any, error) {
		if !cmd.Flags().Changed("file") {
			return nil, misused(cmd, errors.New("--file is required"))
		}
		return nil, nil
	}}.start(s, cmd)
}

func vnfChangePackage(s *session) *cobra.Command {
	set := newSettings()
	cmd := &cobra.Command{
		Use: "change-package ID|NAME VNFD", Short: "Change the package of a VNF", Args: twoNames,
		Long:    "Change a VNF to the enabled package whose VNF descriptor has the id VNFD.",
		Example: "  k8splugin vnf change-package fw-1 b1bb0ce7-ebca-4fa7-95ed-4840d70a1178",
	}
	cmd.Flags().Var(setFlag{set, typed}, "set", "additional parameter; can be repeated")
	return vnfRequest{method: http.MethodPost, path: "/change_vnfpkg", document: "ChangeCurrentVnfPkgRequest", body: func(args []string) (map[string]any, error) {
		body := map[string]any{"vnfdId": args[1]}
		params, err := additional(set, "")
		if len(params) > 0 {
			body["additionalParams"] = params
		}
		return body, err
	}}.start(s, cmd)
}

func vnfTerminate(s *session) *cobra.Command {
	var forceful bool
	var grace time.Duration
	cmd := &cobra.Command{
		Use: "terminate ID|NAME", Short: "Terminate a VNF",
		Long: "Terminate a VNF: all its objects are deleted. The VNF stays, and can be instantiated\nagain or deleted.",
	}
	cmd.Flags().BoolVar(&forceful, "forceful", false, "give pods no time to end")
	cmd.Flags().DurationVar(&grace, "grace", 0, "time that pods get to end, in whole seconds (default that of each pod)")
	cmd.MarkFlagsMutuallyExclusive("forceful", "grace")
	return vnfRequest{method: http.MethodPost, path: "/terminate", body: func([]string) (map[string]any, error) {
		body := map[string]any{"terminationType": "GRACEFUL"}
		if forceful {
			body["terminationType"] = "FORCEFUL"
		}
		if grace%time.Second != 0 || grace < 0 {
			return nil, usagef("--grace: must be a number of seconds, got %s", grace)
		}
		if grace > 0 {
			body["gracefulTerminationTimeout"] = int(grace.Seconds())
		}
		return body, nil
	}}.start(s, cmd)
}
