package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// confirmFlags holds the flags that confirm deletions.
type confirmFlags struct {
	confirm string
	yes     bool
}

func (k *confirmFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.confirm, "confirm", "", "digest of the deletions to confirm, as printed by a dry run or by a command that required confirmation")
	cmd.Flags().BoolVarP(&k.yes, "yes", "y", false, "list the deletions, and confirm all of them")
}

const confirmHelp = `

A change that would delete data, or many of the instance's objects, must be
confirmed. On a terminal the command lists the objects and asks. Otherwise it
fails and prints the digest for --confirm. --yes confirms in advance.`

// prompt asks for the confirmation of deletions.
type prompt struct {
	stdin      io.Reader
	stderr     io.Writer
	isTerminal bool // both are
}

// submit sends a request with a document. If the server requires confirmation,
// submit lists the deletions. If the user or a flag confirms them, it resends the
// request with the digest.
func (p prompt) submit(ctx context.Context, c *client, r request, body operationRequest, k confirmFlags) (answer, error) {
	if k.confirm != "" {
		body.Options().Confirm = k.confirm
	}
	a, err := c.submit(ctx, r, body)
	refusal, ok := errors.AsType[*problem](err)
	if !ok || refusal.Confirm == "" {
		return a, err
	}
	fmt.Fprintln(p.stderr, "these deletions must be confirmed:")
	for _, v := range refusal.Errors { // the field names the object
		line := nf.Violation{Field: v.Field, File: v.File, Line: v.Line, Message: v.Message}.String()
		fmt.Fprintf(p.stderr, "  %s\n", printable(line))
	}
	switch {
	case k.yes:
	case !p.isTerminal:
		return a, &problem{Kind: refusal.Kind, Detail: "not confirmed; nothing was changed", Confirm: refusal.Confirm}
	default:
		if err := p.question(ctx, "continue?"); err != nil {
			return a, err
		}
	}
	body.Options().Confirm = refusal.Confirm
	return c.submit(ctx, r, body)
}

// question asks on the terminal, and fails unless the answer is yes.
func (p prompt) question(ctx context.Context, text string) error {
	fmt.Fprintf(p.stderr, "%s [y/N] ", text)
	said := make(chan string, 1)
	go func() { // a read from a terminal cannot be interrupted, so it runs until a line or the process ends
		line, _ := bufio.NewReader(p.stdin).ReadString('\n')
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return &exitError{exitInterrupted, errors.New("interrupted; nothing was changed")}
	case answer := <-said:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("not confirmed; nothing was changed")
	}
}
