package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// session holds the parts that the commands share. Its methods build commands
// and execute changes.
type session struct {
	connection connection
	in         input
	out        *printer
	prompt     prompt
	watcher    watcher
	scope      scope
	render     func(ctx context.Context, archive []byte, req nf.InstantiateRequest, secrets bool) (nf.Preview, error)
	version    string
	translate  func(archive []byte, flavor, level string) (Translation, error)
	interval   time.Duration // between two reads of what is watched
	lint       func(archive []byte) (name string, warnings []string, err error)
	check      func(ctx context.Context, archive []byte, in nf.Inputs) (warnings []string, err error)
}

func newSession(env Env) *session {
	if env.Now == nil {
		env.Now = time.Now
	}
	in := input{env.Stdin}
	out := &printer{
		stdout: env.Stdout, stderr: env.Stderr, outTerminal: env.IsTerminal, errTerminal: env.ErrIsTerminal,
		colourless: env.Getenv("NO_COLOR") != "", clock: env.Now,
	}
	return &session{
		connection: connection{in: in, getenv: env.Getenv, now: env.Now, retries: retries()},
		in:         in, out: out, lint: env.Lint, check: env.Check, render: env.Render, translate: env.Translate, version: env.Version,
		prompt:  prompt{env.Stdin, env.Stderr, env.InIsTerminal && env.ErrIsTerminal},
		watcher: watcher{out, time.Second}, interval: time.Second,
	}
}

// noun returns the command that groups the verbs of one noun.
func (s *session) noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  NoSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	if plural := strings.TrimSuffix(name, "s") + "s"; plural != name {
		cmd.Aliases = []string{plural}
	}
	s.standAlone(cmd)
	cmd.AddCommand(verbs...)
	return cmd
}

// standAlone gives a command below the root the flags of every command.
func (s *session) standAlone(cmd *cobra.Command) {
	s.connection.define(cmd.PersistentFlags())
	s.out.define(cmd.PersistentFlags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	completeFlag(cmd, "output", fixed(formats()...))
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), inheritedFlags, `{{if .HasAvailableInheritedFlags}}

Flags for the server and the output: {{.Parent.CommandPath}} --help{{end}}`, 1))
}

// inheritedFlags is the part of cobra's template that lists the flags of the parent.
const inheritedFlags = `{{if .HasAvailableInheritedFlags}}

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}`

// NoSuchCommand is the argument check of a command that only groups others.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s", text)
}

// The arguments of verbs.
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

// checkArgs turns an error of a check into a usage error.
func checkArgs(cmd *cobra.Command, check cobra.PositionalArgs, args []string) error {
	if err := check(cmd, args); err != nil {
		return misused(cmd, err)
	}
	return nil
}

// checkNames rejects names that as a path segment would address another object.
func checkNames(cmd *cobra.Command, names []string) error {
	for _, name := range names {
		if name == "" || name == "." || name == ".." {
			return misused(cmd, fmt.Errorf("%q is not a valid name", name))
		}
	}
	return nil
}

// misused returns a usage error with the command's usage line.
func misused(cmd *cobra.Command, err error) error {
	return usagef("%w; usage: %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
}

// run adapts a verb's function to cobra. The function gets the client and the
// command's context, which ends when the user interrupts.
func (s *session) run(verb func(ctx context.Context, c *client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.connection.client(cmd.Context())
		if err != nil {
			return s.out.inFormat(err)
		}
		c.warnInsecure(s.out)
		return s.out.inFormat(verb(cmd.Context(), c, args))
	}
}

// listCommand returns the command that lists a collection, and its filters, for
// which the caller defines flags.
func listCommand[T any](s *session, short string, from catalogue, columns func(clock) []column[T]) (*cobra.Command, *filters) {
	q := &filters{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   short,
		Args:    noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			query := q.values()
			if q.prepare != nil {
				if err := q.prepare(ctx, c, query); err != nil {
					return err
				}
			}
			list := func(ctx context.Context) (page, error) {
				p, err := c.list(ctx, from, maps.Clone(query))
				if err == nil {
					err = q.order.apply(&p, s.out.format)
				}
				return p, err
			}
			p, err := list(ctx)
			if err == nil {
				err = printAll(s.out, p, columns)
			}
			if err != nil || !q.watch {
				return err
			}
			return watchList(ctx, s, list, columns, p)
		}),
	}
	q.defineOrder(cmd, s.out)
	cmd.Flags().BoolVarP(&q.watch, "watch", "w", false, "after the list, print the rows that change, until interrupted")
	return cmd, q
}

// showCommand returns the command that prints one object.
func (s *session) showCommand(use, short string, from catalogue, describe func(io.Writer, answer) error) *cobra.Command {
	return &cobra.Command{
		Use:               use,
		Aliases:           []string{"get", "describe"},
		Short:             short,
		Args:              oneName,
		ValidArgsFunction: s.ids(from, false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.call(ctx, from.item(http.MethodGet, args[0]))
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error { return describe(w, a) })
		}),
	}
}

// deleteCommand returns the command that deletes objects without an operation. It
// tries each, and fails if one cannot be deleted.
func (s *session) deleteCommand(short string, from catalogue) *cobra.Command {
	return &cobra.Command{
		Use:               "delete ID...",
		Aliases:           []string{"remove", "rm"},
		Short:             short,
		Args:              someNames,
		ValidArgsFunction: s.ids(from, true),
		RunE: s.run(func(ctx context.Context, c *client, ids []string) error {
			var failed multiError
			for _, id := range ids {
				if _, err := c.call(ctx, from.item(http.MethodDelete, id)); err != nil {
					failed = append(failed, err)
				}
			}
			return failed.orNil()
		}),
	}
}
