package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// amendmentLine returns "rules: firewall-rules, level=3".
func amendmentLine(am wire.Amendment) string {
	parts := []string{am.Name + ": " + am.Package, jsonPairs(am.Parameters), pairsOf(am.Overrides)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

func instanceConfigure(s *session) *cobra.Command {
	var body wire.AmendmentPut
	var files []string
	var remove, dry bool
	var m executionFlags
	var w waiting
	var k confirmFlags
	set := newSettings()
	cmd := &cobra.Command{
		Use:   "configure ID|NAME AMENDMENT --package PACKAGE",
		Short: "Add, replace or remove an amendment",
		Example: `  k8splugin instance configure fw-1 rules --package firewall-rules --set level=3
  k8splugin instance configure fw-1 rules --remove`,
		Long: `Amend an instance with another package. That package is rendered and layered over
the rendered objects of the instance's own package, which is not rendered again.
An existing amendment of the same name is replaced. --remove removes it.` + waitHelp + confirmHelp,
		Args:              twoNames,
		ValidArgsFunction: s.ids(instances(), false),
	}
	flags := cmd.Flags()
	flags.StringVar(&body.Package, "package", "", "csar_id of the package of the amendment")
	flags.BoolVar(&remove, "remove", false, "remove the amendment")
	flags.BoolVar(&dry, "dry-run", false, "show the changes without making them")
	defineValues(flags, &files, set)
	flags.StringArrayVar(&files, "parameters", nil, "same as --values")
	m.define(cmd)
	m.defineOnFailure(cmd, "undo")
	m.defineValidate(cmd)
	w.define(cmd)
	k.define(cmd)
	completeFlag(cmd, "package", s.ids(packages(), true))
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		var err error
		if body.Execution, err = m.options(); err != nil {
			return err
		}
		if body.Parameters, err = s.in.parameters(files, set); err != nil {
			return err
		}
		body.Overrides = present(set.texts)
		given := len(body.Parameters) > 0 || len(body.Overrides) > 0
		if remove == (body.Package != "") || remove && (given || m.validate != "") {
			return misused(cmd, errors.New("give either --package, optionally with --values and --set, or --remove"))
		}
		i, _, err := s.find(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := ask(api.NewPutAmendmentRequestWithBody(root, i.ID, args[1], nil, jsonMedia, nil))
		if remove {
			r = ask(api.NewDeleteAmendmentRequest(root, i.ID, args[1], nil))
		}
		if dry {
			return s.dryRun(ctx, c, r, &body)
		}
		return s.change(ctx, c, r, &body, changeOptions{w, k})
	})
	return cmd
}

func instanceTest(s *session) *cobra.Command {
	var noWait, dry bool
	var m executionFlags
	cmd := &cobra.Command{
		Use:   "test ID|NAME",
		Short: "Run the tests of an instance's package",
		Long: `Run the tests of an instance's package one after another, and list the results.
The exit code is 1 if a test failed.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
	}
	m.define(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the objects of the tests without running them")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the operation is accepted")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		body, err := m.options()
		if err != nil {
			return err
		}
		i, _, err := s.find(ctx, c, args[0])
		if err != nil {
			return err
		}
		r := ask(api.NewTestVnfInstanceRequestWithBody(root, i.ID, nil, jsonMedia, nil))
		if dry {
			return s.dryRun(ctx, c, r, body)
		}
		r.respondAsync()
		a, err := c.send(ctx, r, body)
		if err != nil {
			return err
		}
		if noWait {
			return printOne(s.out, a, operationColumns)
		}
		return s.testResults(ctx, c, a.operation())
	})
	return cmd
}

// testResults waits for the end of tests, and prints their results.
func (s *session) testResults(ctx context.Context, c *client, id string) error {
	last, err := s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, id, nil)), ended, s.out.progress())
	if last.Passed == nil {
		return err // not all tests ran; the error says why
	}
	a, err := c.call(ctx, ask(api.NewGetOperationRequest(root, id)))
	if err != nil {
		return err
	}
	err = s.out.print(a, func(w io.Writer) error {
		if len(last.Tests) == 0 {
			_, err := fmt.Fprintln(w, "no tests")
			return err
		}
		return table(w, false, testColumns(s.out.clock), last.Tests)
	})
	if err == nil && !*last.Passed {
		return errSilent
	}
	return err
}

func testColumns(now clock) []column[wire.Test] {
	return []column[wire.Test]{
		{"KIND", false, func(t wire.Test) string { return t.Kind }},
		{"TEST", false, func(t wire.Test) string { return t.Name }},
		{"PASSED", false, func(t wire.Test) string { return yesNo(t.Passed) }},
		{"TOOK", false, func(t wire.Test) string { return took(span(t.Started, t.Finished, now())) }},
		{"MESSAGE", false, func(t wire.Test) string { return t.Message }},
	}
}
