package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Translation is a VNF descriptor in the terms of Kubernetes.
type Translation struct {
	Manifests []byte          // YAML documents
	Networks  []nf.Attachment // of the workloads
	Warnings  []string
}

func packageTranslate(s *session) *cobra.Command {
	var flavor, level string
	cmd := &cobra.Command{
		Use:   "translate DIR|FILE",
		Short: "Print the manifests for a VNF descriptor",
		Long: `Translate the VNF descriptor of a CSAR, and print the manifests. The command needs no
server.

An instance of a CSAR is created from these manifests if the CSAR has neither
manifests nor a chart. Attachments to networks are comments at the beginning.

A part of the descriptor that cannot be translated is an error: the command prints
one line for each, "file:line: message", and the exit code is 1.`,
		Example: `  k8splugin package translate firewall.csar --flavor simple --level large
  k8splugin package translate ./firewall -o json`,
		Args: oneFile,
	}
	cmd.Flags().StringVar(&flavor, "flavor", "", "deployment flavor (default the only one)")
	cmd.Flags().StringVar(&level, "level", "", "instantiation level (default the default level of the flavor)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		archive, err := archiveOf(args[0])
		if err != nil {
			return err
		}
		found, err := s.translate(archive, flavor, level)
		if violations := nf.ViolationsOf(err); len(violations) > 0 {
			return lintError{"cannot translate " + args[0], violations}
		}
		if err != nil {
			return err
		}
		return s.out.inFormat(s.out.printTranslation(found))
	}
	return cmd
}

func (pr *printer) printTranslation(of Translation) error {
	pr.warn(of.Warnings...)
	body := jsonOf(map[string]any{"manifests": string(of.Manifests), "networks": append([]nf.Attachment{}, of.Networks...), "warnings": append([]string{}, of.Warnings...)})
	return pr.print(answer{body: body}, func(w io.Writer) error {
		for _, a := range of.Networks {
			text := fmt.Sprintf("# network %s: attached to %s", a.Network, a.Workload)
			if a.Interface != "" {
				text += " as " + a.Interface
			}
			fmt.Fprintln(w, flat(text))
		}
		_, err := w.Write(of.Manifests)
		return err
	})
}
