package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// String says "rules: firewall-rules, level=3".
func (am amendment) String() string {
	parts := []string{am.Name + ": " + am.Package, jsonPairs(am.Parameters), pairsOf(am.Set)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

func instanceConfigure(s *session) *cobra.Command {
	var pkg string
	var files []string
	var remove bool
	var m mannerFlags
	var w waiting
	var k consent
	set := newSettings()
	cmd := &cobra.Command{
		Use:   "configure ID|NAME AMENDMENT --package PACKAGE",
		Short: "Amend an instance by another package, or take an amendment away",
		Long: `Amend an instance: the package is rendered and laid over what the instance's own
package was rendered to, which is not rendered again. An amendment of the name is
replaced; with --remove it is taken away.` + waitHelp + confirmHelp,
		Args:              twoNames,
		ValidArgsFunction: s.ids(instances(), false),
	}
	flags := cmd.Flags()
	flags.StringVar(&pkg, "package", "", "csar_id of the package to amend it with")
	flags.BoolVar(&remove, "remove", false, "take the amendment away")
	defineValues(flags, &files, set)
	flags.StringArrayVar(&files, "parameters", nil, "the same as --values")
	m.define(cmd)
	m.defineOnFailure(cmd, "undo")
	w.define(cmd)
	k.define(cmd)
	completeFlag(cmd, "package", s.ids(packages(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if err := m.into(body); err != nil {
			return err
		}
		parameters, err := s.parameters(files, set)
		if err != nil {
			return err
		}
		given := len(parameters) > 0 || len(set.texts) > 0
		if remove == (pkg != "") || remove && given {
			return misused(cmd, errors.New("give --package, with --values and --set if need be, or --remove"))
		}
		r := request{method: http.MethodDelete}
		if !remove {
			r.method, body["csar_id"] = http.MethodPut, pkg
		}
		if len(parameters) > 0 {
			body["parameters"] = parameters
		}
		if len(set.texts) > 0 {
			body["set"] = set.texts
		}
		i, _, err := c.find(ctx, args[0])
		if err != nil {
			return err
		}
		r.path = at("vnf_instances", i.ID, "amendments", args[1])
		return s.change(ctx, c, r, body, how{w, k})
	})
	return cmd
}

func instanceTest(s *session) *cobra.Command {
	var noWait bool
	var m mannerFlags
	cmd := &cobra.Command{
		Use:   "test ID|NAME",
		Short: "Run the tests of an instance's package",
		Long: `Run the tests of an instance's package, one after another, and list what came of
them. The exit code is 1 when one has failed.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	m.define(cmd)
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return when the operation is accepted")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{}
		if err := m.into(body); err != nil {
			return err
		}
		i, _, err := c.find(ctx, args[0])
		if err != nil {
			return err
		}
		r := request{method: http.MethodPost, path: at("vnf_instances", i.ID, "tests"), header: async()}
		a, err := c.send(ctx, r, mediaOf(r), body)
		if err != nil {
			return err
		}
		if noWait {
			return printOne(s, a, operationColumns(s))
		}
		return s.testResults(ctx, c, a.operation())
	})
	return cmd
}

// testResults waits for the end of tests, and prints what came of them.
func (s *session) testResults(ctx context.Context, c *client, id string) error {
	last, err := s.follow(ctx, c, id, ended, s.progress())
	if last.Passed == nil {
		return err // not all of them have been run, and it says why
	}
	a, err := c.get(ctx, at("operations", id), nil)
	if err != nil {
		return err
	}
	err = s.print(a, func(w io.Writer) error {
		if len(last.Tests) == 0 {
			_, err := fmt.Fprintln(w, "no tests")
			return err
		}
		return table(w, false, testColumns(s), last.Tests)
	})
	if err == nil && !*last.Passed {
		return errSilent
	}
	return err
}

func testColumns(s *session) []column[test] {
	return []column[test]{
		{"KIND", false, func(t test) string { return t.Kind }},
		{"TEST", false, func(t test) string { return t.Name }},
		{"PASSED", false, func(t test) string { return yesNo(t.Passed) }},
		{"TOOK", false, func(t test) string { return took(span(t.Started, t.Finished, s.Now())) }},
		{"MESSAGE", false, func(t test) string { return t.Message }},
	}
}
