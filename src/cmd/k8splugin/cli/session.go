package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// session is one run of the program: its environment and the flags that every
// command has.
type session struct {
	Env
	connection

	output  format
	noColor bool
	retries []time.Duration // see client
	redraw  time.Duration   // how often progress on a terminal counts up
}

// noun returns the command that holds the verbs of one noun.
func (s *session) noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  noSuchVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	flags := cmd.PersistentFlags()
	s.connection.define(flags)
	flags.VarP(&s.output, "output", "o", "how to print the answer: table, wide, json or yaml")
	flags.BoolVar(&s.noColor, "no-color", false, "print without colour (env NO_COLOR)")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	completeFlag(cmd, "output", fixed(formats()...))
	cmd.AddCommand(verbs...)
	return cmd
}

func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s", text)
}

// The arguments that verbs take.
func noArgs(cmd *cobra.Command, args []string) error { return checkArgs(cmd, cobra.NoArgs, args) }
func oneFile(cmd *cobra.Command, args []string) error {
	return checkArgs(cmd, cobra.ExactArgs(1), args)
}

func oneName(cmd *cobra.Command, args []string) error {
	return cmp.Or(checkArgs(cmd, cobra.ExactArgs(1), args), checkNames(cmd, args))
}

func twoNames(cmd *cobra.Command, args []string) error {
	return cmp.Or(checkArgs(cmd, cobra.ExactArgs(2), args), checkNames(cmd, args))
}

func someNames(cmd *cobra.Command, args []string) error {
	return cmp.Or(checkArgs(cmd, cobra.MinimumNArgs(1), args), checkNames(cmd, args))
}

// checkArgs makes the complaint of a check an error of usage.
func checkArgs(cmd *cobra.Command, check cobra.PositionalArgs, args []string) error {
	if err := check(cmd, args); err != nil {
		return misused(cmd, err)
	}
	return nil
}

// checkNames refuses what, as a segment of a path, would name something else.
func checkNames(cmd *cobra.Command, names []string) error {
	for _, name := range names {
		if name == "" || name == "." || name == ".." {
			return misused(cmd, fmt.Errorf("%q is not a name", name))
		}
	}
	return nil
}

// misused is an error of usage that shows how the command is used.
func misused(cmd *cobra.Command, err error) error {
	return usagef("%w; usage: %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// colour reports whether answers on standard output may be coloured.
func (s *session) colour() bool {
	return s.IsTerminal && !s.noColor && s.Getenv("NO_COLOR") == ""
}

// run adapts a verb's function to cobra: it is given the client and the
// command's context, which ends when the user interrupts.
func (s *session) run(verb func(ctx context.Context, c *client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.client()
		if err != nil {
			return err
		}
		s.caution(c)
		return verb(cmd.Context(), c, args)
	}
}
