package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

const (
	retryHelp = "Retry a failed operation whose results were kept. The retry is a new operation. If it\n" +
		"fails too, its results are kept again, unless --on-failure is undo. The retry of an\n" +
		"operation whose undo failed is undone if it fails, unless --on-failure is keep."
	undoHelp   = "Undo a failed operation whose results were kept. The undo is a new operation."
	cancelHelp = "Request that an operation stop. Its --on-failure setting decides whether its results are\n" +
		"undone or kept. The results of a site's operation are always kept."
)

func operationRetry(s *session) *cobra.Command {
	return s.repair(&cobra.Command{Use: "retry ID", Short: "Retry a failed operation whose results were kept", Long: retryHelp}, "keep", retryOf, operationChoice())
}

func operationUndo(s *session) *cobra.Command {
	return s.repair(&cobra.Command{Use: "undo ID", Short: "Undo a failed operation whose results were kept", Long: undoHelp}, "", undoOf, operationChoice())
}

func instanceRetry(s *session) *cobra.Command {
	return s.repair(&cobra.Command{Use: "retry ID|NAME", Short: "Retry an instance's last operation", Long: retryHelp}, "keep", retryOf, choice{instances(), s.lastOperation})
}

func instanceUndo(s *session) *cobra.Command {
	return s.repair(&cobra.Command{Use: "undo ID|NAME", Short: "Undo an instance's last operation", Long: undoHelp}, "", undoOf, choice{instances(), s.lastOperation})
}

// choice is how an argument chooses an operation: by an id or name in a collection.
type choice struct {
	from catalogue
	id   func(ctx context.Context, c *client, what string) (string, error)
}

// operationChoice chooses an operation that can be retried or undone, by its id.
func operationChoice() choice { return choice{instanceOperations(), itself} }

func itself(_ context.Context, _ *client, id string) (string, error) { return id, nil }

// lastOperation returns the last operation of the instance with the id or name.
func (s *session) lastOperation(ctx context.Context, c *client, what string) (string, error) {
	i, _, err := s.find(ctx, c, what)
	return i.Operation, err
}

// runningOperation returns the running operation of the instance with the id or name.
func (s *session) runningOperation(ctx context.Context, c *client, what string) (string, error) {
	i, _, err := s.find(ctx, c, what)
	if err == nil && i.RunningOperation == "" {
		err = &exitError{exitConflict, fmt.Errorf("no operation is running on instance %s", what)}
	}
	return i.RunningOperation, err
}

func operationCancel(s *session) *cobra.Command {
	return s.cancel(&cobra.Command{Use: "cancel ID", Short: "Cancel an operation"}, choice{operations(), itself})
}

func instanceCancel(s *session) *cobra.Command {
	return s.cancel(&cobra.Command{Use: "cancel ID|NAME", Short: "Cancel an instance's running operation"}, choice{instances(), s.runningOperation})
}

// cancel completes a command that cancels the chosen operation.
func (s *session) cancel(cmd *cobra.Command, chosen choice) *cobra.Command {
	var wait bool
	cmd.Long, cmd.Args, cmd.ValidArgsFunction = cancelHelp, oneName, s.ids(chosen.from, false)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the operation has ended, and show progress")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		id, err := chosen.id(ctx, c, args[0])
		if err != nil {
			return err
		}
		a, err := c.call(ctx, ask(api.NewCancelOperationRequest(root, id, nil)))
		if err != nil {
			return err
		}
		if !wait {
			return printOne(s.out, a, operationColumns)
		}
		return s.awaitCancelled(ctx, c, id)
	})
	return cmd
}

// awaitCancelled waits for the end of an operation that was asked to stop. It returns
// an error if the operation ended otherwise.
func (s *session) awaitCancelled(ctx context.Context, c *client, id string) error {
	op, err := s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, id, nil)), ended, s.out.progress())
	if op.State == nf.OperationCancelled {
		return nil
	}
	if op.State == nf.Succeeded {
		return &exitError{exitConflict, fmt.Errorf("operation %s succeeded before it could be cancelled", id)}
	}
	return err
}

func retryOf(operation string) request {
	return ask(api.NewRetryOperationRequestWithBody(root, operation, nil, jsonMedia, nil))
}

func undoOf(operation string) request {
	return ask(api.NewUndoOperationRequestWithBody(root, operation, nil, jsonMedia, nil))
}

// repair completes a command that starts an operation because the chosen one
// failed. Policy is the default of --on-failure; if it is empty, the command
// does not have the flag.
func (s *session) repair(cmd *cobra.Command, policy string, start func(operation string) request, chosen choice) *cobra.Command {
	var w waiting
	var k confirmFlags
	var m executionFlags
	var dry bool
	cmd.Long += waitHelp + confirmHelp
	cmd.Args, cmd.ValidArgsFunction = oneName, s.ids(chosen.from, false)
	m.define(cmd)
	m.defineValidate(cmd)
	if policy != "" {
		m.defineOnFailure(cmd, policy)
	}
	w.define(cmd)
	k.define(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the changes without making them")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if policy == "" && w.wait == wire.WaitApplied {
			return usagef("--wait=applied is not supported by undo")
		}
		body, err := m.options()
		if err != nil {
			return err
		}
		id, err := chosen.id(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := start(id)
		if dry {
			return s.dryRun(ctx, c, r, &body)
		}
		a, op, err := s.begin(ctx, c, r, &body, changeOptions{w, k})
		if err != nil {
			return err
		}
		if op.ID != "" {
			if a, err = c.call(ctx, ask(api.NewGetOperationRequest(root, op.ID))); err != nil {
				return err
			}
		}
		return printOne(s.out, a, operationColumns)
	})
	return cmd
}
