package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// CheckUsage makes wrong arguments of every command of a tree usage errors, also of the
// commands that cobra adds. A command that only groups others accepts no arguments.
func CheckUsage(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strictUsage(root)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = helpTopic
		}
	}
}

func strictUsage(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strictUsage(sub)
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = NoSuchCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if _, marked := errors.AsType[*exitError](err); err == nil || marked {
			return err
		}
		return misused(cmd, err)
	}
}

// helpTopic accepts the path of a command.
func helpTopic(cmd *cobra.Command, args []string) error {
	_, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return usagef("no help for %q", strings.Join(args, " "))
	}
	return nil
}

// countFlag is a flag for a number of items, as the query parameter has it.
type countFlag string

func (c *countFlag) String() string { return string(*c) }
func (c *countFlag) Type() string   { return "int" }

func (c *countFlag) Set(text string) error {
	var n int
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 1 || n > 1000 || fmt.Sprint(n) != text {
		return errors.New("must be a number from 1 to 1000")
	}
	*c = countFlag(text)
	return nil
}
