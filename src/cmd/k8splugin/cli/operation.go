package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// operation is an operation on a subject of any kind, as the server sent it.
type operation struct {
	wire.Operation

	Terminated []string `json:"vnf_instances"` // of a site: terminated with it
	KeepHosts  bool     `json:"keep_hosts"`    // of a site

	sent []byte // the event's document
}

// subject returns the subject in the form of --subject.
func (op operation) subject() string { return nf.Subject(op.Subject).String() }

// object returns the subject for people: the id of an instance, or "site edge".
func (op operation) object() string {
	if op.Subject.Kind == nf.InstanceSubject {
		return op.Subject.ID
	}
	return string(op.Subject.Kind) + " " + op.Subject.ID
}

func operationCommand(s *session) *cobra.Command {
	return s.noun("operation", "Watch, cancel, retry and undo operations",
		operationList(s), operationShow(s), operationWatch(s), operationCancel(s), operationRetry(s), operationUndo(s))
}

func operationList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List operations, newest first", operations(), operationColumns)
	q.order.newest = true
	q.add(cmd, "subject", "subject", "filter by subject: KIND/ID, or KIND for all of them; the kinds are vnf_instance, site, network, volume, service and vnf")
	q.add(cmd, "instance", "vnf_id", "filter by instance: its ID or name")
	q.add(cmd, "state", "state", "filter by state: queued, running, succeeded, failed or cancelled")
	q.project(cmd)
	q.pages(cmd)
	q.prepare = func(ctx context.Context, c *client, query url.Values) error {
		q.order.newestFirst(query, s.out.format)
		if !query.Has("vnf_id") {
			return nil
		}
		if query.Has("subject") {
			return usagef("--instance cannot be combined with --subject: --instance ID means --subject %s/ID", nf.InstanceSubject)
		}
		id, err := c.idOf(ctx, query.Get("vnf_id"), scope{})
		if err == nil {
			query.Set("vnf_id", id)
		}
		if ExitCode(err) == exitNotFound {
			err = nil // it may be the id of an instance, which may be deleted
		}
		return err
	}
	completeFlag(cmd, "instance", s.ids(instances(), true))
	completeFlag(cmd, "subject", fixed(string(nf.InstanceSubject), string(nf.SiteSubject), string(nf.NetworkSubject), string(nf.VolumeSubject), string(nf.ServiceSubject), string(nf.VNFSubject)))
	completeFlag(cmd, "state", fixed("queued", "running", "succeeded", "failed", "cancelled"))
	return cmd
}

func operationColumns(now clock) []column[operation] {
	return []column[operation]{
		{"ID", false, func(op operation) string { return op.ID }},
		{"VERB", false, func(op operation) string { return string(op.Verb) }},
		{"SUBJECT", false, operation.subject},
		{"STATE", false, func(op operation) string { return string(op.State) }},
		{"STEP", false, func(op operation) string {
			if len(op.Steps) == 0 {
				return ""
			}
			return op.Steps[len(op.Steps)-1].Title
		}},
		{"TOOK", false, func(op operation) string { return op.elapsed(now()) }},
		{"AGE", false, func(op operation) string { return now.age(op.Accepted) }},
		{"REGION", true, func(op operation) string { return op.Region }},
		{"NAMESPACE", true, func(op operation) string { return op.Namespace }},
		{"PROJECT", true, func(op operation) string { return op.Project }},
		{"REVISION", true, func(op operation) string {
			if op.Revision == 0 {
				return ""
			}
			return strconv.Itoa(op.Revision)
		}},
		{"MESSAGE", true, func(op operation) string {
			switch {
			case op.Failure != nil:
				return op.Failure.Message
			case op.Waiting != nil:
				return op.waiting()
			}
			return ""
		}},
	}
}

// waiting returns "waiting: cloud region east is unreachable (tcp: …)".
func (op operation) waiting() string { return "waiting: " + op.Waiting.For }

func operationShow(s *session) *cobra.Command {
	return s.showCommand("show ID", "Show an operation, its steps and its changes", operations(), s.out.describeOperation)
}

func (pr *printer) describeOperation(w io.Writer, a answer) error {
	var op operation
	if err := a.decode(&op); err != nil {
		return err
	}
	list := []field{
		{"ID", op.ID}, {"Verb", op.verb()}, {"Subject", op.subject()}, {"Project", op.Project},
		{"Region", op.Region}, {"Namespace", op.Namespace}, {"State", op.phase()},
		{"Terminates", strings.Join(op.Terminated, ", ")}, {"Retry of", op.Repeats}, {"On failure", string(op.OnFailure)}, {"On unreachable", op.OnUnreachable},
		{"Accepted", pr.clock.stamp(op.Accepted)}, {"Applied", pr.clock.stamp(op.Applied)}, {"Finished", pr.clock.stamp(op.Finished)},
	}
	if op.Attempts > 1 {
		list = append(list, field{"Attempts", strconv.Itoa(op.Attempts)})
	}
	if op.Waiting != nil {
		list = append(list, field{"Waiting", op.Waiting.For}, field{"Waiting since", pr.clock.stamp(op.Waiting.Since)})
		if op.Waiting.Next.After(pr.clock()) { // otherwise it is the time of an earlier attempt
			list = append(list, field{"Next attempt", pr.clock.until(op.Waiting.Next)})
		}
	}
	if op.Failure != nil {
		list = append(list, field{"Failed step", op.Failure.Step}, field{"Failure", op.Failure.Message})
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
		if err := table(w, false, stepColumns(pr.clock, op), rows); err != nil {
			return err
		}
	}
	return cmp.Or(pr.printPlacement(w, op.Placement), section(w, false, op.Changes, changeColumns()))
}

// stepColumns returns the columns of a table of the operation's steps. Each row
// is a step's index.
func stepColumns(now clock, op operation) []column[int] {
	return []column[int]{
		{"STEP", false, func(i int) string { return op.Steps[i].Title }},
		{"STATE", false, op.stepState},
		{"OBJECTS", false, op.count},
		{"TOOK", false, func(i int) string { return took(span(op.Steps[i].Started, op.Steps[i].Finished, now())) }},
		{"MESSAGE", false, op.message},
	}
}

func changeColumns() []column[wire.Change] {
	return []column[wire.Change]{
		{"ACTION", false, func(c wire.Change) string { return string(c.Action) }},
		{"KIND", false, func(c wire.Change) string { return c.Kind }},
		{"NAMESPACE", false, func(c wire.Change) string { return c.Namespace }},
		{"NAME", false, func(c wire.Change) string { return c.Name }},
		{"MESSAGE", false, func(c wire.Change) string { return c.Message }},
	}
}

func operationWatch(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "watch ID",
		Short: "Watch an operation until it ends",
		Long: `Watch an operation until it ends. The exit code reports its outcome.

With -o json each state of the operation is one line on standard output. With
-o yaml each state is a document that starts with a line "---".

An interrupt ends only the watching; the operation continues.`,
		Args:              oneName,
		ValidArgsFunction: s.ids(operations(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			_, err := s.watcher.follow(ctx, c, ask(api.NewFollowOperationRequest(root, args[0], nil)), ended, s.out.states())
			return err
		}),
	}
}

// report prints an operation's state in the output format.
func (pr *printer) report(op operation) {
	var line bytes.Buffer
	if err := json.Compact(&line, op.sent); err != nil {
		return // parsed before
	}
	if pr.format.name == formatYAML {
		fmt.Fprintln(pr.stdout, "---")
	}
	_ = pr.print(answer{body: line.Bytes()}, nil) // if the reader has gone, the exit code still has the result
}
