package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func occurrenceCommand(s *session) *cobra.Command {
	return s.noun("occurrence", "Recover and cancel operations on VNFs",
		occurrenceList(s), occurrenceShow(s), occurrenceWait(s),
		occurrenceRepair(s, "retry", "Retry an occurrence that has failed", "Retry an occurrence that is FAILED_TEMP.", nf.OccurrenceCompleted),
		occurrenceRepair(s, "rollback", "Roll back an occurrence that has failed", "Roll back an occurrence that is FAILED_TEMP: the VNF becomes what it was before.", nf.OccurrenceRolledBack),
		occurrenceFail(s), occurrenceCancel(s))
}

func occurrences() catalogue {
	return catalogue{list: lcm(http.MethodGet, "vnf_lcm_op_occs"), fields: []string{"id"}, about: []string{"operation", "vnfInstanceId", "operationState", "startTime"}}
}

const occurrenceWaitHelp = `

The command waits until the occurrence ends. An interrupt ends only the waiting; the
occurrence continues. --no-wait returns as soon as the occurrence is accepted.`

// occurrenceRun holds the flags of a command that starts an occurrence, or another
// attempt at one.
type occurrenceRun struct {
	noWait bool
	limit  time.Duration
}

func (f *occurrenceRun) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "return as soon as the occurrence is accepted")
	cmd.Flags().DurationVar(&f.limit, "timeout", 0, "maximum time to wait, such as 10m (default unlimited)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "timeout")
}

// follow waits until an occurrence has ended, unless the flags say otherwise, and prints
// it. It fails unless the occurrence ends in the wanted state.
func (f *occurrenceRun) follow(ctx context.Context, s *session, c *client, id string, want nf.OccurrenceState) error {
	limited := ctx
	if f.limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, f.limit)
		defer cancel()
	}
	last, a, err := f.await(limited, s, c, id)
	if err != nil {
		return err
	}
	if f.noWait || last.ended() {
		err := printOne(s.out, a, occurrenceColumns)
		if err != nil || f.noWait {
			return err
		}
		return last.outcome(want)
	}
	if ctx.Err() != nil {
		return &exitError{exitInterrupted, fmt.Errorf("interrupted; occurrence %s continues\n  to wait for it: k8splugin occurrence wait %s\n  to cancel it:   k8splugin occurrence cancel %s", id, id, id)}
	}
	return &exitError{exitTimeout, fmt.Errorf("timed out after %s: occurrence %s is %s", f.limit, id, cmp.Or(last.State, "not known yet"))}
}

// await reads an occurrence until it has ended, or once if the flags say so. It returns the
// last state that it has read, also when the context ends.
func (f *occurrenceRun) await(ctx context.Context, s *session, c *client, id string) (last occurrence, a answer, err error) {
	for {
		a, err = c.call(ctx, occurrences().item(http.MethodGet, id))
		if ctx.Err() != nil {
			return last, a, nil //nolint:nilerr // the caller says that the wait has ended
		}
		now := occurrence{}
		if err == nil {
			err = a.decode(&now)
		}
		if err != nil {
			return last, a, err
		}
		if now.State != last.State && s.out.format.people() {
			fmt.Fprintf(s.out.stderr, "%s %s: %s\n", now.Operation, printable(now.ID), now.State)
		}
		if last = now; f.noWait || last.ended() || !pause(ctx, s.interval) {
			return last, a, nil
		}
	}
}

// occurrence is an occurrence as the server sent it.
type occurrence wire.VNFOccurrence

func (o occurrence) ended() bool { return o.ID != "" && !o.State.Running() }

// outcome returns an error unless an occurrence has ended in the wanted state.
func (o occurrence) outcome(want nf.OccurrenceState) error {
	if o.State == want {
		return nil
	}
	why, advice := "", ""
	if o.Error != nil {
		why = ": " + o.Error.Detail
	}
	if o.State == nf.OccurrenceFailedTemp {
		advice = "\n  to decide about it: k8splugin occurrence retry|fail " + o.ID
		if _, can := o.Links["rollback"]; can {
			advice = "\n  to decide about it: k8splugin occurrence retry|rollback|fail " + o.ID
		}
	}
	return &exitError{exitFailed, fmt.Errorf("occurrence %s is %s%s%s", o.ID, o.State, why, advice)}
}

func occurrenceList(s *session) *cobra.Command {
	cmd, q := listCommand(s, "List occurrences, newest first", occurrences(), occurrenceColumns)
	q.order.newest = true
	q.add(cmd, "vnf", "vnfInstanceId", "filter by VNF: its ID or name")
	q.add(cmd, "state", "operationState", "filter by state, such as FAILED_TEMP")
	q.add(cmd, "operation", "operation", "filter by operation, such as INSTANTIATE")
	filterFlags(q, []string{"vnfInstanceId", "operationState", "operation"})
	filtered := q.prepare
	q.prepare = func(ctx context.Context, c *client, query url.Values) error {
		if what := query.Get("vnfInstanceId"); what != "" {
			v, _, err := findVNF(ctx, c, what)
			switch {
			case err == nil:
				query.Set("vnfInstanceId", v.ID)
			case ExitCode(err) != exitNotFound: // it may be the id of a VNF that was deleted
				return err
			}
		}
		return filtered(ctx, c, query)
	}
	completeFlag(cmd, "vnf", s.ids(vnfs(), true))
	completeFlag(cmd, "state", fixed("STARTING", "PROCESSING", "COMPLETED", "FAILED_TEMP", "ROLLING_BACK", "ROLLED_BACK", "FAILED"))
	return cmd
}

func occurrenceColumns(now clock) []column[occurrence] {
	return []column[occurrence]{
		{"ID", false, func(o occurrence) string { return o.ID }},
		{"OPERATION", false, func(o occurrence) string { return string(o.Operation) }},
		{"VNF", false, func(o occurrence) string { return o.VNF }},
		{"STATE", false, func(o occurrence) string { return string(o.State) }},
		{"AGE", false, func(o occurrence) string { return now.age(timeOf(o.Started)) }},
		{"GRANT", true, func(o occurrence) string { return o.Grant }},
	}
}

// timeOf returns the time of a document of SOL003; zero if it is not one.
func timeOf(text string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, text)
	return t
}

func occurrenceShow(s *session) *cobra.Command {
	return s.showCommand("show ID", "Show an occurrence and its changes", occurrences(), s.out.describeOccurrence)
}

func (pr *printer) describeOccurrence(w io.Writer, a answer) error {
	var o occurrence
	if err := a.decode(&o); err != nil {
		return err
	}
	list := []field{
		{"Id", o.ID}, {"Operation", string(o.Operation)}, {"VNF", o.VNF}, {"State", string(o.State)}, {"Grant", o.Grant},
		{"Started", pr.clock.stamp(timeOf(o.Started))}, {"In this state since", pr.clock.stamp(timeOf(o.Entered))}, {"Parameters", string(o.Params)}, {"Changed", string(o.Info) + string(o.ByPackage)},
	}
	if o.Cancel {
		list = append(list, field{"Cancel", "pending"})
	}
	if o.Error != nil {
		list = append(list, field{"Failure", o.Error.Detail})
	}
	if err := printFields(w, list); err != nil || o.Resources == nil {
		return err
	}
	return section(w, false, o.Resources.VNFCs, []column[wire.VNFCChange]{
		{"CHANGE", false, func(c wire.VNFCChange) string { return string(c.Change) }},
		{"VDU", false, func(c wire.VNFCChange) string { return c.VDU }},
		{"KIND", false, func(c wire.VNFCChange) string { return c.Compute.Type }},
		{"POD", false, func(c wire.VNFCChange) string { return c.Compute.ID }},
	})
}

func occurrenceWait(s *session) *cobra.Command {
	var run occurrenceRun
	cmd := &cobra.Command{
		Use: "wait ID", Short: "Wait until an occurrence ends", Long: "Wait until an occurrence ends. The command fails unless it is COMPLETED.",
		Args: oneName, ValidArgsFunction: s.ids(occurrences(), false),
	}
	cmd.Flags().DurationVar(&run.limit, "timeout", 0, "maximum time to wait, such as 10m (default unlimited)")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		return run.follow(ctx, s, c, args[0], nf.OccurrenceCompleted)
	})
	return cmd
}

// occurrenceRepair returns the command that starts another attempt at an occurrence.
func occurrenceRepair(s *session, verb, short, long string, want nf.OccurrenceState) *cobra.Command {
	var run occurrenceRun
	cmd := &cobra.Command{Use: verb + " ID", Short: short, Long: long + occurrenceWaitHelp, Args: oneName, ValidArgsFunction: s.ids(occurrences(), false)}
	run.define(cmd)
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		if _, err := c.call(ctx, lcm(http.MethodPost, "vnf_lcm_op_occs/"+url.PathEscape(args[0])+"/"+verb)); err != nil {
			return err
		}
		return run.follow(ctx, s, c, args[0], want)
	})
	return cmd
}

func occurrenceFail(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "fail ID", Short: "Give up an occurrence that has failed",
		Long: "Give up an occurrence that is FAILED_TEMP. It becomes FAILED; what it has changed stays, and\nthe VNF can be changed again.",
		Args: oneName, ValidArgsFunction: s.ids(occurrences(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			r := lcm(http.MethodPost, "vnf_lcm_op_occs/"+url.PathEscape(args[0])+"/fail")
			r.single = true
			a, err := c.call(ctx, r)
			if err != nil {
				return err
			}
			return printOne(s.out, a, occurrenceColumns)
		}),
	}
}

func occurrenceCancel(s *session) *cobra.Command {
	var forceful bool
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Cancel an occurrence that is running",
		Long: "Cancel an occurrence that is running. It ends as FAILED_TEMP, or as ROLLED_BACK if nothing has\nchanged yet. 'occurrence wait' waits until it has ended.",
		Args: oneName, ValidArgsFunction: s.ids(occurrences(), false),
	}
	cmd.Flags().BoolVar(&forceful, "forceful", false, "do not wait until the current step is done")
	cmd.RunE = s.run(func(ctx context.Context, c *client, args []string) error {
		r := lcmWith(http.MethodPost, "vnf_lcm_op_occs/"+url.PathEscape(args[0])+"/cancel")
		r.single = true
		mode := "GRACEFUL"
		if forceful {
			mode = "FORCEFUL"
		}
		_, err := c.send(ctx, r, map[string]any{"cancelMode": mode})
		return err
	})
	return cmd
}
