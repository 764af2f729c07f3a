package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
)

func operationRetry(s *session) *cobra.Command {
	return s.repair("retry", "Try an operation again that failed and was kept", true)
}

func operationUndo(s *session) *cobra.Command {
	return s.repair("undo", "Take an operation back that failed and was kept", false)
}

// repair is the command that begins an operation because another one failed.
func (s *session) repair(verb, short string, policy bool) *cobra.Command {
	var w waiting
	var k consent
	var m mannerFlags
	cmd := &cobra.Command{
		Use:               verb + " ID",
		Short:             short,
		Long:              short + ". That is an operation of its own." + waitHelp + confirmHelp,
		Args:              oneName,
		ValidArgsFunction: s.ids(operations(), false),
	}
	m.define(cmd)
	if policy {
		m.defineOnFailure(cmd)
	}
	w.define(cmd)
	k.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if !policy && w.wait == waitApplied {
			return usagef("--wait=applied is not for what takes an operation back")
		}
		if err := m.into(body); err != nil {
			return err
		}
		r := request{method: http.MethodPost, path: at("operations", args[0], verb)}
		a, op, err := s.begin(ctx, c, r, body, how{w, k})
		if err != nil {
			return err
		}
		if op.ID != "" {
			if a, err = c.get(ctx, at("operations", op.ID), nil); err != nil {
				return err
			}
		}
		return printOne(s, a, operationColumns(s))
	})
	return cmd
}
