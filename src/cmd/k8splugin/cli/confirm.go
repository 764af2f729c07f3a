package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// consent are the flags that confirm what a change takes away.
type consent struct {
	confirm string
	yes     bool
}

func (k *consent) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.confirm, "confirm", "", "confirm what a dry run or a refusal has listed: the text that came with the list")
	cmd.Flags().BoolVarP(&k.yes, "yes", "y", false, "confirm whatever is taken away, and list it")
}

const confirmHelp = `

A change that would delete data, or most of the instance, must be confirmed. On
a terminal the command lists the objects and asks; elsewhere it fails and says
what to --confirm, unless --yes says so beforehand.`

// ask sends a request with a document. When the server asks back whether what it
// lists may be taken away, and it may, the request is sent again.
func (s *session) ask(ctx context.Context, c *client, r request, body map[string]any, k consent) (answer, error) {
	if k.confirm != "" {
		body["confirm"] = k.confirm
	}
	a, err := c.submit(ctx, r, body)
	p, ok := errors.AsType[*problem](err)
	if !ok || p.Confirm == "" {
		return a, err
	}
	person := s.InIsTerminal && s.ErrIsTerminal
	if !k.yes && !person {
		return a, err
	}
	fmt.Fprintln(s.Stderr, "this must be confirmed:")
	for _, v := range p.Errors {
		fmt.Fprintf(s.Stderr, "  %s\n", printable(v.String()))
	}
	if !k.yes {
		if err := s.question(ctx, "go on?"); err != nil {
			return a, err
		}
	}
	body["confirm"] = p.Confirm
	return c.submit(ctx, r, body)
}

// question asks on the terminal, and fails unless the answer is yes.
func (s *session) question(ctx context.Context, text string) error {
	fmt.Fprintf(s.Stderr, "%s [y/N] ", text)
	said := make(chan string, 1)
	go func() { // nothing ends the reading of a terminal but its line or the process
		line, _ := bufio.NewReader(s.Stdin).ReadString('\n')
		said <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return &exitError{exitInterrupted, errors.New("interrupted; nothing has been changed")}
	case answer := <-said:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New("not confirmed; nothing has been changed")
	}
}
