package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

func operationCommand(s *session) *cobra.Command {
	return s.noun("operation", "See, stop and repair what is being done to instances",
		operationList(s), operationShow(s), operationWatch(s), operationCancel(s), operationRetry(s), operationUndo(s))
}

func operationList(s *session) *cobra.Command {
	var q filters
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the operations",
		Args:  noArgs,
		RunE: s.run(func(ctx context.Context, c *client, _ []string) error {
			p, err := c.list(ctx, at("operations"), "operations", q.values())
			if err != nil {
				return err
			}
			return printAll(s, p, operationColumns(s))
		}),
	}
	q.add(cmd, "instance", "vnf_id", "of this instance only")
	q.add(cmd, "state", "state", "in this state only: queued, running, succeeded, failed or cancelled")
	q.project(cmd)
	q.pages(cmd)
	completeFlag(cmd, "state", fixed("queued", "running", "succeeded", "failed", "cancelled"))
	return cmd
}

func operationColumns(s *session) []column[operation] {
	return []column[operation]{
		{"ID", false, func(op operation) string { return op.ID }},
		{"VERB", false, func(op operation) string { return string(op.Verb) }},
		{"INSTANCE", false, func(op operation) string { return op.Instance }},
		{"STATE", false, func(op operation) string { return string(op.State) }},
		{"STEP", false, func(op operation) string {
			if len(op.Steps) == 0 {
				return ""
			}
			return op.Steps[len(op.Steps)-1].Name
		}},
		{"TOOK", false, func(op operation) string { return op.elapsed(s.Now()) }},
		{"AGE", false, func(op operation) string { return s.age(op.Accepted) }},
		{"REGION", true, func(op operation) string { return op.Region }},
		{"NAMESPACE", true, func(op operation) string { return op.Namespace }},
		{"PROJECT", true, func(op operation) string { return op.Project }},
		{"REVISION", true, func(op operation) string { return strconv.Itoa(op.Revision) }},
		{"MESSAGE", true, func(op operation) string {
			switch {
			case op.Failure != nil:
				return op.Failure.Message
			case op.Waiting != nil:
				return op.Waiting.String()
			}
			return ""
		}},
	}
}

// String says "waiting: cloud region east is unreachable (tcp: …)".
func (w wait) String() string { return "waiting: " + w.For }

func operationShow(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show an operation, its steps and what it changed",
		Args:              oneName,
		ValidArgsFunction: s.ids(operations(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.get(ctx, at("operations", args[0]), nil)
			if err != nil {
				return err
			}
			return s.print(a, func(w io.Writer) error { return s.describeOperation(w, a) })
		}),
	}
}

func (s *session) describeOperation(w io.Writer, a answer) error {
	var op operation
	if err := a.decode(&op); err != nil {
		return err
	}
	list := []field{
		{"ID", op.ID}, {"Verb", op.verb()}, {"Instance", op.Instance}, {"Project", op.Project},
		{"Region", op.Region}, {"Namespace", op.Namespace}, {"State", op.phase()},
		{"Repeats", op.Repeats}, {"On failure", string(op.OnFailure)}, {"On unreachable", op.OnUnreachable},
		{"Accepted", s.stamp(op.Accepted)}, {"Applied", s.stamp(op.Applied)}, {"Finished", s.stamp(op.Finished)},
	}
	if op.Attempts > 1 {
		list = append(list, field{"Begun", strconv.Itoa(op.Attempts) + " times"})
	}
	if op.Waiting != nil {
		list = append(list, field{"Waiting", op.Waiting.For}, field{"Waiting since", s.stamp(op.Waiting.Since)})
		if op.Waiting.Next.After(s.Now()) { // else it is that of an attempt that is over
			list = append(list, field{"Next attempt", s.until(op.Waiting.Next)})
		}
	}
	if op.Failure != nil {
		list = append(list, field{"Failed in", op.Failure.Step}, field{"Because", op.Failure.Message})
		for _, v := range op.Failure.Errors {
			list = append(list, field{"Error", v.String()})
		}
	}
	for _, warning := range op.Warnings {
		list = append(list, field{"Warning", warning})
	}
	if err := printFields(w, list); err != nil {
		return err
	}
	if len(op.Steps) > 0 {
		fmt.Fprintln(w)
		rows := make([]int, len(op.Steps))
		for i := range rows {
			rows[i] = i
		}
		if err := table(w, false, stepColumns(s, op), rows); err != nil {
			return err
		}
	}
	return printChanges(w, op.Changes)
}

// stepColumns are the columns of an operation's steps, which the rows number.
func stepColumns(s *session, op operation) []column[int] {
	return []column[int]{
		{"STEP", false, func(i int) string { return op.Steps[i].Name }},
		{"STATE", false, op.stepState},
		{"OBJECTS", false, op.count},
		{"TOOK", false, func(i int) string { return took(span(op.Steps[i].Started, op.Steps[i].Finished, s.Now())) }},
		{"MESSAGE", false, op.message},
	}
}

// printChanges prints what was done to each object; nothing when there is none.
func printChanges(w io.Writer, list []object) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return table(w, false, changeColumns(), list)
}

func changeColumns() []column[object] {
	return []column[object]{
		{"ACTION", false, func(o object) string { return string(o.Action) }},
		{"KIND", false, func(o object) string { return o.Kind }},
		{"NAMESPACE", false, func(o object) string { return o.Namespace }},
		{"NAME", false, func(o object) string { return o.Name }},
		{"MESSAGE", false, func(o object) string { return o.Message }},
	}
}

func operationWatch(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "watch ID",
		Short: "Follow an operation to its end; its outcome is the exit code",
		Long: `Follow an operation to its end; its outcome is the exit code.

With -o json or yaml each state of the operation is a document on standard
output: a line, or what stands between two lines of "---".

An interrupt ends the watching only: the operation goes on.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(operations(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			view := s.progress()
			if !s.output.people() {
				view = &progress{report: s.report}
			}
			_, err := s.follow(ctx, c, args[0], ended, view)
			return err
		}),
	}
}

// report prints a state of an operation for programs.
func (s *session) report(op operation) {
	var line bytes.Buffer
	if err := json.Compact(&line, op.sent); err != nil {
		return // it has been read already
	}
	if s.output == formatYAML {
		fmt.Fprintln(s.Stdout, "---")
	}
	_ = s.print(answer{body: line.Bytes()}, nil) // whoever reads it went away, and the outcome is the exit code
}

func operationCancel(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "cancel ID",
		Short:             "Ask an operation to stop",
		Long:              "Ask an operation to stop. What happens to what it did already is decided by the operation's on-failure choice.",
		Args:              oneName,
		ValidArgsFunction: s.ids(operations(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			a, err := c.call(ctx, request{method: http.MethodPost, path: at("operations", args[0], "cancel")})
			if err != nil {
				return err
			}
			return printOne(s, a, operationColumns(s))
		}),
	}
}
