package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func operationRetry(s *session) *cobra.Command {
	return s.repair(&cobra.Command{
		Use: "retry ID", Short: "Retry a failed operation whose results were kept",
		Long: "Retry a failed operation whose results were kept. The retry is a new operation. If it\n" +
			"fails too, its results are kept again, unless --on-failure is undo. The retry of an\n" +
			"operation whose undo failed is undone if it fails, unless --on-failure is keep.",
	}, "retry", "keep")
}

func operationUndo(s *session) *cobra.Command {
	return s.repair(&cobra.Command{
		Use: "undo ID", Short: "Undo a failed operation whose results were kept",
		Long: "Undo a failed operation whose results were kept. The undo is a new operation.",
	}, "undo", "")
}

// repair completes a command that starts an operation because another one
// failed. Policy is the default of --on-failure; if it is empty, the command
// does not have the flag.
func (s *session) repair(cmd *cobra.Command, verb, policy string) *cobra.Command {
	var w waiting
	var k confirmFlags
	var m executionFlags
	cmd.Long += waitHelp + confirmHelp
	cmd.Args, cmd.ValidArgsFunction = oneName, s.ids(instanceOperations(), false)
	m.define(cmd)
	m.defineValidate(cmd)
	if policy != "" {
		m.defineOnFailure(cmd, policy)
	}
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if policy == "" && w.wait == wire.WaitApplied {
			return usagef("--wait=applied is not supported by undo")
		}
		body, err := m.options()
		if err != nil {
			return err
		}
		r := request{method: http.MethodPost, path: at("operations", args[0], verb)}
		a, op, err := s.begin(ctx, c, r, &body, changeOptions{w, k})
		if err != nil {
			return err
		}
		if op.ID != "" {
			if a, err = c.get(ctx, at("operations", op.ID), nil); err != nil {
				return err
			}
		}
		return printOne(s.out, a, operationColumns)
	})
	return cmd
}
